"""GLUE (Wang et al., 2019): nine tasks and the diagnostic set, in the benchmark's own files.

https://gluebenchmark.com/tasks has the data, https://gluebenchmark.com/submit says what the server
takes: one zip of the files below, each "index<TAB>prediction".
"""

import dataclasses
import math
from collections.abc import Sequence

from electra_tf.command_line import UserError
from electra_tf.storage import Path
from electra_tf.tasks.examples import Kind, TextExample
from electra_tf.tasks.tables import Row, read_rows

BINARY = ("0", "1")
ENTAILMENT = ("entailment", "not_entailment")
INFERENCE = ("contradiction", "entailment", "neutral")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GlueTask:
    """One row of the benchmark."""

    name: str
    """As `--task` takes it."""
    directory: str
    """Within the data directory."""
    texts: tuple[str, ...]
    """Columns of the one or two texts."""
    label: str
    """Column of the label."""
    inputs: tuple[str, ...] = ()
    """What an export calls the texts, where their columns are no plain words."""
    labels: tuple[str, ...] = BINARY
    """The label set, empty for regression; the index is the class."""
    label_words: tuple[str, ...] = ()
    """What labels mean that the files only number, by class."""
    metrics: tuple[str, ...] = ("accuracy",)
    """What is reported; the benchmark's score is their mean."""
    dev: tuple[str, ...] = ("dev",)
    """Splits with labels that aren't trained on."""
    tests: tuple[tuple[str, str], ...] = ()
    """Pairs of a split without labels and the name of the file that the server takes for it."""
    key: str = "index"
    """Column of the test rows' names."""
    headerless: tuple[str, ...] = ()
    """Columns of the labelled files, where these have no header."""
    test_texts: tuple[str, ...] = ()
    """Columns of the texts in the test files, where they differ."""
    largest: float = 0.0
    """Largest label of a regression; the smallest is 0."""

    @property
    def kind(self) -> Kind:
        """Returns which head the task takes."""
        return Kind.CLASSIFICATION if self.labels else Kind.REGRESSION


TASKS = {task.name: task for task in (
    GlueTask(
        name="cola", directory="CoLA", texts=("sentence",), label="label", metrics=("mcc",),
        label_words=("unacceptable", "acceptable"),
        headerless=("source", "label", "mark", "sentence"), tests=(("test", "CoLA.tsv"),)),
    GlueTask(
        name="sst2", directory="SST-2", texts=("sentence",), label="label",
        label_words=("negative", "positive"), tests=(("test", "SST-2.tsv"),)),
    GlueTask(
        name="mrpc", directory="MRPC", texts=("#1 String", "#2 String"), label="Quality",
        inputs=("sentence1", "sentence2"),
        label_words=("not_equivalent", "equivalent"),
        metrics=("accuracy", "f1"), tests=(("test", "MRPC.tsv"),)),
    GlueTask(
        name="stsb", directory="STS-B", texts=("sentence1", "sentence2"), label="score", labels=(),
        metrics=("pearson", "spearman"), largest=5.0, tests=(("test", "STS-B.tsv"),)),
    GlueTask(
        name="qqp", directory="QQP", texts=("question1", "question2"), label="is_duplicate",
        label_words=("not_duplicate", "duplicate"),
        metrics=("accuracy", "f1"), key="id", tests=(("test", "QQP.tsv"),)),
    GlueTask(
        name="mnli", directory="MNLI", texts=("sentence1", "sentence2"), label="gold_label",
        labels=INFERENCE, dev=("dev_matched", "dev_mismatched"),
        tests=(("test_matched", "MNLI-m.tsv"), ("test_mismatched", "MNLI-mm.tsv"),
               ("diagnostic", "AX.tsv"))),
    GlueTask(
        name="qnli", directory="QNLI", texts=("question", "sentence"), label="label",
        labels=ENTAILMENT, tests=(("test", "QNLI.tsv"),)),
    GlueTask(
        name="rte", directory="RTE", texts=("sentence1", "sentence2"), label="label",
        labels=ENTAILMENT, tests=(("test", "RTE.tsv"),)),
    GlueTask(
        name="wnli", directory="WNLI", texts=("sentence1", "sentence2"), label="label",
        label_words=("not_entailment", "entailment"), tests=(("test", "WNLI.tsv"),)),
)}
"""Name -> task, in the benchmark's order."""


