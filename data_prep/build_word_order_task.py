r"""Writes a small classification task, to find swapped words, and the text to pre-train for it.

    python -m data_prep.build_word_order_task --output_dir=task

pretraining.txt has the documents of --input=embedded:docstrings, and reading this file is quicker.
The sentences of train.tsv are from the same docstrings; those of dev.tsv are from docstrings that
are left out. One core with AVX-512 takes 11 s. The task is "bigram shift" of Conneau et al. (2018),
"What you can cram into a single vector".
"""

import random
import re
from collections.abc import Iterator

from absl import flags

from data_prep.documents import key_of
from data_prep.sources.embedded import TEXTS, Docstring, docstrings
from electra_tf.platform import atomic_file, command_line, errors, storage

ROWS = {"train": 6000, "dev": 1000}
_WORDS = range(8, 31)
"""Allowed numbers of words in a sentence."""
_END = re.compile(r"(?<=[.!?]) (?=[A-Z])")


def rows() -> dict[str, list[tuple[str, str]]]:
    """Returns split -> rows of text and label; no sentence occurs twice."""
    texts = docstrings()
    train = dict.fromkeys(_sentences([text for text in texts if not text.held_out]))
    dev = dict.fromkeys(_sentences([text for text in texts if text.held_out]))
    splits = {"train": train, "dev": dev.keys() - train.keys()}
    return {split: [_row(sentence) for sentence in
                    sorted(sentences, key=lambda one: key_of(one.encode()))[:ROWS[split]]]
            for split, sentences in splits.items()}


def _sentences(texts: list[Docstring]) -> Iterator[str]:
    """Yields the sentences of allowed length in which two words can be swapped."""
    for text in texts:
        for paragraph in text.paragraphs:
            for sentence in _END.split(paragraph):
                if len(sentence.split()) in _WORDS and _places(sentence.split()):
                    yield sentence


def _places(words: list[str]) -> list[int]:
    """Returns the places of words that can be swapped with the next one, within the sentence."""
    return [place for place in range(1, len(words) - 2) if words[place].isalpha()
            and words[place + 1].isalpha() and words[place] != words[place + 1]]


def _row(sentence: str) -> tuple[str, str]:
    draw = random.Random(key_of(sentence.encode()))
    if draw.random() < 0.5:
        return sentence, "original"
    words = sentence.split()
    place = draw.choice(_places(words))
    words[place:place + 2] = words[place + 1], words[place]
    return " ".join(words), "swapped"


def main() -> None:
    """Writes pretraining.txt, train.tsv and dev.tsv."""
    if not flags.FLAGS.output_dir:
        raise errors.UserError("--output_dir is missing; see --help for an example.")
    directory = storage.path(flags.FLAGS.output_dir)
    atomic_file.make_directory(directory)
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
    flags.DEFINE_string("output_dir", "", "Directory for pretraining.txt, train.tsv and dev.tsv.")


run = command_line.program(main, define, summary=__doc__)

if __name__ == "__main__":
    run()
