"""Multi-label classification: any number of labels for a text or a pair, also none."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from scipy import special
from sklearn import metrics

from electra_tf.config.finetuning import TaskConfig
from electra_tf.core.errors import UserError, shown
from electra_tf.data.buckets import RowBatch
from electra_tf.modeling.rng import Rng
from electra_tf.modeling.task_heads import TaskNetwork
from electra_tf.objectives.objective import LossOutput
from electra_tf.tasks import files
from electra_tf.tasks.files import Files
from electra_tf.tasks.kinds import base, classification, windows
from electra_tf.tasks.task import Examples, Kind, TaskSpec
from electra_tf.text.rows import RowEncoder

NO_LABEL = "(none)"
"""Stands for the other side of a missed label or a false alarm."""


class MultiLabelObjective(base.TaskObjective):
    """The binary cross entropies of all labels; their mean is PyTorch's `BCEWithLogitsLoss`."""

    def compute(self, model: TaskNetwork, inputs: RowBatch, rng: Rng,
                *, training: bool) -> LossOutput:
        """Needs the target "labels", float32 [B, labels]; `per_example` has "logits" like it."""
        logits = windows.head_outputs(self, model, inputs, rng if training else None)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(inputs.targets["labels"], logits)
        return LossOutput({"loss": base.sum_where(tf.reduce_mean(losses, axis=-1), inputs.present)},
                          {}, {"logits": logits})


class MultiLabel(classification.Classification):
    """The task kind that predicts a set of labels for a text or a pair."""

    kind = Kind.MULTILABEL
    metrics = ("f1_micro", "f1_macro", "roc_auc_macro", "average_precision_macro")
    objective_class = MultiLabelObjective
    hugging_face = dataclasses.replace(
        classification.Classification.hugging_face, problem_type="multi_label_classification")
    activation = staticmethod(tf.sigmoid)

    def fit_spec(self, spec: TaskSpec, user_files: Files, train: Examples,
                 dev: Examples) -> TaskSpec:
        """Returns the task with the labels of the training file, or its columns of indicators."""
        columns = tuple(files.label_columns(spec.kind, spec.label_column))
        if len({example.label for example in train}) < 2:
            raise UserError(f"{', '.join(map(str, user_files.train))}: all texts have the same "
                            f"labels, {shown(list(train[0].label))}; --label_column selects the "
                            "column.")
        return dataclasses.replace(spec, labels=columns if len(columns) > 1 else files.label_set(
            train if user_files.dev else [*train, *dev]))

    def baseline(self, spec: TaskSpec, train: Examples, examples: Examples) -> base.Baseline:
        """Predicts the most frequent labels, as many as have the best micro F1 in training."""
        labels, truth = _truth(spec, examples)
        counts = _truth(spec, train)[1][:, :len(spec.labels)].sum(axis=0)
        order = np.argsort(-counts, kind="stable")
        # The k most frequent labels have this micro F1, halved.
        f1 = np.cumsum(counts[order]) / (counts.sum() + len(train) * np.arange(1, len(order) + 1))
        best = order[:f1.argmax() + 1]
        predicted = np.tile(np.isin(np.arange(len(counts)), best), [len(truth), 1])
        return (f"always {', '.join(labels[index] for index in best)}",
                set_scores(truth, predicted, 1.0))

    def encode(self, spec: TaskSpec, examples: Examples, encoder: RowEncoder,
               config: TaskConfig) -> base.Split:
        """Encodes examples with the target "labels", float32 [labels], 0 if unknown."""
        split = super().encode(spec, examples, encoder, config)
        targets = _truth(spec, examples)[1][:, :len(spec.labels)].astype(np.float32)
        return split._replace(
            rows=[dataclasses.replace(row, targets={"labels": target})
                  for row, target in zip(split.rows, targets, strict=True)],
            score=functools.partial(self._score, spec, examples, config))

    def _score(self, spec: TaskSpec, examples: Examples, config: TaskConfig,
               results: base.Results, threshold: float | None) -> base.Scored:
        """Returns predictions and scores; a `threshold` None is the setting, or searched."""
        _, truth = _truth(spec, examples)
        probabilities = special.expit(
            np.stack([result["logits"] for result in results]).astype(np.float64))
        is_known, searched = all(example.label is not None for example in examples), {}
        if is_known and not (threshold or config.label_threshold):
            threshold = searched["threshold"] = best_threshold(truth, probabilities)
        threshold = decision_threshold(config, threshold)
        records = [
            {"key": example.key, "texts": list(example.texts)}
            | ({} if example.label is None else {"gold": list(example.label)})
            | {"prediction": [label for label, share in zip(spec.labels, row, strict=True)
                              if share >= threshold],
               "probabilities": dict(zip(spec.labels, row.tolist(), strict=True))}
            for example, row in zip(examples, probabilities, strict=True)]
        return base.Scored(records=records, scores=set_scores(
            truth, probabilities, threshold) | searched if is_known else {})

    def decisions(self, records: Sequence[base.Record]) -> Sequence[base.Record]:
        """Returns a record for every label that a text has, or is predicted to have."""
        return [record | {
            name: label if label in record[name] else NO_LABEL for name in ("gold", "prediction")
        } | {"probability": abs(record["probabilities"].get(label, 0.0)
                                - (label not in record["prediction"]))}
            for record in records
            for label in dict.fromkeys((*record["gold"], *record["prediction"]))]

    def served_answer(self, network: base.ServedNetwork, *columns: tf.Tensor) -> base.Outputs:
        """Answers the predicted labels, padded with "", and all `labels`, `probabilities`."""
        answer = super().served_answer(network, *columns)
        is_predicted = answer["probabilities"] >= decision_threshold(network.config)
        return {"prediction": tf.ragged.boolean_mask(answer["labels"], is_predicted).to_tensor(""),
                "labels": answer["labels"], "probabilities": answer["probabilities"]}


