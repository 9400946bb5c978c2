"""Settings of the development server; each field defines the flag with its name."""

from typing import Annotated

from annotated_types import Interval

from electra_tf.core.settings import PositiveCount, Section, setting

Amount = Annotated[float, Interval(ge=0, le=1_000_000)]


class ServerConfig(Section, prefix="--"):
    """The served models, the address and the limits."""

    model_dir: str = setting("", """Directory with the versions 1, 2, ... of a model; the newest is
        served under the directory's name. For other names or several models:
        name=directory,name=directory.""")
    host: str = setting("127.0.0.1", """Address to listen on; 0.0.0.0 is all addresses of this
        machine. The server has no authentication and no encryption.""")
    port: Annotated[int, Interval(ge=0, le=65535)] = setting(8501, """Port to listen on. 0 selects a
        free port. Default: 8501.""")
    max_connections: PositiveCount = setting(512, """Maximum concurrent connections. Requests on
        further connections receive 503.""")
    max_body_mib: Amount = setting(16.0, """Maximum size of a request body in MiB. Larger bodies
        receive 413.""")
    max_text_mib: Amount = setting(1.0, """Maximum size of a text in MiB. Longer texts receive 400.
        Tokenizing 1 MiB takes 2 s.""")
    max_request_rows: PositiveCount = setting(1024, """Maximum rows (examples) of a request. Larger
        requests receive 400.""")
