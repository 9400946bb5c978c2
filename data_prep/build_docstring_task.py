r"""Writes a small classification task: the library that a docstring belongs to.

    python -m data_prep.build_docstring_task --output_dir=task

The text is that of --input=embedded:docstrings, with the names of the libraries masked. Functions
of one name are all in train.tsv or all in dev.tsv. Any CPU takes 20 s.
"""

import collections
import hashlib
import re

from absl import flags

from data_prep.sources.embedded import PACKAGES, docstrings
from electra_tf.platform import atomic_file, command_line, errors, storage

ROWS = {"train": 400, "dev": 150}
"""Rows of a package."""
_NAMES = re.compile(
    r"(?<![a-z])(numpy|np|scipy|sklearn|scikits?(-?learn)?|matplotlib|mpl|pyplot|plt|tensorflow|tf|"
    r"(tf[-_.])?keras)(?![a-z])", re.IGNORECASE)
_MASK = "library"

flags.DEFINE_string("output_dir", "", "Directory of train.tsv and dev.tsv.")


def rows() -> dict[str, list[tuple[str, str]]]:
    """Returns text and label of the rows of both splits, in an order without meaning."""
    found: dict[str, list[tuple[str, str]]] = {split: [] for split in ROWS}
    left = collections.Counter({(split, package): count for split, count in ROWS.items()
                                for package in PACKAGES})
    texts = {_NAMES.sub(_MASK, " ".join(one.paragraphs)): one for one in docstrings()}
    for text, one in sorted(texts.items(), key=lambda item: _hash(item[0])):
        split = "dev" if _hash(one.name) % 4 == 0 else "train"
        if left[split, one.package]:
            left[split, one.package] -= 1
            found[split].append((text, one.package))
    return found


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def main() -> None:
    """Writes both files."""
    if not flags.FLAGS.output_dir:
        raise errors.UserError("--output_dir is missing; see --help for an example.")
    directory = storage.path(flags.FLAGS.output_dir)
    atomic_file.make_directory(directory)
    for split, examples in rows().items():
        lines = ["text\tlabel", *map("\t".join, examples), ""]
        atomic_file.write_atomically(directory / f"{split}.tsv", "\n".join(lines).encode())
        print(f"{len(examples):,} rows: {directory / f'{split}.tsv'}")


def run() -> None:
    """Runs the command line."""
    command_line.run(main, summary=__doc__, groups={"Output": ("output_dir",)})


if __name__ == "__main__":
    run()
