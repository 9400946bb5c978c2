"""Classification and regression: a label or a number for a text or a pair."""

import abc
import dataclasses
import functools
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from scipy import special, stats
from sklearn import metrics

from electra_tf.config.finetuning import TaskConfig
from electra_tf.core.errors import UserError
from electra_tf.data.buckets import RowBatch
from electra_tf.modeling.rng import Rng
from electra_tf.modeling.task_heads import TaskNetwork
from electra_tf.objectives.objective import LossOutput, fraction
from electra_tf.tasks import files, glue
from electra_tf.tasks.files import Files
from electra_tf.tasks.kinds import base, windows
from electra_tf.tasks.task import Examples, Kind, TaskSpec
from electra_tf.text.rows import RowEncoder, Tokens

Predictions = tuple[Sequence[base.Record], np.ndarray]


class ClassificationObjective(base.TaskObjective):
    """The cross entropy of one of several classes."""

    target = "label"

    def compute(self, model: TaskNetwork, inputs: RowBatch, rng: Rng,
                *, training: bool) -> LossOutput:
        """Needs the target "label", int32 [B]; `per_example` has "logits", float32 [B, classes]."""
        logits = windows.head_outputs(self, model, inputs, rng if training else None)
        labels = inputs.targets["label"]
        losses = self.label_losses(labels, logits)
        is_correct = tf.argmax(logits, axis=-1, output_type=tf.int32) == labels
        return LossOutput({"loss": base.sum_where(losses, inputs.present)},
                          {"accuracy": fraction(is_correct, inputs.present)}, {"logits": logits})


class RegressionObjective(base.TaskObjective):
    """The squared error of numbers divided by the scale: 5 for STS-B, as in Google's code."""

    def compute(self, model: TaskNetwork, inputs: RowBatch, rng: Rng,
                *, training: bool) -> LossOutput:
        """Needs "label", float32 [B], (number - offset) / scale; so are "predictions"."""
        outputs = windows.head_outputs(self, model, inputs, rng if training else None)
        scores = tf.squeeze(outputs, axis=-1)
        losses = tf.square(scores - inputs.targets["label"])
        return LossOutput({"loss": base.sum_where(losses, inputs.present)}, {},
                          {"predictions": scores})


