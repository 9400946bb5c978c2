"""Tasks by name, with all their examples."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from electra_tf.command_line import UserError
from electra_tf.tasks import files, glue
from electra_tf.tasks.examples import Example, Kind
from electra_tf.tasks.files import Columns
from electra_tf.tasks.squad import read_squad
from electra_tf.tasks.tagging import read_conll

METRICS = {
    Kind.CLASSIFICATION: ("accuracy", "f1_macro"),
    Kind.REGRESSION: ("pearson", "spearman", "mean_squared_error"),
    Kind.TAGGING: ("f1", "precision", "recall", "accuracy"),
    Kind.QUESTION_ANSWERING: ("f1", "exact_match"),
}
"""What is reported where a task doesn't say otherwise; the first is the main one."""

QUESTION_FILES = {"squad": ("train-v1.1.json", "dev-v1.1.json"),
                  "squad2": ("train-v2.0.json", "dev-v2.0.json")}
"""SQuAD's files as published: training and evaluation."""
TAGGING_FILES = {"chunk": ("train.txt", "test.txt"),
                 "ner": ("train.txt", "valid.txt", "test.txt")}
"""CoNLL-2000 has no file for development: its test file is what is scored."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Files:
    """The user's own files, or other names for a benchmark's."""

    train: Path | None = None
    dev: Path | None = None
    test: Path | None = None
    """To predict, without labels."""
    columns: Columns = Columns()
    strict: bool = False
    """Refuse questions whose answer doesn't stand at its offset."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """A task and its examples."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    """Classes or tags by index; empty for numbers and questions."""
    train: Sequence[Example]
    dev: Mapping[str, Sequence[Example]]
    """Split -> examples that are scored; the first decides what is best."""
    test: Mapping[str, Sequence[Example]]
    """Split -> examples to predict."""
    metrics: tuple[str, ...]
    """The first is the main one."""
    scale: float = 1.0
    """Of a regression's labels."""
    notes: tuple[str, ...] = ()
    """What a person should know of the data."""


def names() -> tuple[str, ...]:
    """Returns all names that `load` takes."""
    return (*glue.TASKS, *QUESTION_FILES, *TAGGING_FILES, *Kind)


def load(name: str, data_dir: Path | None, own: Files) -> Task:
    """Reads a task.

    Args:
        name: of a task of GLUE, "squad", "squad2", "chunk", "ner", or a kind for the user's own.
        data_dir: of a benchmark's files.
        own: files that stand in for a benchmark's, or are the user's own.

    Raises:
        UserError: an unknown name, a file that isn't given or can't be read.
    """
    if name in glue.TASKS:
        return _glue(glue.TASKS[name], _required(data_dir, "data_dir", name))
    if name in QUESTION_FILES:
        train, dev = (own_path or _required(data_dir, "data_dir", name) / file
                      for own_path, file in zip((own.train, own.dev), QUESTION_FILES[name],
                                                strict=True))
        return _questions(name, dataclasses.replace(own, train=train, dev=dev))
    if name in TAGGING_FILES:
        return _tagging_benchmark(name, _required(data_dir, "data_dir", name))
    if name not in set(Kind):
        raise UserError(f"--task must be one of {', '.join(names())}. Received: {name!r}")
    _required(own.train, "train", name)
    _required(own.dev, "dev", name)
    return _questions(name, own) if name == Kind.QUESTION_ANSWERING else _own(Kind(name), own)


def _glue(task: glue.GlueTask, data_dir: Path) -> Task:
    return Task(
        name=task.name, kind=task.kind, labels=task.labels, metrics=task.metrics,
        scale=task.largest or 1.0, train=glue.read_split(task, data_dir, "train"),
        dev={split: glue.read_split(task, data_dir, split) for split in task.dev},
        test={split: glue.read_split(task, data_dir, split) for split, _ in task.tests
              if glue.has_split(task, data_dir, split)})


def _questions(name: str, own: Files) -> Task:
    parts = {split: read_squad(path, strict=own.strict) for split, path in (
        ("train", own.train), ("dev", own.dev), ("test", own.test)) if path is not None}
    notes = tuple(
        f"{split}: {len(part.misplaced)} questions have an answer that doesn't stand at its "
        f"offset, {part.misplaced[0]!r} among them; these answers are left out"
        for split, part in parts.items() if part.misplaced)
    return Task(
        name=name, kind=Kind.QUESTION_ANSWERING, labels=(), notes=notes,
        metrics=METRICS[Kind.QUESTION_ANSWERING], train=parts["train"].examples,
        dev={"dev": parts["dev"].examples},
        test={"test": parts["test"].examples} if "test" in parts else {})


def _tagging_benchmark(name: str, data_dir: Path) -> Task:
    train, *others = (data_dir / file for file in TAGGING_FILES[name])
    examples = read_conll(train)
    dev = {path.stem: read_conll(path) for path in others}
    # Rare tags may occur in what is scored alone: they can't be found, but must be counted.
    labels = files.label_set([*examples, *(one for part in dev.values() for one in part)])
    return Task(name=name, kind=Kind.TAGGING, labels=labels, train=examples, dev=dev, test={},
                metrics=METRICS[Kind.TAGGING])


def _own(kind: Kind, own: Files) -> Task:
    def read(path: Path, labelled: bool) -> Sequence[Example]:
        if kind is Kind.TAGGING:
            return files.read_tagged(path, own.columns, labelled=labelled)
        return files.read_texts(path, own.columns, numbers=kind is Kind.REGRESSION,
                                labelled=labelled)

    train, dev = read(own.train, True), read(own.dev, True)
    labels = () if kind is Kind.REGRESSION else files.label_set(train)
    if kind is not Kind.REGRESSION:
        files.require_known_labels(own.dev, dev, labels)
    if kind is Kind.CLASSIFICATION and len(labels) < 2:
        raise UserError(f"{own.train} has one label only, {labels[0]!r}; there is nothing to "
                        "tell apart.")
    return Task(name=str(kind), kind=kind, labels=labels, train=train, dev={"dev": dev},
                test={"test": read(own.test, False)} if own.test else {}, metrics=METRICS[kind])


def _required(value: Path | None, flag: str, task: str) -> Path:
    if value is None:
        raise UserError(f"--{flag} is needed for --task={task}.")
    return value
