"""GLUE (Wang et al., 2019): nine tasks and the diagnostic set, and the files of the benchmark.

https://gluebenchmark.com/tasks has the data; https://gluebenchmark.com/submit takes a zip of files,
each "index<TAB>prediction".
"""

import contextlib
import dataclasses
from collections.abc import Sequence

from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks.examples import Kind, TextExample
from electra_tf.tasks.tables import TableRow, read_rows

BINARY = ("0", "1")
ENTAILMENT = ("entailment", "not_entailment")
INFERENCE = ("contradiction", "entailment", "neutral")
ALL = "glue"
"""Value of `--task` that stands for all nine."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GlueTask:
    """One row of the benchmark."""

    name: str
    """Value of `--task`."""
    directory: str
    """Within the data directory."""
    texts: tuple[str, ...]
    """Columns of the one or two texts."""
    label: str = "label"
    inputs: tuple[str, ...] = ()
    """Names of the texts in an export, where a column's name is not an identifier."""
    labels: tuple[str, ...] = BINARY
    """The label set, empty for regression; the index is the class."""
    label_words: tuple[str, ...] = ()
    """Words for labels that the files only number, by class."""
    metrics: tuple[str, ...] = ("accuracy",)
    """The benchmark's score is their mean."""
    dev: tuple[str, ...] = ("dev",)
    """Labelled splits that are not trained on."""
    tests: tuple[tuple[str, str], ...] = ()
    """Pairs of a split without labels and the name of the file that the server takes for it."""
    key: str = "index"
    """Column that names the test rows."""
    headerless: tuple[str, ...] = ()
    """Columns of the labelled files, where these have no header."""
    largest: float = 0.0
    """Largest label of a regression; the smallest is 0."""

    @property
    def kind(self) -> Kind:
        """Returns the task's kind, which decides its head."""
        return Kind.CLASSIFICATION if self.labels else Kind.REGRESSION


TASKS = {task.name: task for task in (
    GlueTask(
        name="cola", directory="CoLA", texts=("sentence",), metrics=("mcc",),
        label_words=("unacceptable", "acceptable"),
        headerless=("source", "label", "mark", "sentence"), tests=(("test", "CoLA.tsv"),)),
    GlueTask(
        name="sst2", directory="SST-2", texts=("sentence",),
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
        name="qnli", directory="QNLI", texts=("question", "sentence"),
        labels=ENTAILMENT, tests=(("test", "QNLI.tsv"),)),
    GlueTask(
        name="rte", directory="RTE", texts=("sentence1", "sentence2"),
        labels=ENTAILMENT, tests=(("test", "RTE.tsv"),)),
    GlueTask(
        name="wnli", directory="WNLI", texts=("sentence1", "sentence2"),
        label_words=("not_entailment", "entailment"), tests=(("test", "WNLI.tsv"),)),
)}
"""Name -> task, in the benchmark's order."""


def label_words(name: str, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Returns readable names of a task's labels: words for GLUE's numbered classes."""
    task = TASKS.get(name)
    return task.label_words if task and task.label_words and task.labels == labels else labels


def read_split(task: GlueTask, data_dir: Path, split: str) -> list[TextExample]:
    """Returns all examples of "train", one of `task.dev`, or the first of a pair of `task.tests`.

    `data_dir` holds the tasks' directories, or the files themselves. `UserError` for no such file,
    a damaged row, or a label outside the label set.
    """
    path = find_split(task, data_dir, split)
    if path is None:
        raise UserError(f"no {data_dir / task.directory / split}.tsv; --data_dir must hold GLUE's "
                        "files in their original layout; some of the tasks can be named alone, "
                        "with commas between them.")
    is_test = split in dict(task.tests)
    rows = read_rows(path, columns=None if is_test else task.headerless or None)
    return [TextExample(key=row.text(task.key) if is_test else str(row.line),
                        texts=tuple(map(row.text, task.texts)),
                        label=None if is_test else _label(task, row)) for row in rows]


def find_split(task: GlueTask, data_dir: Path, split: str) -> Path | None:
    """Returns a file of the task's directory, beside it, or in a directory of its own, if any."""
    candidates = (data_dir / folder / f"{split}.tsv" for folder in (task.directory, "", split))
    return next((path for path in candidates if path.exists()), None)


def submission(task: GlueTask, split: str, keys: Sequence[str],
               predictions: Sequence[str | float]) -> tuple[str, str]:
    """Returns name and content of the file that the benchmark's server takes for a test split.

    `keys` are in the file's order. `predictions` are label words, or numbers, which are clipped to
    the task's scale.
    """
    # The server takes the labels of the files.
    written = dict(zip(label_words(task.name, task.labels), task.labels, strict=True))
    words = [written[word] if isinstance(word, str) else f"{min(max(word, 0.0), task.largest):.3f}"
             for word in predictions]
    lines = ["index\tprediction",
             *(f"{key}\t{word}" for key, word in zip(keys, words, strict=True))]
    return dict(task.tests)[split], "\n".join(lines) + "\n"


def _label(task: GlueTask, row: TableRow) -> str | float:
    word = row.text(task.label)
    if word in task.labels:
        return word
    allowed = f"one of {', '.join(task.labels)}"
    if not task.labels:
        allowed = f"a number from 0 to {task.largest:g}"
        with contextlib.suppress(ValueError):
            if 0.0 <= float(word) <= task.largest:
                return float(word)
    raise row.error(f"{task.label!r} must be {allowed}. Received: {word!r}")
