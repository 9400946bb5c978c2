"""Losses and scores on held-out examples, and samples to look at."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from electra_tf.metrics.replaced_tokens import detection_scores, ranking_scores
from electra_tf.modeling.randomness import Randomness
from electra_tf.objectives.objective import Objective
from electra_tf.pretraining.fixed_corruption import KINDS, Corrupted, FixedCorruption
from electra_tf.pretraining.samples import Corruption
from electra_tf.records.example import Batch
from electra_tf.text.vocabulary import Vocabulary
from electra_tf.training.parts import joined
from electra_tf.training.step import with_static_rows

Arrays = Mapping[str, np.ndarray]
MARKS = ("valid", "replaced", "predicted", *(f"{kind}/replaced" for kind in KINDS))
"""Boolean details; they travel as integers, the only kind that workers can gather."""
BatchesFn = Callable[[tf.distribute.InputContext], tf.data.Dataset]


class Evaluator:
    """Runs an objective without dropout; masks and samples are the same at every evaluation."""

    def __init__(self, strategy: tf.distribute.Strategy, objective: Objective,
                 model: tf_keras.Model, batches: BatchesFn, *, batch_size: int, seed: int,
                 parts: int = 1,
                 fixed_corruption: Callable[[], FixedCorruption] | None = None):
        """Takes what to run on which batches.

        Args:
            strategy: of the devices.
            objective: what to compute.
            model: its networks.
            batches: makes a worker's dataset of held-out batches.
            batch_size: of these batches over all replicas.
            seed: of masks and samples.
            parts: of a replica's rows, side by side.
            fixed_corruption: makes what the discriminator is tried on besides its generator's
                samples, when it is first needed; None for a model without discriminator.
        """
        self._fixed_corruption = (
            None if fixed_corruption is None else functools.cache(fixed_corruption))
        self._parts = parts
        self._rows = batch_size // strategy.num_replicas_in_sync
        self._strategy = strategy
        self._objective = objective
        self._model = model
        self._batches = batches
        self._seed = seed
        self._run_batch = tf.function(self._replicas_batch, autograph=False)

    def evaluate(self, num_batches: int = 0,
                 go_on: Callable[[int], bool] = lambda batches: True) -> dict[str, float] | None:
        """Scores held-out batches.

        Args:
            num_batches: at most so many; 0 for all.
            go_on: called after every batch with how many are done; ends the evaluation by False.

        Returns:
            The total loss, every loss (nats per token), and where the objective has them
            generator_accuracy (the most likely token is right), generator_sampled_accuracy and
            the discriminator's scores, on its generator's samples and on fixed corruptions. None
            if `go_on` ended the evaluation.
        """
        batches: list[Arrays] = []
        for batch in self._outcomes(num_batches):
            batches.append(batch)
            if not go_on(len(batches)):
                return None
        return self._results(batches)

    def _results(self, batches: list[Arrays]) -> dict[str, float]:
        coefficients = self._objective.coefficients
        losses = {name: _mean(batches, name) for name in coefficients}
        results = {"loss": sum(coefficients[name] * loss for name, loss in losses.items())} | losses
        predicted = _joined(batches, "predicted")
        right = _joined(batches, "best_ids") == _joined(batches, "original_ids")
        results["generator_accuracy"] = (
            float(np.mean(right[predicted])) if predicted.any() else np.nan)
        if "logits" in batches[0]:
            valid = _joined(batches, "valid")
            results["generator_sampled_accuracy"] = _mean(batches, "generator_sampled_accuracy")
            results |= detection_scores(
                _joined(batches, "replaced")[valid], _joined(batches, "logits")[valid])
            for kind in KINDS if "unigram/logits" in batches[0] else ():
                results |= ranking_scores(
                    _joined(batches, f"{kind}/replaced")[valid],
                    _joined(batches, f"{kind}/logits")[valid], kind)
        return results

    def samples(self, count: int, vocabulary: Vocabulary) -> list[Corruption]:
        """Returns some examples of the first held-out batch, corrupted and judged.

        They are spread over it: examples side by side are mostly of one document.
        """
        outcome = next(self._outcomes(1))
        if "corrupted_ids" not in outcome:
            return []
        real = np.flatnonzero(outcome["valid"].any(axis=1))
        spread = np.linspace(0, len(real) - 1, min(count, len(real))).astype(int)
        return [_corruption(outcome, row, vocabulary) for row in real[spread]]

    def _outcomes(self, num_batches: int) -> Iterator[Arrays]:
        corrupt = (lambda batch: {}) if self._fixed_corruption is None else self._fixed_corruption()
        dataset = self._strategy.distribute_datasets_from_function(
            lambda context: self._batches(context).map(
                lambda batch: (batch, corrupt(batch))))
        for index, batch in enumerate(dataset):
            if num_batches and index == num_batches:
                return
            outcome = self._run_batch(batch, tf.constant(index, tf.int64))
            yield {name: value.numpy().astype(bool) if name in MARKS else value.numpy()
                   for name, value in outcome.items()}

    def _replicas_batch(self, batch: tuple[Batch, Mapping[str, Corrupted]],
                        index: tf.Tensor) -> dict[str, tf.Tensor]:
        results = self._strategy.run(self._replica_batch, args=(*batch, index))
        return {name: self._strategy.gather(value, axis=0) for name, value in results.items()}

    def _replica_batch(self, batch: Batch, fixed: Mapping[str, Corrupted],
                       index: tf.Tensor) -> dict[str, tf.Tensor]:
        context = tf.distribute.get_replica_context()
        batch, fixed = with_static_rows((batch, fixed), self._rows)
        randomness = Randomness(
            seed=self._seed, step=tf.constant(0, tf.int64), scope="evaluation/",
            first_example=self._rows * (
                index * context.num_replicas_in_sync
                + tf.cast(context.replica_id_in_sync_group, tf.int64)))
        inputs, weights = self._objective.prepare(batch, randomness)
        results = joined(
            lambda rows, first_row: self._rows_outcome(rows, randomness, first_row),
            inputs, self._parts)
        results |= {f"{name}/weight": value[tf.newaxis] for name, value in weights.items()}
        for kind, (ids, replaced) in fixed.items():
            results[f"{kind}/replaced"] = tf.cast(replaced, tf.int32)
            results[f"{kind}/logits"] = joined(
                lambda rows, first_row: self._model.discriminator(*rows),
                (ids, batch.segment_ids, batch.valid), self._parts)
        return {**results, "ids": batch.ids}

    def _rows_outcome(self, rows: Any, randomness: Randomness,
                      first_row: tf.Tensor) -> dict[str, tf.Tensor]:
        """Runs the objective; sums come as [1], so that all results can be joined end to end."""
        randomness = dataclasses.replace(
            randomness, first_example=randomness.first_example + first_row)
        outcome = self._objective.compute(self._model, rows, randomness, training=False)
        sums = {f"{name}/sum": value for name, value in outcome.loss_sums.items()}
        for name, ratio in outcome.measures.items():
            sums |= {f"{name}/sum": ratio.sum, f"{name}/weight": ratio.weight}
        return {**{name: value[tf.newaxis] for name, value in sums.items()},
                **{name: tf.cast(value, tf.int32) if name in MARKS else value
                   for name, value in outcome.details.items()}}


def _mean(batches: list[Arrays], name: str) -> float:
    """Divides a sum by its weight once, after adding both up over all batches."""
    total, weight = (sum(batch[f"{name}/{part}"].sum() for batch in batches)
                     for part in ("sum", "weight"))
    return float(total / max(weight, 1.0))


def _joined(batches: list[Arrays], name: str) -> np.ndarray:
    return np.concatenate([batch[name] for batch in batches])


def _corruption(outcome: Arrays, row: int, vocabulary: Vocabulary) -> Corruption:
    real = outcome["valid"][row]
    selected = np.zeros_like(real)
    selected[outcome["positions"][row][outcome["predicted"][row]]] = True
    probability = 1.0 / (1.0 + np.exp(-outcome["logits"][row]))

    def words(ids: np.ndarray) -> list[str]:
        return [vocabulary.tokens[index] for index in ids[real]]

    return Corruption(
        original=words(outcome["ids"][row]), corrupted=words(outcome["corrupted_ids"][row]),
        selected=list(selected[real]), replaced_probability=list(probability[real]))
