"""Settings of the development server; each field defines the flag with its name."""

import dataclasses
from typing import Annotated

from annotated_types import Interval

from electra_tf.platform.settings import LARGEST_COUNT, PositiveCount, Section

Amount = Annotated[float, Interval(ge=0, le=1_000_000)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerConfig(Section, prefix="--"):
    """The served models, the address and the limits."""

    model_dir: str = ""
    """Directory with the versions 1, 2, ... of a model. The name of the directory is the model's
    name in URLs. For other names or several models: name=directory,name=directory."""
    num_versions: Annotated[int, Interval(ge=0, le=LARGEST_COUNT)] = 1
    """Number of newest versions to serve, at /v1/models/NAME/versions/N. 0 serves all versions."""
    poll_seconds: Amount = 2.0
    """Seconds between checks for new and removed versions. 0 disables the checks."""
    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 is all addresses of this machine. The server has no
    authentication and no encryption."""
    port: Annotated[int, Interval(ge=0, le=65535)] = 8501
    """Port to listen on. 0 selects a free port. Default: 8501."""
    max_connections: PositiveCount = 512
    """Maximum concurrent connections. Requests on further connections receive 503."""
    max_body_mib: Amount = 16.0
    """Maximum size of a request body in MiB. Larger bodies receive 413."""
    max_text_mib: Amount = 1.0
    """Maximum size of a text in MiB. Longer texts receive 400. Tokenizing 1 MiB takes 2 s."""
    max_request_rows: PositiveCount = 1024
    """Maximum rows (examples) of a request. Larger requests receive 400."""
    max_buffered_mib: Amount = 32.0
    """Maximum total size in MiB of the bodies of unanswered requests. Further requests receive 503
    immediately."""
    max_waiting_rows: PositiveCount = 8192
    """Maximum total rows of unanswered requests. Further requests receive 503."""
    max_batch_size: PositiveCount = 32
    """Maximum rows of a model call that joins several requests. 1 joins none."""
    batch_timeout_ms: Amount = 2.0
    """Maximum milliseconds that a request waits for others to join it while the model is busy."""
    parallel_calls: PositiveCount = 2
    """Maximum concurrent model calls. At most one of them has more than 64 KiB of inputs."""
