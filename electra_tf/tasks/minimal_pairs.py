"""BLiMP (Warstadt et al., 2020): pairs of sentences of which one is grammatical."""

import dataclasses

from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks.tables import read_rows

NAME = "blimp"
"""Value of `--task`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paradigm:
    """One file: pairs that differ in one point of grammar."""

    name: str
    """The file's, without ".jsonl"."""
    good: tuple[str, ...]
    """Grammatical sentences."""
    bad: tuple[str, ...]
    """The other sentence of each pair."""


def read_blimp(data_dir: Path) -> tuple[Paradigm, ...]:
    """Returns the paradigms of a directory, in the order of their files' names.

    Args:
        data_dir: of BLiMP's `.jsonl` files as published, all 67 or some.

    Raises:
        UserError: there are none, or a line lacks one of its sentences.
    """
    paths = sorted(path for path in data_dir.iterdir() if path.suffix == ".jsonl"
                   ) if data_dir.is_dir() else []
    if not paths:
        raise UserError(f"--data_dir={data_dir} holds no .jsonl files; BLiMP has them in its "
                        "folder data/.")
    return tuple(_read(path) for path in paths)


def _read(path: Path) -> Paradigm:
    rows = [(row.text("sentence_good"), row.text("sentence_bad")) for row in read_rows(path)]
    good, bad = zip(*rows, strict=True)
    return Paradigm(name=path.stem, good=good, bad=bad)
