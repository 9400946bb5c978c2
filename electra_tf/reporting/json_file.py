"""Scores as JSON that every program reads: what isn't a finite number is null."""

import json
import math
from collections.abc import Mapping
from typing import Any

from electra_tf.platform.atomic_file import write_atomically
from electra_tf.platform.storage import Path


def write_json(path: Path, content: Any) -> None:
    """Writes scores as strict JSON: what isn't a finite number becomes null."""
    write_atomically(path, (json.dumps(plain(content), indent=1) + "\n").encode())


def plain(value: Any) -> Any:
    """Returns a value with null for what JSON has no word for."""
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
