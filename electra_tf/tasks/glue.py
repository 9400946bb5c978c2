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
    """A task of the benchmark, and its files."""

    spec: TaskSpec
    directory: str
    inputs: tuple[str, ...] = ()
    """Names of the texts in an export, if a column's name is not an identifier."""
    dev: tuple[str, ...] = ("dev",)
    """Labelled splits that are not trained on."""
    tests: tuple[str, ...] = ("test",)
    """Splits without labels, whose predictions are submitted."""
    key_column: str = "index"
    """Column that names the test rows."""
    headerless: tuple[str, ...] | None = None
    """Columns of the labelled files; None if these have a header."""


def _spec(name: str, *text_columns: str, labels: tuple[str, ...] = BINARY,
          metrics: tuple[str, ...] = ("accuracy",), **fields: Any) -> TaskSpec:
    return TaskSpec(name=name, kind=Kind.CLASSIFICATION if labels else Kind.REGRESSION,
                    text_columns=text_columns, labels=labels, metrics=metrics, **fields)


_PAIR = ("sentence1", "sentence2")
TASKS = {task.spec.name: task for task in (
    GlueTask(directory="CoLA", spec=_spec("cola", "sentence", metrics=("mcc",)),
             headerless=("source", "label", "mark", "sentence")),
    GlueTask(directory="SST-2", spec=_spec("sst2", "sentence")),
    GlueTask(directory="MRPC", inputs=_PAIR, spec=_spec(
        "mrpc", "#1 String", "#2 String", label_column="Quality", metrics=("accuracy", "f1"))),
    GlueTask(directory="STS-B", spec=_spec(  # Numbers from 0 to the scale.
        "stsb", *_PAIR, label_column="score", labels=(), metrics=("pearson", "spearman"),
        scale=5.0)),
    GlueTask(directory="QQP", key_column="id", spec=_spec(
        "qqp", "question1", "question2", label_column="is_duplicate", metrics=("accuracy", "f1"))),
    GlueTask(directory="MNLI", dev=("dev_matched", "dev_mismatched"),
             tests=("test_matched", "test_mismatched", "diagnostic"), spec=_spec(
                 "mnli", *_PAIR, label_column="gold_label",
                 labels=("contradiction", "entailment", "neutral"))),
    GlueTask(directory="QNLI", spec=_spec("qnli", "question", "sentence", labels=ENTAILMENT)),
    GlueTask(directory="RTE", spec=_spec("rte", *_PAIR, labels=ENTAILMENT)),
    GlueTask(directory="WNLI", spec=_spec("wnli", *_PAIR)),
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
    if task.spec.labels:
        check_labels(path, examples, task.spec.labels)
    return examples


def submission(task: GlueTask, split: str,
               records: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Returns name and content of the file that GLUE's server takes for a test split.

    `records` are in the file's order. Their "prediction" is a label word, which becomes a label of
    the files, or a number, which is clipped to the task's scale.
    """
    spec, lines = task.spec, ["index\tprediction\n"]
    labels = dict(zip(spec.label_words, spec.labels, strict=True))
    for record in records:
        value = record["prediction"]
        label = labels[value] if labels else f"{min(max(value, 0.0), spec.scale):.3f}"
        lines.append(f"{record['key']}\t{label}\n")
    return _SUBMITTED.get(split, f"{task.directory}.tsv"), "".join(lines)
