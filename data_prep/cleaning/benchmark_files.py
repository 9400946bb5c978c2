"""Test texts out of the files of benchmarks, in the formats that `electra_tf.tasks` reads.

For tests whose files are tables, every cell of enough words is a text. Of questions about a context
the question is one, not the context, which is an encyclopedia's or a newspaper's.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from data_prep.cleaning.benchmark_texts import BenchmarkTexts
from data_prep.cleaning.settings import SHORTEST_QUESTION
from data_prep.cleaning.word_ngrams import ngram_hashes, word_hashes, words_of
from electra_tf.platform.bounded import cannot_read
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks import files, glue, tables
from electra_tf.tasks.question_files import read_questions

_GLUE = {task.directory: task for task in glue.TASKS.values()}
_TAGGED = ("dev", "valid", "test")
"""Names of CoNLL's column files, but for ".txt": other .txt files are none."""
_WANTED = ("GLUE's .tsv, SQuAD's .json, MRQA's .jsonl(.gz), CoNLL's dev.txt, valid.txt or "
           "test.txt, or other .tsv, .csv and .jsonl")


def read(directory: Path, n: int) -> BenchmarkTexts:
    """Returns the texts of a directory's task files as n-grams, without training files.

    Files named "train*" and directories named "train" are training files.

    Raises:
        UserError: the directory does not exist, has no task file, or has one that cannot be read.
    """
    if not directory.is_dir():
        raise UserError(f"--decontaminate={directory} is no directory; name one of task files: "
                        f"{_WANTED}.")
    files = texts = 0
    hashes: list[np.ndarray] = []
    lengths: set[int] = set()
    for path in _files(directory):
        found = _texts(path)
        if found is None:
            continue
        files += 1
        for text in found:
            words = words_of(text)
            if len(words) >= SHORTEST_QUESTION:
                texts += 1
                lengths.add(min(n, len(words)))
                hashes.append(ngram_hashes(word_hashes(words), min(n, len(words))))
    if not files:
        raise UserError(f"--decontaminate={directory} holds no task files besides those for "
                        f"training; it takes {_WANTED}.")
    if not texts:
        raise UserError(f"--decontaminate={directory} holds no test text of at least "
                        f"{SHORTEST_QUESTION} words, and shorter ones aren't looked for; name "
                        "another directory, or leave the flag out.")
    return BenchmarkTexts(tuple(sorted(lengths)), np.unique(np.concatenate(hashes)), texts, files)


def _files(directory: Path) -> Iterator[Path]:
    try:
        paths = sorted(directory.iterdir(), key=str)
    except OSError as error:
        raise cannot_read(directory, error) from error
    for path in paths:
        if path.is_dir():
            yield from _files(path) if path.name != "train" else ()
        elif not path.name.startswith(("train", ".")):
            yield path


def _texts(path: Path) -> Iterable[str] | None:
    """Returns the texts of a task file; None if it is none."""
    task, split = _GLUE.get(path.parent.name), path.name.removesuffix(".tsv")
    if task and path.suffix == ".tsv" and split in (*task.dev, *dict(task.tests)):
        return [text for example in glue.read_split(task, path.parent, split)
                for text in example.texts]
    if path.name.endswith((".jsonl.gz", ".json")) or (path.suffix == ".jsonl" and _is_mrqa(path)):
        return [one.question for one in read_questions(path, labelled=False).examples]
    if path.suffix in (".tsv", ".csv", ".jsonl"):
        return (text for row in tables.read_rows(path) for text in _cells(row))
    if path.suffix == ".txt" and path.stem in _TAGGED:
        return [" ".join(one.words) for one in files.read_conll(path, tagged=False)]
    return None


def _is_mrqa(path: Path) -> bool:
    return "header" in next(iter(tables.read_rows(path))).values


def _cells(row: tables.TableRow) -> Iterator[str]:
    """Yields all texts of a row: labels and keys are too short to matter."""
    for value in row.values.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            yield " ".join(value)
