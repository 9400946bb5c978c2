"""Scores as strict JSON, with null for numbers that aren't finite."""

import json
from typing import Any

from electra_tf.platform.atomic_file import write_atomically
from electra_tf.platform.storage import Path


def write_json(path: Path, content: Any) -> None:
    """Writes a value as strict JSON, as a whole or not at all."""
    write_atomically(path, (json.dumps(plain(content), indent=1) + "\n").encode())


def plain(value: Any) -> Any:
    """Returns a value as JSON holds it, with None for numbers that aren't finite."""
    return json.loads(json.dumps(value), parse_constant=lambda _: None)
