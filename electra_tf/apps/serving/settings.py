"""Settings of the development server; each field defines the flag with its name."""

import dataclasses
from typing import Any

from absl import flags


def _flag(group: str, default: Any, text: str, **bounds: float) -> Any:
    """Returns a field with a flag's default, its help text and Abseil's arguments for bounds."""
    return dataclasses.field(default=default, metadata={
        "group": group, "help": text, "bounds": bounds})


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """What is served, where, and within which limits."""

    model_dir: str = _flag(
        "Models", "", "Directory with the versions 1, 2, ... of a SavedModel; its name is the "
        "model's name in URLs. For other names or several models: name=directory,name=directory.")
    num_versions: int = _flag(
        "Models", 1, "Number of versions to serve, newest first, each at "
        "/v1/models/NAME/versions/N; 0 serves all.", lower_bound=0)
    poll_seconds: float = _flag(
        "Models", 2.0, "Seconds between two checks for new and removed versions; 0 disables the "
        "checks.", lower_bound=0)
    host: str = _flag(
        "Network", "127.0.0.1", "Address to listen at; 0.0.0.0 for all addresses of this machine. "
        "The server has no authentication and no encryption.")
    port: int = _flag("Network", 8501, "Port; 0 selects a free one.",
                      lower_bound=0, upper_bound=65535)
    max_connections: int = _flag(
        "Limits", 512, "Concurrent connections; requests on further ones receive 503.",
        lower_bound=1)
    max_body_mib: float = _flag(
        "Limits", 16.0, "Size of a request body in MiB; larger ones receive 413.", lower_bound=0)
    max_request_rows: int = _flag(
        "Limits", 1024, "Rows of a request; larger requests receive 400.", lower_bound=1)
    max_buffered_mib: float = _flag(
        "Limits", 256.0, "Total size in MiB of the bodies of unanswered requests; further requests "
        "receive 503.", lower_bound=0)
    max_waiting_rows: int = _flag(
        "Limits", 8192, "Total number of rows of unanswered requests; further requests receive "
        "503.", lower_bound=1)
    max_batch_size: int = _flag(
        "Batching", 32, "Rows of a model call that joins several requests; 1 joins none.",
        lower_bound=1)
    batch_timeout_ms: float = _flag(
        "Batching", 2.0, "Milliseconds that a request waits for others while the model is busy.",
        lower_bound=0)
    parallel_calls: int = _flag("Batching", 2, "Concurrent model calls.", lower_bound=1)


_FIELDS = dataclasses.fields(ServerConfig)
GROUPS = {group: [field.name for field in _FIELDS if field.metadata["group"] == group]
          for group in ("Models", "Network", "Limits", "Batching")}
"""Title in `--help` -> the flags below it."""


def define() -> None:
    """Defines the flags."""
    kinds = {str: flags.DEFINE_string, int: flags.DEFINE_integer, float: flags.DEFINE_float}
    for field in _FIELDS:
        kinds[field.type](field.name, field.default, field.metadata["help"],
                          **field.metadata["bounds"])


def from_flags() -> ServerConfig:
    """Returns the settings that the command line gives."""
    return ServerConfig(**{field.name: flags.FLAGS[field.name].value for field in _FIELDS})