def decision_threshold(config: TaskConfig, searched: float | None = None) -> float:
    """Returns the searched threshold, or that of the settings; `UserError` if both lack it."""
    if not (threshold := searched or config.label_threshold):
        raise UserError("the threshold that --label_threshold=0 searched is missing: restore the "
                        "run's results.json.")
    return threshold


def best_threshold(truth: np.ndarray, probabilities: np.ndarray) -> float:
    """Returns the threshold with the best micro F1; 0.5 if no text has a label of the task.

    It is in the middle of a gap, and exported models can tell it from 0 and 1 in float32. Arguments
    are those of `set_scores`; labels that the task lacks have no effect.
    """
    truth = truth[:, :probabilities.shape[1]]
    if not truth.any():
        return 0.5
    precision, recall, cutoffs = metrics.precision_recall_curve(
        truth.ravel(), probabilities.ravel())
    # F1 is twice this, 2 p r / (p + r).
    best = np.argmax(precision * recall / np.maximum(precision + recall, 1e-12))
    lower = cutoffs[best - 1] if best else 0.0
    return float(np.clip((lower + cutoffs[best]) / 2, 1e-6, 1 - 1e-6))


def set_scores(truth: np.ndarray, probabilities: np.ndarray,
               threshold: float) -> dict[str, float]:
    """Returns the scores of N texts; macro scores are means over labels.

    `probabilities` are [N, labels of the task]. `truth` bool may have more columns, for labels that
    the task lacks; they count as missed. ROC AUC and average precision leave them out, as well as
    labels of no text, or all; NaN if none is left.
    """
    # F1 = 2 |truth and predicted| / (|truth| + |predicted|), in all texts together and by label.
    predicted = np.zeros_like(truth)
    predicted[:, :probabilities.shape[1]] = probabilities >= threshold
    hits, marked = (truth & predicted).sum(axis=0), truth.sum(axis=0) + predicted.sum(axis=0)
    pairs = [pair for pair in zip(truth.T, probabilities.T, strict=False) if 0 < pair[0].mean() < 1]
    ranking = np.mean([(metrics.roc_auc_score(*pair), metrics.average_precision_score(*pair))
                       for pair in pairs] or [(np.nan, np.nan)], axis=0)
    return dict(zip(MultiLabel.metrics, map(float, (
        2 * hits.sum() / max(1, marked.sum()), np.mean(2 * hits / np.maximum(1, marked)), *ranking
    )), strict=True))


def _truth(spec: TaskSpec, examples: Examples) -> tuple[list[str], np.ndarray]:
    """Returns the task's labels, then others of the examples, and who has them, [N, labels]."""
    labels = [*dict.fromkeys((*spec.labels, *files.label_set(examples)))]
    index = {label: number for number, label in enumerate(labels)}
    truth = np.zeros([len(examples), len(labels)], bool)
    for row, example in zip(truth, examples, strict=True):
        row[[index[label] for label in example.label or ()]] = True
    return labels, truth
