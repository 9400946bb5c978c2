"""Finds lines that contain a test text of a benchmark.

A contaminated line contains n consecutive words of a test text, or all words of a shorter one, as
in Brown et al. (2020), "Language Models are Few-Shot Learners", appendix C, with n = 13. That paper
drops the text around such words; cleaning drops the line.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from data_prep.cleaning.ngrams import ngram_hashes, word_hashes, words_of
from data_prep.settings import MIN_TEST_WORDS
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path

_PREFIX_SHIFT = np.uint64(42)  # Right shift that leaves the first 22 bits of a hash.
_FILE_KINDS = ("GLUE's .tsv, SQuAD's .json, MRQA's .jsonl(.gz), CoNLL's dev.txt, valid.txt or "
               "test.txt, or other .tsv, .csv and .jsonl")


@dataclasses.dataclass(frozen=True)
class BenchmarkTexts:
    """The texts of test files as hashes of n-grams of words."""

    lengths: tuple[int, ...]  # All n, ascending.
    ngrams: np.ndarray  # uint64 [G], ascending, without repetition.
    texts: int = 0  # Number of the texts.

    def to_dict(self) -> dict[str, str | int]:
        """Returns facts for a build's identity: a digest of the n-grams, and `texts`."""
        digest = hashlib.sha256(self.ngrams.astype("<u8").tobytes()).hexdigest()
        return {"decontaminate_sha256": digest, "decontaminate_texts": self.texts}

    def contaminated(self, lines: Sequence[str]) -> np.ndarray:
        """Returns bool [L], True for lines that contain an n-gram of a test text."""
        # The words of all lines in one array, uint64 [W], with the line of each, [W].
        words = [words_of(line) for line in lines]
        line_numbers = np.repeat(np.arange(len(lines)), [len(line) for line in words])
        hashes = word_hashes([word for line in words for word in line])
        contaminated = np.zeros(len(lines), bool)
        for length in self.lengths:
            # n-grams whose first bits a test text has; of these, the ones that it has itself.
            ngrams = ngram_hashes(hashes, length)
            likely = np.flatnonzero(self._prefixes[ngrams >> _PREFIX_SHIFT])
            index = np.searchsorted(self.ngrams[:-1], ngrams[likely])
            first = likely[self.ngrams[index] == ngrams[likely]]
            # The first and the last word of an n-gram must be of one line.
            within_line = line_numbers[first] == line_numbers[first + length - 1]
            contaminated[line_numbers[first[within_line]]] = True
        return contaminated

    @functools.cached_property
    def _prefixes(self) -> np.ndarray:
        """Returns bool [2^22], True for the first bits of an n-gram; it halves the search time."""
        prefixes = np.zeros(1 << 64 - int(_PREFIX_SHIFT), bool)
        prefixes[self.ngrams >> _PREFIX_SHIFT] = True
        return prefixes


def read(directory: Path, n: int) -> BenchmarkTexts:
    """Returns the texts of a directory's task files as n-grams, without training files.

    Files named "train*" and directories named "train" are training files. Raises `UserError` for
    a directory without task files or test texts, and for a damaged task file.
    """
    if not directory.is_dir():
        raise UserError(f"--decontaminate={directory} is not a directory; name a directory of task "
                        f"files: {_FILE_KINDS}.")
    files = [texts for path in _files(directory) if (texts := _texts(path)) is not None]
    if not files:
        raise UserError(f"--decontaminate={directory} holds no task files besides those for "
                        f"training; it takes {_FILE_KINDS}.")
    # Test texts of enough words: their n-grams, or all words of a shorter one.
    texts = [words for file in files for text in file
             if len(words := words_of(text)) >= MIN_TEST_WORDS]
    if not texts:
        raise UserError(f"--decontaminate={directory} holds no test text of at least "
                        f"{MIN_TEST_WORDS} words; name another directory, or leave the "
                        "flag out.")
    hashes = [ngram_hashes(word_hashes(words), min(n, len(words))) for words in texts]
    return BenchmarkTexts(tuple(sorted({min(n, len(words)) for words in texts})),
                          np.unique(np.concatenate(hashes)), len(texts))


def _files(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir(), key=str):
        if path.is_dir():
            yield from _files(path) if path.name != "train" else ()
        elif not path.name.startswith(("train", ".")):
            yield path


def _texts(path: Path) -> Iterable[str] | None:
    """Returns the texts of a task file, None for other files.

    The contexts of questions are ignored because they are published articles.
    """
    # Few builds need these modules.
    from electra_tf.tasks import column_files, glue, tables
    from electra_tf.tasks.question_files import read_questions

    # GLUE's splits by the directory; questions; tables; and words of CoNLL's columns.
    tasks = {task.directory: task for task in glue.TASKS.values()}
    task, split = tasks.get(path.parent.name), path.name.removesuffix(".tsv")
    if task and path.suffix == ".tsv" and split in (*task.dev, *task.tests):
        return [text for example in glue.read_split(task, path.parent, split)
                for text in example.texts]
    if path.name.endswith((".jsonl.gz", ".json")) or (
            path.suffix == ".jsonl" and "header" in next(iter(tables.read_rows(path))).values):
        return [example.question for example in read_questions(path, labelled=False)]
    if path.suffix in (".tsv", ".csv", ".jsonl"):
        # Strings and lists of words; labels and keys are too short to count.
        return [value if isinstance(value, str) else " ".join(value)
                for row in tables.read_rows(path) for value in row.values.values()
                if isinstance(value, str) or (
                    isinstance(value, list) and all(isinstance(item, str) for item in value))]
    if path.suffix == ".txt" and path.stem in ("dev", "valid", "test"):  # CoNLL.
        return [" ".join(example.words)
                for example in column_files.read_columns(path, tagged=False)]
    return None
