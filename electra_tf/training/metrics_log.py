"""`metrics.jsonl`: one JSON object per interval, each step once however often a run is killed."""

import json
import math
from collections.abc import Mapping
from typing import Any

from electra_tf import atomic_file, storage
from electra_tf.command_line import UserError
from electra_tf.storage import Path

Record = dict[str, Any]

# JSON has no NaN; protobuf's JSON mapping writes it so, and so do we.
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class MetricsLog:
    """Appends records to a file and takes back those of steps that are trained again.

    Example:
        log = MetricsLog(model_dir / "metrics.jsonl")
        log.rewind(restored_step)
        log.append({"kind": "train", "step": 100, "loss": 12.3})
    """

    def __init__(self, path: str | Path):
        """Takes the file's path; the file need not exist, its directory must."""
        self.path = storage.path(path)

    def append(self, record: Mapping[str, Any]) -> None:
        """Writes one record as one line and hands it to the operating system.

        Args:
            record: strings, numbers and booleans by name, "step" among them. NaN and infinities
                become the strings "NaN", "Infinity" and "-Infinity".

        Raises:
            UserError: the file cannot be written.
            ValueError: a record without an integer "step".
        """
        _check_step(record)
        line = json.dumps(_to_json(record), allow_nan=False) + "\n"
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            raise atomic_file.write_error(self.path, error) from error

    def rewind(self, step: int) -> None:
        """Drops the records after `step` and a last line cut short, so that a resumed run
        writes each step once. The file is replaced as a whole or not at all.

        Args:
            step: of the restored checkpoint; 0 drops every record of training.

        Raises:
            UserError: a complete line is not a JSON object, or the file cannot be replaced.
        """
        if not self.path.exists():
            return
        kept = [record for record in read_metrics(self.path) if record["step"] <= step]
        lines = [json.dumps(_to_json(record), allow_nan=False) + "\n" for record in kept]
        atomic_file.write_atomically(self.path, "".join(lines).encode())


def read_metrics(path: str | Path) -> list[Record]:
    """Returns the records of a metrics file, in its order; a last line cut short is left out.

    Args:
        path: of a file that `MetricsLog` writes, perhaps at this moment.

    Raises:
        UserError: no such file, or a complete line that is not a JSON object with a "step".
    """
    path = storage.path(path)
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise UserError(
            f"no {path}; train first, or name the directory that --model_dir named.") from None
    complete = text[:text.rfind(b"\n") + 1]
    return [_parse(line, path, row) for row, line in enumerate(complete.splitlines(), start=1)]


def _parse(line: bytes, path: Path, row: int) -> Record:
    try:
        record = json.loads(line)
        _check_step(record)
    except (ValueError, TypeError):
        raise UserError(
            f"{path}:{row}: not a JSON object with an integer \"step\": {line[:60]!r}; "
            "delete the line.") from None
    return {name: _NOT_FINITE.get(value, value) if isinstance(value, str) else value
            for name, value in record.items()}


def _check_step(record: Mapping[str, Any]) -> None:
    if not isinstance(record["step"] if "step" in record else None, int):
        raise ValueError(f"a record needs an integer \"step\". Received: {record!r:.200}")


def _to_json(record: Mapping[str, Any]) -> Record:
    return {name: _finite(value) for name, value in record.items()}


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
