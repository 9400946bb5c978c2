"""Stores the results of all sweeps: one SQLite file with a row per score."""

import contextlib
import dataclasses
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from electra_tf.platform.errors import UserError

PRETRAINING = "pretraining"
"""The task of rows with measures of held-out text."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """A score of one run."""

    sweep: str
    budget: str
    variant: str
    seed: int
    task: str
    metric: str
    main: bool
    """True for the metric that compares runs; SQLite returns 0 or 1."""
    score: float | None
    """None if it is not a number."""
    steps: int
    """Pre-training steps."""
    tokens: int
    flops: float
    """FLOPs of the whole pre-training, in matrix multiplications."""
    settings: str
    """Non-default settings of the run, and the records' fingerprint, as JSON."""
    task_settings: str
    """The sweep's fine-tuning settings besides the task's own, as JSON; "" for none."""


_NAMES = tuple(field.name for field in dataclasses.fields(Row))
_TYPES = {str: "TEXT", int: "INTEGER", bool: "INTEGER"}


class Table:
    """An SQLite file; the rows of a finished run are written together."""

    def __init__(self, path: Path):
        """Opens or creates the file; `UserError` if SQLite cannot use it."""
        self._path = path
        columns = ", ".join(f"{field.name} {_TYPES.get(field.type, 'REAL')}"
                            for field in dataclasses.fields(Row))
        with self._open() as connection:
            connection.execute(f"CREATE TABLE IF NOT EXISTS scores ({columns}, "
                               "PRIMARY KEY (sweep, budget, variant, seed, task, metric))")

    def add(self, rows: list[Row]) -> None:
        """Writes rows, which replace those of the same run, task and metric."""
        with self._open() as connection:
            connection.executemany(
                f"INSERT OR REPLACE INTO scores ({', '.join(_NAMES)}) "
                f"VALUES ({', '.join('?' * len(_NAMES))})", map(dataclasses.astuple, rows))

    def rows(self, sweep: str = "", budget: str = "") -> list[Row]:
        """Returns the rows of a sweep and a budget, "" for all, in the order of insertion."""
        with self._open() as connection:
            found = connection.execute(
                f"SELECT {', '.join(_NAMES)} FROM scores "
                "WHERE (? = '' OR sweep = ?) AND (? = '' OR budget = ?) ORDER BY rowid",
                (sweep, sweep, budget, budget)).fetchall()
        return [Row(**dict(zip(_NAMES, values, strict=True))) for values in found]

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self._path, timeout=60)
            with contextlib.closing(connection), connection:
                yield connection
        except sqlite3.Error as error:
            raise UserError(f"the results table {self._path} can't be used: {error}") from error
