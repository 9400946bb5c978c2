"""BLiMP (Warstadt et al., 2020): pairs of sentences of which one is grammatical."""

from collections.abc import Mapping, Sequence

from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks.tables import read_rows

NAME = "blimp"
"""Value of `--task`."""
Pairs = Mapping[str, Sequence[tuple[str, str]]]
"""Paradigm -> pairs that differ in one point of grammar, the grammatical sentence first."""


def read_blimp(data_dir: Path) -> Pairs:
    """Returns the paradigms of BLiMP's `.jsonl` files by name; `UserError` if one is bad."""
    paths = sorted(path for path in data_dir.iterdir() if path.suffix == ".jsonl"
                   ) if data_dir.is_dir() else []
    if not paths:
        raise UserError(f"--data_dir={data_dir} holds no .jsonl files; BLiMP has them in its "
                        "folder data/.")
    return {path.stem: [(row.text("sentence_good"), row.text("sentence_bad"))
                        for row in read_rows(path)] for path in paths}
