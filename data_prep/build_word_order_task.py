r"""Writes a small classification task, to find swapped words, and the text to pre-train for it.

    python -m data_prep.build_word_order_task --output_dir=task

pretraining.txt has the documents of embedded:docstrings, as a file that is faster to read.
The sentences of train.tsv come from the same docstrings. The docstrings of dev.tsv are in neither
file. One core with AVX-512 takes 11 s. The task is "bigram shift" of Conneau et al. (2018),
"What you can cram into a single vector".
"""

import functools
import random
import re

from absl import flags

from data_prep.documents import key_of
from data_prep.sources.embedded import TEXTS, docstrings
from electra_tf.core import atomic_file, command_line, errors, storage

ROWS = {"train": 6000, "dev": 1000}
_WORDS = range(8, 31)  # Allowed numbers of words in a sentence.
_END = re.compile(r"(?<=[.!?]) (?=[A-Z])")


def rows() -> dict[str, list[tuple[str, str]]]:
    """Returns split -> rows of text and label; no sentence occurs twice."""
    # Sentences in which words can be swapped, in the split of their docstring.
    sentences: dict[str, set[str]] = {"train": set(), "dev": set()}
    for text in docstrings():
        for paragraph in text.paragraphs:
            sentences["dev" if text.held_out else "train"].update(
                sentence for sentence in _END.split(paragraph)
                if len(sentence.split()) in _WORDS and _swappable(sentence.split()))
    # No sentence is in both; of each split those of lowest hash, whatever order they were read in.
    sentences["dev"] -= sentences["train"]
    return {split: [_row(sentence) for sentence in sorted(
                sentences[split], key=lambda sentence: key_of(sentence.encode()))[:ROWS[split]]]
            for split in sentences}


def _swappable(words: list[str]) -> list[int]:
    """Returns the indices of words that can be swapped with the next one, within the sentence."""
    return [index for index in range(1, len(words) - 2) if words[index].isalpha()
            and words[index + 1].isalpha() and words[index] != words[index + 1]]


def _row(sentence: str) -> tuple[str, str]:
    draw = random.Random(key_of(sentence.encode()))
    if draw.random() < 0.5:
        return sentence, "original"
    # Half of the sentences have two adjacent words swapped.
    words = sentence.split()
    index = draw.choice(_swappable(words))
    words[index:index + 2] = words[index + 1], words[index]
    return " ".join(words), "swapped"


def main() -> None:
    """Writes pretraining.txt, train.tsv and dev.tsv."""
    if not flags.FLAGS.output_dir:
        raise errors.UserError("--output_dir is missing; see --help for an example.")
    directory = storage.path(flags.FLAGS.output_dir)
    atomic_file.make_directory(directory)
    # The text for pre-training has no held-out docstring; then the rows of both splits.
    documents = TEXTS["docstrings"]()
    text = "\n\n".join(map("\n".join, documents)) + "\n"
    atomic_file.write_atomically(directory / "pretraining.txt", text.encode())
    print(f"{len(documents):,} documents: {directory / 'pretraining.txt'}")
    for split, examples in rows().items():
        lines = ["text\tlabel", *map("\t".join, examples), ""]
        atomic_file.write_atomically(directory / f"{split}.tsv", "\n".join(lines).encode())
        print(f"{len(examples):,} rows: {directory / f'{split}.tsv'}")


def define() -> None:
    """Defines the command's flag."""
    flags.DEFINE_string("output_dir", "", "Directory to write the three files to.")


run = functools.partial(command_line.run, main, define, summary=__doc__)

if __name__ == "__main__":
    run()
