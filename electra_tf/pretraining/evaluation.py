"""Losses and scores on held-out examples, and samples to look at."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from electra_tf.data.example import Batch
from electra_tf.data.pipeline import evaluation_batches
from electra_tf.modeling.randomness import Randomness
from electra_tf.objectives.electra import ranking_scores
from electra_tf.objectives.objective import Arrays, PretrainingObjective
from electra_tf.pretraining.fixed_corruption import KINDS, Corrupted, FixedCorruption
from electra_tf.pretraining.setup import Run, special_tokens
from electra_tf.reporting.samples import Corruption, spread
from electra_tf.text.vocabulary import Vocabulary
from electra_tf.training.cores import largest_divisor
from electra_tf.training.parts import joined
from electra_tf.training.step import with_static_rows

_MARK = "?"
"""Suffix of the names of bool tensors, which workers gather as integers."""
BatchesFn = Callable[[tf.distribute.InputContext], tf.data.Dataset]


def evaluator_of(run: Run, model: tf_keras.Model) -> "Evaluator | None":
    """Returns an evaluator on a run's held-out shards; None if nothing was held out."""
    if not run.rows("eval"):
        return None
    replicas = run.strategy.num_replicas_in_sync
    batch_size = -(-run.config.runtime.eval_batch_size // replicas) * replicas
    fixed_corruption = functools.partial(
        FixedCorruption.of_records, run.records, special_tokens(run.vocabulary))
    return Evaluator(
        run.strategy, run.objective, model,
        lambda context: evaluation_batches(
            run.records, length=run.length, pad_id=run.vocabulary.pad_id,
            global_batch_size=batch_size, context=context),
        batch_size=batch_size, seed=run.config.training.seed,
        parts=largest_divisor(batch_size // replicas, run.config.runtime.cpu_parts),
        fixed_corruption=None if run.objective.judge is None else fixed_corruption)


class Evaluator:
    """Runs an objective without dropout; masks and samples are the same at every evaluation."""

    def __init__(self, strategy: tf.distribute.Strategy, objective: PretrainingObjective,
                 model: tf_keras.Model, batches: BatchesFn, *, batch_size: int, seed: int,
                 parts: int = 1,
                 fixed_corruption: Callable[[], FixedCorruption] | None = None):
        """Prepares the evaluation.

        Args:
            strategy: of the devices.
            objective: what to compute.
            model: its networks.
            batches: makes a worker's dataset of held-out batches.
            batch_size: rows of a batch over all replicas.
            seed: seed of masks and samples.
            parts: number of parts of a replica's rows that run side by side.
            fixed_corruption: makes the fixed noise; None for an objective without a discriminator.
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
            num_batches: most batches; 0 for all.
            go_on: called with the number of finished batches; False ends the evaluation.

        Returns:
            The total loss, every loss (nats per token), the objective's scores, and those on
            fixed corruptions if it judges tokens. None if `go_on` ended the evaluation.
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
        means = {name.removesuffix("/sum"): _mean(batches, name.removesuffix("/sum"))
                 for name in batches[0] if name.endswith("/sum")}
        details = {name: np.concatenate([batch[name] for batch in batches])
                   for name in _details(batches[0])}
        results |= self._objective.scores(details, means)
        for kind in () if self._fixed_corruption is None else KINDS:
            valid = details["valid"]
            results |= ranking_scores(
                details[f"{kind}/replaced"][valid], details[f"{kind}/logits"][valid], kind)
        return results

    def samples(self, count: int, vocabulary: Vocabulary, batches: int = 1) -> list[Corruption]:
        """Returns some examples of the first held-out batches, corrupted and judged.

        They are spread over the batches and the most readable ones of their part.
        """
        outcomes = [{name: outcome[name] for name in _details(outcome)}
                    for outcome in self._outcomes(batches)]
        outcome = {name: np.concatenate([each[name] for each in outcomes]) for name in outcomes[0]}
        real = np.flatnonzero(outcome["valid"].any(axis=1))
        texts = [[vocabulary.tokens[index] for index in outcome["ids"][row][outcome["valid"][row]]]
                 for row in real]
        chosen = real[spread(texts, count)]
        rows = {name: values[chosen] for name, values in outcome.items()}
        written = self._objective.written(rows)
        return [] if written is None else Corruption.of_arrays(
            rows, written.ids, vocabulary.tokens, written.replaced_probability)

    def _outcomes(self, num_batches: int) -> Iterator[Arrays]:
        corrupt = (lambda batch: {}) if self._fixed_corruption is None else self._fixed_corruption()
        dataset = self._strategy.distribute_datasets_from_function(
            lambda context: self._batches(context).map(
                lambda batch: (batch, corrupt(batch))))
        for index, batch in enumerate(dataset):
            if num_batches and index == num_batches:
                return
            outcome = self._run_batch(batch, tf.constant(index, tf.int64))
            yield {name.removesuffix(_MARK): value.numpy().astype(bool)
                   if name.endswith(_MARK) else value.numpy()
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
            results |= _for_workers({f"{kind}/replaced": replaced})
            results[f"{kind}/logits"] = joined(
                lambda rows, first_row: self._objective.judge(self._model, rows),
                batch._replace(ids=ids), self._parts)
        return results | _for_workers({"ids": batch.ids, "valid": batch.valid})

    def _rows_outcome(self, rows: Any, randomness: Randomness,
                      first_row: tf.Tensor) -> dict[str, tf.Tensor]:
        """Runs the objective; sums come as [1], so that all results can be joined end to end."""
        randomness = dataclasses.replace(
            randomness, first_example=randomness.first_example + first_row)
        outcome = self._objective.compute(self._model, rows, randomness, training=False)
        sums = {f"{name}/sum": value for name, value in outcome.loss_sums.items()}
        for name, ratio in outcome.measures.items():
            sums |= {f"{name}/sum": ratio.sum, f"{name}/weight": ratio.weight}
        return ({name: value[tf.newaxis] for name, value in sums.items()}
                | _for_workers(outcome.details))


def _details(outcome: Arrays) -> list[str]:
    """Returns the names of what has a row per example; sums and weights have one per part."""
    return [name for name in outcome if not name.endswith(("/sum", "/weight"))]


def _mean(batches: list[Arrays], name: str) -> float:
    """Divides a sum by its weight once, after adding both up over all batches."""
    total, weight = (sum(batch[f"{name}/{part}"].sum() for batch in batches)
                     for part in ("sum", "weight"))
    return float(total / max(weight, 1.0))


def _for_workers(tensors: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    return {f"{name}{_MARK}" if value.dtype == tf.bool else name:
            tf.cast(value, tf.int32) if value.dtype == tf.bool else value
            for name, value in tensors.items()}
