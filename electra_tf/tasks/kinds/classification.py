"""Classification: one of several labels for a text or a pair; with it, all labels of texts."""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf
from scipy import stats
from sklearn import metrics

from electra_tf.config.finetuning import TaskConfig
from electra_tf.data.buckets import Row, RowBatch
from electra_tf.modeling.electra import TaskModel
from electra_tf.modeling.randomness import Randomness
from electra_tf.objectives.objective import Outcome, Ratio
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks import files, glue
from electra_tf.tasks.encoding import encode_texts
from electra_tf.tasks.examples import Kind, TextExample
from electra_tf.tasks.files import Columns, Files
from electra_tf.tasks.kinds.kind import (
    HuggingFaceHead,
    Outputs,
    Record,
    RowResults,
    Scored,
    ScoreObjective,
    ServedNetwork,
    Split,
    TaskKind,
    count,
    sum_where,
)
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.rows import RowEncoder, Tokens

Scorer = Callable[[np.ndarray, np.ndarray], float]


class TextKind(TaskKind):
    """A kind whose examples are one or two texts with a label."""

    suffix = ".tsv"

    def texts(self, example: TextExample) -> tuple[str, ...]:
        """Returns the one or two texts."""
        return example.texts

    def written(self, records: Sequence[Record]) -> str:
        """Returns a table of keys and predictions."""
        lines = ["key\tprediction", *(f"{one['key']}\t{one['prediction']}" for one in records)]
        return "\n".join(lines) + "\n"

    def served_inputs(self, spec: TaskSpec) -> tuple[str, ...]:
        """Returns the task's columns if all are identifiers, otherwise text_1 and text_2."""
        names = glue.input_names(spec.name, spec.texts)
        usable = all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) for name in names)
        return names if usable else tuple(f"text_{number + 1}" for number in range(len(names)))


