"""Prints the index of the experiment log, experiments/log/README.md.

    python -m experiments.log_index > experiments/log/README.md
"""

import dataclasses
import pathlib

from electra_tf.platform import command_line
from electra_tf.platform.errors import UserError

LOG = pathlib.Path(__file__).with_name("log")
INDEX = "README.md"
FIELDS = ("date", "question", "answer", "machine", "status")
CURRENT, OBSOLETE, SUPERSEDED = "current", "obsolete", "superseded by "

_HEAD = """# Experiment log

Measurements behind the statements of the documentation, newest first; failed approaches included.
Each entry has front matter (date, question, answer, machine, status), the command and the result.
An entry is *current*, *superseded by* a newer one, or *obsolete* if the measured code is gone.
Printed by `python -m experiments.log_index`.

Terms of the tables:

- *gen. loss (acc.)*: the generator's loss in nats and its accuracy over all selected positions.
  15 % of these are not masked: MLM accuracy on [MASK] is about (accuracy - 15 %) / 0.85.
- *AUC*, *recall*, *precision*: the discriminator against its own generator, on held-out text.
- *unigram*, *bigram*: AUC of fixed-noise evaluation, whose replacements are equal for all runs
  on the same records.
"""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One file of the log: its name without `.md`, and its front matter."""

    name: str
    date: str
    question: str
    answer: str
    machine: str
    status: str


def entries() -> list[Entry]:
    """Returns all entries, newest first.

    Raises:
        UserError: a file whose front matter is incomplete.
    """
    found = [_entry(path) for path in LOG.glob("*.md") if path.name != INDEX]
    return sorted(found, key=lambda entry: (entry.date, entry.name), reverse=True)


def index() -> str:
    """Returns the page."""
    lines = [_HEAD, "| date | question and answer | status |", "|---|---|---|"]
    for entry in entries():
        status = entry.status
        if status.startswith(SUPERSEDED):
            newer = status.removeprefix(SUPERSEDED)
            status = f"superseded by [{newer}]({newer}.md)"
        lines.append(f"| {entry.date} | [{entry.question}]({entry.name}.md) {entry.answer} "
                     f"| {status} |")
    return "\n".join(lines) + "\n"


def _entry(path: pathlib.Path) -> Entry:
    head = path.read_text(encoding="utf-8").split("---\n")[1]
    values = dict(line.split(": ", 1) for line in head.splitlines())
    if tuple(values) != FIELDS:
        raise UserError(f"{path}: the front matter must have {', '.join(FIELDS)}. "
                        f"Received: {', '.join(values)}")
    return Entry(path.stem, **values)


if __name__ == "__main__":
    command_line.run(lambda: print(index(), end=""), summary=__doc__, groups={})
