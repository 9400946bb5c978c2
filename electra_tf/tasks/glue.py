"""Reads and writes the files of GLUE (Wang et al., 2019): nine tasks and a diagnostic set.

https://gluebenchmark.com/tasks has the data; https://gluebenchmark.com/submit takes a zip of files,
each "index<TAB>prediction".
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path
from electra_tf.tasks.files import check_labels, read_texts
from electra_tf.tasks.task import BINARY, Kind, TaskSpec, TextExample

ENTAILMENT = ("entailment", "not_entailment")
ALL_TASKS = "glue"
"""Value of `--task` that stands for all nine."""
_SUBMITTED = {"test_matched": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv",
              "diagnostic": "AX.tsv"}
"""Split -> file that the server takes; files of other splits have the name of the directory."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GlueTask:
    """A task of the benchmark: its columns, labels, metrics and splits."""

    name: str
    directory: str
    text_columns: tuple[str, ...]
    """Columns of the one or two texts."""
    label_column: str = "label"
    inputs: tuple[str, ...] = ()
    """Names of the texts in an export, if a column's name is not an identifier."""
    labels: tuple[str, ...] = BINARY
    """Labels by class, as the files write them; empty for regression."""
    metrics: tuple[str, ...] = ("accuracy",)
    dev: tuple[str, ...] = ("dev",)
    """Labelled splits that are not trained on."""
    tests: tuple[str, ...] = ("test",)
    """Splits without labels, whose predictions are submitted."""
    key_column: str = "index"
    """Column that names the test rows."""
    headerless: tuple[str, ...] | None = None
    """Columns of the labelled files; None if these have a header."""
    largest: float = 1.0
    """Largest label of a regression; the smallest is 0."""

    @property
    def spec(self) -> TaskSpec:
        """Returns the specification, which is stored with a trained model."""
        return TaskSpec(name=self.name, labels=self.labels, metrics=self.metrics,
                        kind=Kind.CLASSIFICATION if self.labels else Kind.REGRESSION,
                        scale=self.largest, text_columns=self.text_columns,
                        label_column=self.label_column)


TASKS = {task.name: task for task in (
    GlueTask(
        name="cola", directory="CoLA", text_columns=("sentence",), metrics=("mcc",),
        headerless=("source", "label", "mark", "sentence")),
    GlueTask(name="sst2", directory="SST-2", text_columns=("sentence",)),
    GlueTask(
        name="mrpc", directory="MRPC", text_columns=("#1 String", "#2 String"),
        label_column="Quality", inputs=("sentence1", "sentence2"), metrics=("accuracy", "f1")),
    GlueTask(
        name="stsb", directory="STS-B", text_columns=("sentence1", "sentence2"),
        label_column="score", labels=(), metrics=("pearson", "spearman"), largest=5.0),
    GlueTask(
        name="qqp", directory="QQP", text_columns=("question1", "question2"),
        label_column="is_duplicate", metrics=("accuracy", "f1"), key_column="id"),
    GlueTask(
        name="mnli", directory="MNLI", text_columns=("sentence1", "sentence2"),
        label_column="gold_label", labels=("contradiction", "entailment", "neutral"),
        dev=("dev_matched", "dev_mismatched"),
        tests=("test_matched", "test_mismatched", "diagnostic")),
    GlueTask(
        name="qnli", directory="QNLI", text_columns=("question", "sentence"), labels=ENTAILMENT),
    GlueTask(
        name="rte", directory="RTE", text_columns=("sentence1", "sentence2"), labels=ENTAILMENT),
    GlueTask(name="wnli", directory="WNLI", text_columns=("sentence1", "sentence2")),
)}
"""Name -> task, in the benchmark's order."""


def read_split(task: GlueTask, data_dir: Path, split: str,
               notes: list[str] | None = None) -> list[TextExample]:
    """Returns all examples of "train", of one of `task.dev`, or of one of `task.tests`.

    The file is in the task's directory, beside it, or in a directory of the split's name. Files of
    `task.tests` may be missing. A few broken lines are skipped, for example in QQP's published
    train.tsv; `notes` receives their number. `UserError` for another missing file, or a bad row or
    label.
    """
    paths = (data_dir / folder / f"{split}.tsv" for folder in (task.directory, "", split))
    path = next((path for path in paths if path.exists()), None)
    if split in task.tests:
        spec = dataclasses.replace(task.spec, key_column=task.key_column, label_column="")
        return [] if path is None else list(read_texts(
            path, spec, labelled=False, published=True, notes=notes))
    if path is None:
        raise UserError(f"{data_dir / task.directory / split}.tsv does not exist; --data_dir must "
                        "hold GLUE's files in their original layout. --task takes some of the "
                        "tasks too, separated by commas.")
    examples = list(read_texts(
        path, task.spec, columns=task.headerless, published=True, notes=notes))
    if task.labels:
        check_labels(path, examples, task.labels)
    return examples


def submission(task: GlueTask, split: str,
               records: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Returns name and content of the file that GLUE's server takes for a test split.

    `records` are in the file's order. Their "prediction" is a label word, which becomes a label of
    the files, or a number, which is clipped to the task's scale.
    """
    labels = dict(zip(task.spec.label_words, task.labels, strict=True))
    lines = ["index\tprediction\n"]
    for record in records:
        value = record["prediction"]
        label = labels[value] if task.labels else f"{min(max(value, 0.0), task.largest):.3f}"
        lines.append(f"{record['key']}\t{label}\n")
    return _SUBMITTED.get(split, f"{task.directory}.tsv"), "".join(lines)
