"""`metrics.jsonl`: one JSON object per interval, each step once even if a run is killed."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from electra_tf.core import atomic_file, storage, strict_json
from electra_tf.core.atomic_file import plain
from electra_tf.core.errors import UserError, note, shown
from electra_tf.core.settings import require
from electra_tf.core.storage import Path, read_bytes

Record = dict[str, Any]

TRAIN, EVAL, CHECKPOINT = KINDS = ("train", "eval", "checkpoint")
"""Kinds of records: an interval, an evaluation, a saved checkpoint."""
_MAX_BYTES = 256 << 20  # A record takes 300 bytes: room for 800,000 of them.


def append(path: Path, record: Mapping[str, Any]) -> None:
    """Writes one record as a line; numbers that aren't finite become null, and NaN when read.

    Raises `UserError` if the file can't be written.
    """
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(_line(record))
    except OSError as error:
        raise atomic_file.write_error(path, error) from error


def rewind(path: Path, step: int) -> list[Record]:
    """Drops the records after `step`, which a resumed run writes again.

    Returns the others. The file is replaced as a whole or not at all; a damaged one is refused. The
    last line of a killed process can be cut short; its step is trained again.
    """
    if not path.exists():
        return []
    kept = [record for record in read_metrics(path) if record["step"] <= step]
    atomic_file.write_atomically(path, "".join(map(_line, kept)).encode())
    return kept


def read_metrics(path: str | Path) -> list[Record]:
    """Returns the records of a metrics file, in its order; a last line cut short is left out.

    Lines may also end in CR or CR LF; blank lines are skipped. Raises `UserError` if the file is
    missing, or another line is no record.
    """
    path = storage.path(path)
    text = read_bytes(path, _MAX_BYTES, absent=(
        f"{path} does not exist; train first, or name another --model_dir."))
    # A killed process leaves a line without its end; the line's step is trained again.
    lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    if re.fullmatch(rb"\{[ -|~]*", lines[-1]):  # A record without its last brace.
        note(f"{path}:{len(lines)} is incomplete and ignored")
        del lines[-1]
    # Every other line is a record: a step, a kind and numbers, null for NaN.
    records = []
    for row, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = strict_json.parse(line)
            if (not isinstance(record, Mapping) or type(record.get("step")) is not int
                    or record["step"] < 0 or record.get("kind") not in KINDS):
                raise ValueError('not a JSON object with an integer "step", 0 or more, and a '
                                 f'"kind", {" or ".join(KINDS)}: {shown(record)}')
            for name, value in record.items():
                require(name == "kind" or isinstance(value, int | float | None), shown(name),
                        "a number, as all metrics are", value)
        except ValueError as error:
            raise UserError(f"{path}:{row}: {error}; delete the line.") from None
        records.append({name: math.nan if value is None else value
                        for name, value in record.items()})
    return records


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(plain(record), allow_nan=False) + "\n"
