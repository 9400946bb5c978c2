"""Scores as strict JSON, with null for numbers that aren't finite."""

import json
import math
from collections.abc import Mapping
from typing import Any

from electra_tf.platform.atomic_file import write_atomically
from electra_tf.platform.storage import Path


def write_json(path: Path, content: Any) -> None:
    """Writes a value as strict JSON, as a whole or not at all."""
    write_atomically(path, (json.dumps(plain(content), indent=1) + "\n").encode())


def plain(value: Any) -> Any:
    """Returns a value with None for numbers that aren't finite."""
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