class TextKind(base.TaskKind):
    """A task kind whose examples are one or two texts with a label."""

    def training_examples(self, examples: Examples, notes: list[str]) -> Examples:
        """Returns the examples that have a text; `files.read_texts` counts the others."""
        return [example for example in examples if not files.is_empty(example.texts, self.kind)]

    def baseline(self, spec: TaskSpec, train: Examples, examples: Examples) -> base.Baseline:
        """Predicts the most frequent label of the training examples, or their mean."""
        known, truth = _numbers(spec, train), _numbers(spec, examples)
        constant = (np.bincount(known, minlength=1)[:len(spec.labels)].argmax() if spec.labels
                    else known.mean())
        answer = spec.label_words[constant] if spec.labels else f"the mean, {constant:.4g}"
        return f"always {answer}", label_scores(spec.metrics, truth, np.full(len(truth), constant))

    def encode(self, spec: TaskSpec, examples: Examples, encoder: RowEncoder,
               config: TaskConfig) -> base.Split:
        """Encodes examples with the target "label", an index or a scaled number, 0 if unknown."""
        encoded, lengths = windows.encode([example.texts for example in examples], encoder, config)
        target = np.int32 if spec.labels else np.float32
        index = {label: number for number, label in enumerate(spec.labels)}
        labels = [0 if example.label is None else index.get(example.label, 0) if index
                  else (example.label - spec.offset) / spec.scale for example in examples]
        rows = [dataclasses.replace(row, targets={"label": target(label)})
                for row, label in zip(encoded, labels, strict=True)]
        return base.Split(
            rows, score=lambda results, _: self.score(spec, examples, results), lengths=lengths,
            limit=encoder.max_length, outcome=windows.OUTCOMES[config.long_texts])

    def objective(self, spec: TaskSpec, config: TaskConfig) -> base.TaskObjective:
        """Returns the objective; `UserError` for windows that don't fit the task."""
        windows.require_consistent(spec, config)
        return super().objective(spec, config)

    def score(self, spec: TaskSpec, examples: Examples, results: base.Results) -> base.Scored:
        """Returns predictions and scores from the objective's outputs for each example."""
        words = dict(zip(spec.labels, spec.label_words, strict=True))
        partial_records, predictions = self.predictions(spec, results)
        records = [{"key": example.key, "texts": list(example.texts)} | (
            {} if example.label is None else {"gold": words.get(example.label, example.label)})
            | record for example, record in zip(examples, partial_records, strict=True)]
        if any(example.label is None for example in examples):
            return base.Scored(records=records, scores={})
        return base.Scored(records=records, scores=label_scores(
            spec.metrics, _numbers(spec, examples), predictions))

    @abc.abstractmethod
    def predictions(self, spec: TaskSpec, results: base.Results) -> Predictions:
        """Returns the predictions as parts of records, and as classes or numbers, [N]."""

    def formatters(self, spec: TaskSpec) -> Mapping[str, base.Formatter]:
        """Returns a table of keys, predictions, probabilities, true labels and texts."""
        columns = [f"text_{number}" if name in ("key", "prediction", "gold") else name
                   for number, name in enumerate(self.served_inputs(spec), start=1)]
        return {".tsv": lambda records: base.table([
            {"key": record["key"], "prediction": record["prediction"]}
            | {f"probability of {label}": f"{probability:.6g}"
               for label, probability in record.get("probabilities", {}).items()}
            | ({"gold": record["gold"]} if "gold" in record else {})
            | dict(zip(columns, record["texts"], strict=True)) for record in records])}

    def served_inputs(self, spec: TaskSpec) -> tuple[str, ...]:
        """Returns the task's columns if all are identifiers, otherwise text_1 and text_2."""
        task = glue.TASKS.get(spec.name)
        is_glue = task and task.inputs and task.spec.text_columns == spec.text_columns
        names = task.inputs if is_glue else spec.text_columns
        usable = all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) for name in names)
        return names if usable else tuple(f"text_{number + 1}" for number in range(len(names)))


class Classification(TextKind):
    """The task kind that predicts one of several labels for a text or a pair."""

    kind = Kind.CLASSIFICATION
    metrics = ("accuracy", "f1_macro")
    objective_class = ClassificationObjective
    activation = staticmethod(tf.nn.softmax)
    hugging_face = base.HuggingFaceHead(
        architecture="ElectraForSequenceClassification",
        layers={"classifier.dense": ("hidden",), "classifier.out_proj": ("dense",)},
        settings={"task.hidden_layer": True}, problem_type="single_label_classification")

    def predictions(self, spec: TaskSpec, results: base.Results) -> Predictions:
        """Returns label words with their probabilities, and classes; results hold "logits"."""
        logits = np.stack([result["logits"] for result in results]).astype(np.float64)
        classes, words = logits.argmax(axis=1), spec.label_words
        return [{"prediction": words[number], "probability": float(probabilities[number]),
                 "probabilities": dict(zip(words, probabilities.tolist(), strict=True))}
                for number, probabilities in zip(
                    classes, special.softmax(logits, axis=1), strict=True)], classes

    def served_answer(self, network: base.ServedNetwork, *columns: tf.Tensor) -> base.Outputs:
        """Answers `label`, its probability `score`, and all `labels` with `probabilities`."""
        probabilities = self.activation(windows.served_outputs(network, *columns))
        labels = tf.constant(network.spec.label_words)
        return {"label": tf.gather(labels, tf.argmax(probabilities, axis=-1)),
                "score": tf.reduce_max(probabilities, axis=-1),
                "labels": tf.tile(labels[tf.newaxis], [tf.shape(probabilities)[0], 1]),
                "probabilities": probabilities}

    def served_scores(self, network: base.ServedNetwork, tokens: Tokens) -> base.Outputs:
        """Returns `logits` and `probabilities`, float32 [B, classes]."""
        logits = network.head(network.first(tokens))
        return {"logits": logits, "probabilities": self.activation(logits)}