def label_words(name: str, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Returns how a person calls the classes of a task: its labels, unless those are numbers.

    Args:
        name: of one of these tasks, or of any other.
        labels: as its files write them.
    """
    task = TASKS.get(name)
    return task.label_words if task and task.label_words and task.labels == labels else labels


def input_names(name: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Returns what an export calls the texts of a task: its columns, or plain words for them."""
    task = TASKS.get(name)
    return task.inputs if task and task.inputs and task.texts == texts else texts


def read_split(task: GlueTask, data_dir: Path, split: str) -> list[TextExample]:
    """Returns all examples of a file of the benchmark.

    Args:
        task: a value of `TASKS`.
        data_dir: holds the tasks' directories, or the files themselves.
        split: "train", one of `task.dev`, or the first of a pair of `task.tests`.

    Raises:
        UserError: no such file, a damaged row, or a label outside the label set; with the line.
    """
    is_test = any(split == name for name, _ in task.tests)
    path = _find(task, data_dir, split)
    columns = None if is_test or not task.headerless else task.headerless
    return [_example(task, row, is_test) for row in read_rows(path, columns=columns)]


def has_split(task: GlueTask, data_dir: Path, split: str) -> bool:
    """Tells whether a file is there; tests are needed for submitting only."""
    return any(path.exists() for path in _candidates(task, data_dir, split))


def submission(task: GlueTask, split: str, keys: Sequence[str],
               predictions: Sequence[str | float]) -> tuple[str, str]:
    """Returns name and content of the file that the benchmark's server takes.

    Args:
        task: a value of `TASKS`.
        split: the first of a pair of `task.tests`.
        keys: of the examples, in the file's order.
        predictions: as people read them; numbers for regression, clipped to the scale.
    """
    name = dict(task.tests)[split]
    # The server takes what the files hold.
    written = dict(zip(label_words(task.name, task.labels), task.labels, strict=True))
    words = [written[word] if isinstance(word, str) else f"{min(max(word, 0.0), task.largest):.3f}"
             for word in predictions]
    lines = ["index\tprediction",
             *(f"{key}\t{word}" for key, word in zip(keys, words, strict=True))]
    return name, "\n".join(lines) + "\n"


def _example(task: GlueTask, row: Row, is_test: bool) -> TextExample:
    if is_test:
        return TextExample(key=row.text(task.key), texts=tuple(map(row.text, task.texts)))
    return TextExample(key=str(row.line), texts=tuple(map(row.text, task.texts)),
                       label=_label(task, row))


def _label(task: GlueTask, row: Row) -> str | float:
    word = row.text(task.label)
    if task.labels:
        if word not in task.labels:
            raise row.error(f"{task.label!r} must be one of {', '.join(task.labels)}. "
                            f"Received: {word!r}")
        return word
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not 0.0 <= number <= task.largest:
        raise row.error(f"{task.label!r} must be a number from 0 to {task.largest:g}. "
                        f"Received: {word!r}")
    return number


def _find(task: GlueTask, data_dir: Path, split: str) -> Path:
    candidates = _candidates(task, data_dir, split)
    for path in candidates:
        if path.exists():
            return path
    raise UserError(f"no {candidates[0]}; --data_dir must hold GLUE's files in their original "
                    "layout; some of the tasks can be named alone, with commas between them.")


def _candidates(task: GlueTask, data_dir: Path, split: str) -> list[Path]:
    """In the task's directory; beside it; or, as the diagnostic set comes, in one of its own."""
    return [data_dir / task.directory / f"{split}.tsv", data_dir / f"{split}.tsv",
            data_dir / split / f"{split}.tsv"]
