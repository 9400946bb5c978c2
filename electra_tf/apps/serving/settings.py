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
    """Directory with the versions 1, 2, ... of a SavedModel; its name is the model's name in URLs.
    For other names or several models: name=directory,name=directory."""
    num_versions: Annotated[int, Interval(ge=0, le=LARGEST_COUNT)] = 1
    """Number of versions to serve, newest first, each at /v1/models/NAME/versions/N; 0: all."""
    poll_seconds: Amount = 2.0
    """Seconds between two checks for new and removed versions; 0 disables the checks."""
    host: str = "127.0.0.1"
    """Address to listen at; 0.0.0.0 for all addresses of this machine. The server has no
    authentication and no encryption."""
    port: Annotated[int, Interval(ge=0, le=65535)] = 8501
    """Port; 0 selects a free one."""
    max_connections: PositiveCount = 512
    """Concurrent connections; requests on further ones receive 503."""
    max_body_mib: Amount = 16.0
    """Size of a request body in MiB; larger ones receive 413."""
    max_text_mib: Amount = 1.0
    """Size of a text in MiB; longer ones receive 400. A model needs 2 s to tokenize 1 MiB."""
    max_request_rows: PositiveCount = 1024
    """Rows of a request; larger requests receive 400."""
    max_buffered_mib: Amount = 32.0
    """Total size in MiB of the bodies of unanswered requests, which bounds the text in computation;
    further requests receive 503 immediately."""
    max_waiting_rows: PositiveCount = 8192
    """Total number of rows of unanswered requests; further requests receive 503."""
    max_batch_size: PositiveCount = 32
    """Rows of a model call that joins several requests; 1 joins none."""
    batch_timeout_ms: Amount = 2.0
    """Milliseconds that a request waits for others while the model is busy."""
    parallel_calls: PositiveCount = 2
    """Concurrent model calls, at most one of them of a request with more than 64 KiB of inputs."""