class Regression(TextKind):
    """The task kind that predicts a number for a text or a pair."""

    kind = Kind.REGRESSION
    metrics = ("pearson", "spearman", "mean_squared_error")
    objective_class = RegressionObjective
    hugging_face = dataclasses.replace(Classification.hugging_face, problem_type="regression")

    def fit_spec(self, spec: TaskSpec, user_files: Files, train: Examples,
                 dev: Examples) -> TaskSpec:
        """Returns the task with the mean and the standard deviation of the training labels."""
        numbers = [example.label for example in train]
        offset, scale = statistics.fmean(numbers), statistics.pstdev(numbers)
        if scale == 0.0:
            raise UserError(f"{', '.join(map(str, user_files.train))} has one number only, "
                            f"{offset:g}; regression needs at least two.")
        return dataclasses.replace(spec, scale=scale, offset=offset)

    def predictions(self, spec: TaskSpec, results: base.Results) -> Predictions:
        """Returns numbers on the task's scale; results hold "predictions"."""
        numbers = [float(result["predictions"]) * spec.scale + spec.offset for result in results]
        return [{"prediction": number} for number in numbers], np.array(numbers)

    def served_answer(self, network: base.ServedNetwork, *columns: tf.Tensor) -> base.Outputs:
        """Answers a `score` on the task's scale."""
        return _in_units(network.spec, windows.served_outputs(network, *columns))

    def served_scores(self, network: base.ServedNetwork, tokens: Tokens) -> base.Outputs:
        """Returns `score`, float32 [B]."""
        return _in_units(network.spec, network.head(network.first(tokens)))


def _in_units(spec: TaskSpec, outputs: tf.Tensor) -> base.Outputs:
    """Returns outputs of a regression's head, float32 [B, 1], on the task's scale."""
    scale, offset = spec.float32_units
    return {"score": tf.squeeze(outputs, axis=-1) * scale + offset}


def label_scores(names: Sequence[str], labels: np.ndarray,
                 predictions: np.ndarray) -> dict[str, float]:
    """Returns the named scores, keys of `SCORERS`, of N predictions."""
    return {name: float(SCORERS[name](labels, predictions)) for name in names}


def _numbers(spec: TaskSpec, examples: Examples) -> np.ndarray:
    """Returns classes or numbers of examples, [N]; labels that the task lacks are more classes."""
    labels = [example.label for example in examples]
    classes = dict.fromkeys((*spec.labels, *labels))
    index = {label: number for number, label in enumerate(classes)}
    return np.array([index[label] for label in labels] if spec.labels else labels)


def _correlation(correlate: Callable[..., Any], labels: np.ndarray,
                 predictions: np.ndarray) -> float:
    """Returns NaN where either side is constant, without SciPy's warning."""
    if len(labels) < 2 or np.ptp(labels) == 0.0 or np.ptp(predictions) == 0.0:
        return np.nan
    return correlate(labels, predictions).statistic


_f1 = functools.partial(metrics.f1_score, zero_division=0.0)
SCORERS: Mapping[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": metrics.accuracy_score,
    "f1": _f1,
    "f1_macro": functools.partial(_f1, average="macro"),
    "mcc": metrics.matthews_corrcoef,
    "pearson": functools.partial(_correlation, stats.pearsonr),
    "spearman": functools.partial(_correlation, stats.spearmanr),
    "mean_squared_error": metrics.mean_squared_error,
}
"""Name -> function of labels and predictions, [N] each: indices of classes, or numbers."""
