"""GLUE (Wang et al., 2019): nine tasks and the diagnostic set, as a table; `glue_files` reads them.

https://gluebenchmark.com/tasks has the data.
"""

import dataclasses

from electra_tf.tasks.examples import Kind

BINARY = ("0", "1")
ENTAILMENT = ("entailment", "not_entailment")
INFERENCE = ("contradiction", "entailment", "neutral")
AVERAGE = "glue_average"
"""Value of `--task` that prints a table of finished runs."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GlueTask:
    """One row of the benchmark."""

    name: str
    """Value of `--task`."""
    directory: str
    """Within the data directory."""
    texts: tuple[str, ...]
    """Columns of the one or two texts."""
    label: str
    """Column of the label."""
    inputs: tuple[str, ...] = ()
    """Names of the texts in an export, where their columns are no plain words."""
    labels: tuple[str, ...] = BINARY
    """The label set, empty for regression; the index is the class."""
    label_words: tuple[str, ...] = ()
    """Words for labels that the files only number, by class."""
    metrics: tuple[str, ...] = ("accuracy",)
    """Reported metrics; the benchmark's score is their mean."""
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
