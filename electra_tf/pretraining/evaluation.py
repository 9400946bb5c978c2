"""Evaluates a run on held-out examples: losses, scores and sample corruptions."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from electra_tf.data.example import Batch
from electra_tf.data.pipeline import evaluation_batches
from electra_tf.modeling.randomness import Randomness
from electra_tf.objectives.electra import ranking_scores
from electra_tf.objectives.pretraining import Arrays
from electra_tf.pretraining.fixed_noise import KINDS, Corrupted, FixedNoise
from electra_tf.pretraining.setup import Run, token_kinds
from electra_tf.reporting.samples import Corruption, select_readable
from electra_tf.training.devices import distributed
from electra_tf.training.micro_batches import concat_parts, largest_divisor
from electra_tf.training.step import with_static_rows


class Evaluator:
    """An objective without dropout; masks and samples are the same at every evaluation."""

    def __init__(self, run: Run, model: tf_keras.Model):
        self._run, self._model = run, model
        replicas, runtime = run.strategy.num_replicas_in_sync, run.config.runtime
        self._rows = -(-runtime.eval_batch_size // replicas)
        self._parts = largest_divisor(self._rows, runtime.cpu_parts)
        self._bools: set[str] = set()  # Names of results, which workers gather as integers.

    @functools.cached_property
    def _corrupt(self) -> Callable[[Batch], Mapping[str, Corrupted]]:
        """The fixed noise of a batch as a function; the first use counts the tokens."""
        if self._run.objective.detection_logits is None:
            return lambda batch: {}
        return FixedNoise(self._run.records, token_kinds(self._run.vocabulary).special)

    def evaluate(self, keep_evaluating: Callable[[int], bool] = lambda num_batches: True
                 ) -> dict[str, float] | None:
        """Returns the losses (nats per token) and scores of `runtime.eval_steps` held-out batches.

        `keep_evaluating` takes the number of finished batches; if it returns False, the evaluation
        ends with None. Objectives that detect replaced tokens also have fixed-noise scores.
        """
        batches: list[Arrays] = []
        for batch in self._outcomes(self._run.config.runtime.eval_steps):
            batches.append(batch)
            if not keep_evaluating(len(batches)):
                return None
        coefficients, details = self._run.objective.coefficients, _joined_details(batches)
        means = {}
        for name in [name.removesuffix("/sum") for name in batches[0] if name.endswith("/sum")]:
            total, weight = (sum(batch[f"{name}/{part}"].sum() for batch in batches)
                             for part in ("sum", "weight"))
            means[name] = float(total / max(weight, 1.0))
        results = {"loss": sum(weight * means[name] for name, weight in coefficients.items()),
                   **{name: means[name] for name in coefficients},
                   **self._run.objective.scores(details, means)}
        for kind in KINDS:
            if f"{kind}/logits" in details:
                valid = details["valid"]
                results |= ranking_scores(
                    details[f"{kind}/replaced"][valid], details[f"{kind}/logits"][valid], kind)
        return results

    def samples(self, count: int, batches: int = 1) -> list[Corruption]:
        """Returns readable examples of the first held-out batches, with corruptions."""
        outcome, tokens = _joined_details(self._outcomes(batches)), self._run.vocabulary.tokens
        real = np.flatnonzero(outcome["valid"].any(axis=1))
        texts = [[tokens[index] for index in outcome["ids"][row][outcome["valid"][row]]]
                 for row in real]
        chosen = real[select_readable(texts, count)]
        rows = {name: values[chosen] for name, values in outcome.items()}
        written = self._run.objective.displayed_text(rows)
        return [] if written is None else Corruption.of_arrays(
            rows, written.ids, tokens, written.replaced_probability)

    def _outcomes(self, num_batches: int) -> Iterator[Arrays]:
        """Yields the outcomes of the first batches; of all for 0."""
        run, replicas, corrupt = self._run, self._run.strategy.num_replicas_in_sync, self._corrupt
        dataset = distributed(
            run.strategy, lambda context: evaluation_batches(
                run.records, pad_id=run.vocabulary.pad_id,
                global_batch_size=self._rows * replicas, context=context,
            ).map(lambda batch: (batch, corrupt(batch))))
        for index, batch in enumerate(dataset):
            if num_batches and index == num_batches:
                return
            outcome = self._run_batch(*batch, tf.constant(index, tf.int64))
            yield {name: value.numpy().astype(bool) if name in self._bools else value.numpy()
                   for name, value in outcome.items()}

    @tf.function(autograph=False)
    def _run_batch(self, *batch: Any) -> dict[str, tf.Tensor]:
        results = self._run.strategy.run(self._run_replica, args=batch)
        return {name: self._run.strategy.gather(value, axis=0) for name, value in results.items()}

    def _run_replica(self, batch: Batch, fixed_noise: Mapping[str, Corrupted],
                     index: tf.Tensor) -> dict[str, tf.Tensor]:
        objective, replica_context = self._run.objective, tf.distribute.get_replica_context()
        batch, fixed_noise = with_static_rows((batch, fixed_noise), self._rows)
        randomness = Randomness(
            seed=self._run.config.training.seed, step=tf.constant(0, tf.int64),
            scope="evaluation/", first_example=self._rows * (
                index * replica_context.num_replicas_in_sync
                + tf.cast(replica_context.replica_id_in_sync_group, tf.int64)))
        inputs, num_terms = objective.prepare_inputs(batch, randomness)

        def compute(rows: Any, first_row: tf.Tensor) -> dict[str, tf.Tensor]:
            """Runs the objective; sums have shape [1], to be concatenated like the rest."""
            outcome = objective.compute(self._model, rows, dataclasses.replace(
                randomness, first_example=randomness.first_example + first_row), training=False)
            sums = {f"{name}/sum": value for name, value in outcome.loss_sums.items()}
            for name, ratio in outcome.measures.items():
                sums |= {f"{name}/sum": ratio.sum, f"{name}/weight": ratio.weight}
            return {name: value[tf.newaxis] for name, value in sums.items()} | outcome.details

        results = concat_parts(compute, inputs, self._parts)
        results |= {f"{name}/weight": value[tf.newaxis] for name, value in num_terms.items()}
        for kind, (ids, replaced) in fixed_noise.items():
            results[f"{kind}/replaced"] = replaced
            results[f"{kind}/logits"] = concat_parts(
                lambda rows, first_row: objective.detection_logits(self._model, rows),
                batch._replace(ids=ids), self._parts)
        results |= {"ids": batch.ids, "valid": batch.valid}
        self._bools = {name for name, value in results.items() if value.dtype == tf.bool}
        return {name: tf.cast(value, tf.int32) if name in self._bools else value
                for name, value in results.items()}


def _joined_details(outcomes: Iterable[Arrays]) -> Arrays:
    """Joins the tensors with a row per example; sums and weights have one per part."""
    details = [{name: values for name, values in outcome.items()
                if not name.endswith(("/sum", "/weight"))} for outcome in outcomes]
    return {name: np.concatenate([outcome[name] for outcome in details]) for name in details[0]}