class Classification(TextKind):
    """The kind of task that chooses one of several labels for a text or a pair."""

    kind = Kind.CLASSIFICATION
    metrics = ("accuracy", "f1_macro")
    hugging_face = HuggingFaceHead(
        architecture="ElectraForSequenceClassification",
        layers={"classifier.dense": ("hidden",), "classifier.out_proj": ("dense",)},
        settings={"task.hidden_layer": True}, problem_type="single_label_classification")

    def read(self, path: Path, columns: Columns, *, labelled: bool,
             strict: bool) -> Sequence[TextExample]:
        """Reads a table; see `files.read_texts`."""
        return files.read_texts(path, columns, labelled=labelled)

    def converted(self, name: str | None, labels: tuple[str, ...]) -> TaskSpec:
        """Returns GLUE's task if name and label words are one's, else a task of any texts."""
        task = glue.TASKS.get(name)
        if task and task.labels and labels == glue.label_words(name, task.labels):
            return TaskSpec.of_glue(task)
        return super().converted(name, labels)

    def of_spec(self, spec: TaskSpec, examples: Sequence[TextExample]) -> Sequence[TextExample]:
        """Returns examples with the labels of the task's files, given as such or as words."""
        return [dataclasses.replace(example, label=spec.as_in_files(example.label))
                for example in examples]

    def fitted(self, spec: TaskSpec, own: Files, train: Sequence[TextExample],
               dev: Sequence[TextExample]) -> TaskSpec:
        """Returns the task with the labels of the training file, at least two."""
        labels = files.labels_of_training(own, train, dev)
        if len(labels) < 2:
            raise UserError(f"{own.train} has one label only, {labels[0]!r}; there is nothing to "
                            "tell apart.")
        return dataclasses.replace(spec, labels=labels)

    def encode(self, spec: TaskSpec, examples: Sequence[TextExample], encoder: RowEncoder,
               config: TaskConfig) -> Split:
        """Encodes examples with the target "label", an int32 index, 0 if unknown."""
        index = {label: np.int32(number) for number, label in enumerate(spec.labels)}
        rows = labelled_rows(examples, encoder, [
            np.int32(0) if example.label is None else index[example.label]
            for example in examples])
        return Split(rows=rows, score=lambda results, _: score(spec, examples, results))

    def objective(self, spec: TaskSpec, config: TaskConfig) -> "ClassificationObjective":
        """Returns the cross entropy."""
        return ClassificationObjective(num_classes=len(spec.labels), dropout_rate=config.dropout,
                                       hidden_layer=config.hidden_layer)

    def confusion(self, spec: TaskSpec, examples: Sequence[TextExample],
                  records: Sequence[Record]) -> tuple[list[str], list[str]]:
        """Returns the labels of every text."""
        return ([spec.in_words(example.label) for example in examples],
                [record["prediction"] for record in records])

    def served_answer(self, network: ServedNetwork, *columns: tf.Tensor) -> Outputs:
        """Answers `label`, its probability `score`, and all `labels` with `probabilities`."""
        shares = self.served_scores(network, network.texts.encode(*columns))["probabilities"]
        labels = tf.constant(network.spec.label_words)
        repeated = tf.tile(labels[tf.newaxis], [tf.shape(shares)[0], 1])
        return {"label": tf.gather(labels, tf.argmax(shares, axis=-1)),
                "score": tf.reduce_max(shares, axis=-1), "labels": repeated,
                "probabilities": shares}

    def served_scores(self, network: ServedNetwork, tokens: Tokens) -> Outputs:
        """Returns `logits` and `probabilities`, float32 [B, classes]."""
        logits = network.head(network.first(tokens))
        return {"logits": logits, "probabilities": tf.nn.softmax(logits)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationObjective(ScoreObjective):
    """The cross entropy of one of several classes."""

    num_classes: int

    @property
    def outputs(self) -> int:
        """Returns the number of classes."""
        return self.num_classes

    def compute(self, model: TaskModel, inputs: RowBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Needs the target "label", int32 [B]; details hold "logits", float32 [B, classes]."""
        logits = self.score_first(model, inputs, randomness, training=training)
        labels = inputs.targets["label"]
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        right = tf.argmax(logits, axis=-1, output_type=tf.int32) == labels
        return Outcome({"loss": sum_where(losses, inputs.present)},
                       {"accuracy": Ratio(count(right & inputs.present), count(inputs.present))},
                       {"logits": logits})


def score(spec: TaskSpec, examples: Sequence[TextExample],
          results: Sequence[RowResults]) -> Scored:
    """Scores examples; results hold "logits" [classes] for each."""
    logits = np.stack([result["logits"] for result in results]).astype(np.float64)
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    chosen = logits.argmax(axis=1)
    records = [{"key": example.key, "prediction": spec.label_words[choice],
                "probability": float(share[choice])}
               for example, choice, share in zip(examples, chosen, shares, strict=True)]
    if any(example.label is None for example in examples):
        return Scored(records=records, scores={})
    truth = np.array([spec.labels.index(example.label) for example in examples])
    return Scored(records=records, scores=label_scores(spec.metrics, truth, chosen))


def labelled_rows(examples: Sequence[TextExample], encoder: RowEncoder,
                  labels: Sequence[np.ndarray]) -> list[Row]:
    """Returns one row per example, with the target "label"."""
    tokens = encode_texts([example.texts for example in examples], encoder)
    return [Row(*row, {"label": label}) for row, label in zip(tokens, labels, strict=True)]


def _correlation(of: Callable) -> Scorer:
    """Returns a scorer that gives NaN where either side is constant, without SciPy's warning."""
    def correlate(labels: np.ndarray, predictions: np.ndarray) -> float:
        if len(labels) < 2 or np.ptp(labels) == 0.0 or np.ptp(predictions) == 0.0:
            return np.nan
        return of(labels, predictions).statistic
    return correlate


def _f1(average: str) -> Scorer:
    return lambda labels, predictions: metrics.f1_score(
        labels, predictions, average=average, zero_division=0.0)


SCORERS: Mapping[str, Scorer] = {
    "accuracy": metrics.accuracy_score,
    "f1": _f1("binary"),
    "f1_macro": _f1("macro"),
    "mcc": metrics.matthews_corrcoef,
    "pearson": _correlation(stats.pearsonr),
    "spearman": _correlation(stats.spearmanr),
    "mean_squared_error": metrics.mean_squared_error,
}
"""Name -> function of labels and predictions, [N] each: classes as whole numbers, or numbers."""


def label_scores(names: Sequence[str], labels: np.ndarray,
                 predictions: np.ndarray) -> dict[str, float]:
    """Returns the named scores, keys of `SCORERS`, of N predictions."""
    return {name: float(SCORERS[name](labels, predictions)) for name in names}
