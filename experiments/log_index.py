"""Writes the index of the experiment log to experiments/log/README.md, below its text.

    python -m experiments.log_index
"""

import pathlib
from typing import NamedTuple

from electra_tf.core import command_line
from electra_tf.core.errors import UserError

LOG = pathlib.Path(__file__).with_name("log")
CURRENT, OBSOLETE, SUPERSEDED = "current", "obsolete", "superseded by "
_TABLE = "| date | question and answer | status |\n|---|---|---|\n"


class LogEntry(NamedTuple):
    """The front matter of one file of the log, and its name without `.md`."""

    date: str
    question: str
    answer: str
    machine: str
    status: str
    name: str


def entries() -> list[LogEntry]:
    """Returns all entries, newest first; `UserError` for an incomplete front matter."""
    log = []
    for path in sorted(LOG.glob("2*.md"), reverse=True):  # Their names begin with the date.
        # The front matter: lines "name: value" between two lines of dashes.
        head = path.read_text(encoding="utf-8").split("---\n")[1]
        values = dict(line.split(": ", 1) for line in head.splitlines()) | {"name": path.stem}
        if tuple(values) != LogEntry._fields:
            raise UserError(
                f"{path}: the front matter must have {', '.join(LogEntry._fields[:-1])}.")
        log.append(LogEntry(**values))
    return log


def index() -> str:
    """Returns the page: the text that it has, and a new table."""
    page = (LOG / "README.md").read_text(encoding="utf-8").partition(_TABLE)[0] + _TABLE
    for entry in entries():
        newer = entry.status.removeprefix(SUPERSEDED)
        status = entry.status if newer == entry.status else f"superseded by [{newer}]({newer}.md)"
        question = f"[{entry.question}]({entry.name}.md)"
        page += f"| {entry.date} | {question} {entry.answer} | {status} |\n"
    return page


if __name__ == "__main__":
    command_line.run(lambda: (LOG / "README.md").write_text(index(), encoding="utf-8"),
                     summary=__doc__, groups={})
