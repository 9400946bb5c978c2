"""Evaluates a run on held-out examples, shows sample corruptions, and explains the scores."""

import dataclasses
import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tf_keras

from electra_tf.checkpoints.run_directory import EVALUATION_FILE
from electra_tf.checkpoints.weights import assign_weights, read_checkpoint
from electra_tf.config.objectives import Metric, all_metrics
from electra_tf.core import strict_json
from electra_tf.core.atomic_file import write_json
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path
from electra_tf.data.example import Batch
from electra_tf.data.pipeline import evaluation_batches
from electra_tf.modeling.rng import Rng
from electra_tf.objectives.electra import ranking_scores
from electra_tf.objectives.objective import WeightedMean
from electra_tf.objectives.pretraining import Arrays
from electra_tf.pretraining.fixed_noise import KINDS, Corrupted, fixed_noise
from electra_tf.pretraining.run import Run, vocab_info
from electra_tf.reporting import learning_curves
from electra_tf.reporting.samples import Corruption, select_readable, terminal_page
from electra_tf.training import failures
from electra_tf.training.devices import distributed
from electra_tf.training.step import concat_parts, largest_divisor, with_static_rows

SHOWN_SAMPLES = 4
SAMPLED_BATCHES = 16  # Batches out of which --mode=samples chooses.
LOW_AUC = 0.6  # Below this AUC a discriminator detects little more than token frequencies show.
_LINE_SCORES = {
    "loss": "loss", "discriminator_auc": "AUC", "discriminator_recall": "recall",
    "restoring_accuracy": "encoder accuracy", "generator_accuracy": "generator accuracy"}
"""Scores of an evaluation's line."""


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
        return fixed_noise(self._run.records, vocab_info(self._run.vocabulary).special)

    def evaluate(self, keep_evaluating: Callable[[int], bool] = lambda num_batches: True
                 ) -> dict[str, float] | None:
        """Returns the losses (nats per token) and scores of `runtime.eval_steps` held-out batches.

        `keep_evaluating` takes the number of finished batches; if it returns False, the evaluation
        ends with None. Objectives that detect replaced tokens also have fixed-noise scores.
        """
        batches: list[EvaluatedBatch] = []
        for batch in self._evaluated_batches(self._run.config.runtime.eval_steps):
            batches.append(batch)
            if not keep_evaluating(len(batches)):
                return None

        # Means over all examples: the sum of all totals by the sum of all weights.
        loss_weights, per_example = self._run.objective.loss_weights, _joined(batches)
        means = {}
        for name in batches[0].means:
            total = sum(batch.means[name].total.sum() for batch in batches)
            weight = sum(batch.means[name].weight.sum() for batch in batches)
            means[name] = float(total / (weight or 1.0))

        # Losses, the objective's scores, and those on fixed noise.
        results = {"loss": sum(weight * means[name] for name, weight in loss_weights.items()),
                   **{name: means[name] for name in loss_weights},
                   **self._run.objective.scores(per_example, means)}
        for kind in KINDS:
            if f"{kind}/logits" in per_example:
                padding_mask = per_example["padding_mask"]
                results |= ranking_scores(
                    per_example[f"{kind}/replaced"][padding_mask],
                    per_example[f"{kind}/logits"][padding_mask], kind)
        return results

    def samples(self, count: int, batches: int = 1) -> list[Corruption]:
        """Returns readable examples of the first held-out batches, with corruptions."""
        # Held-out texts, without the rows that pad the last batch.
        output = _joined(self._evaluated_batches(batches))
        tokens = self._run.vocabulary.tokens
        real = np.flatnonzero(output["padding_mask"].any(axis=1))
        texts = [[tokens[index] for index in output["ids"][row][output["padding_mask"][row]]]
                 for row in real]

        # The readable ones, with the text that the objective shows.
        chosen = real[select_readable(texts, count)]
        rows = {name: values[chosen] for name, values in output.items()}
        written = self._run.objective.displayed_text(rows)
        return [] if written is None else Corruption.from_arrays(
            rows, written.ids, tokens, written.replaced_probability)

    def _evaluated_batches(self, num_batches: int) -> Iterator["EvaluatedBatch"]:
        """Yields the results of the first batches; of all for 0."""
        run, replicas, corrupt = self._run, self._run.strategy.num_replicas_in_sync, self._corrupt
        dataset = distributed(
            run.strategy, lambda input_context: evaluation_batches(
                run.records, pad_id=run.vocabulary.pad_id,
                global_batch_size=self._rows * replicas, input_context=input_context,
            ).map(lambda batch: (batch, corrupt(batch))))
        for index, batch in enumerate(itertools.islice(dataset, num_batches or None)):
            result = self._run_batch(*batch, tf.constant(index, tf.int64))
            means, per_example = tf.nest.map_structure(lambda value: value.numpy(), result)
            yield EvaluatedBatch(means, {
                name: values.astype(bool) if name in self._bools else values
                for name, values in per_example.items()})

    @tf.function(autograph=False)
    def _run_batch(self, *batch: Any) -> "EvaluatedBatch":
        strategy = self._run.strategy
        return tf.nest.map_structure(lambda value: strategy.gather(value, axis=0),
                                     strategy.run(self._run_replica, args=batch))

    def _run_replica(self, batch: Batch, corruptions: Mapping[str, Corrupted],
                     index: tf.Tensor) -> "EvaluatedBatch":
        # This replica's rows, and random bits that depend on their position among all examples.
        objective, replica_context = self._run.objective, tf.distribute.get_replica_context()
        batch, corruptions = with_static_rows((batch, corruptions), self._rows)
        rng = Rng(
            seed=self._run.config.training.seed, step=tf.constant(0, tf.int64),
            scope="evaluation/", first_example=self._rows * (
                index * replica_context.num_replicas_in_sync
                + tf.cast(replica_context.replica_id_in_sync_group, tf.int64)))
        inputs, denominators = objective.prepare_inputs(batch, rng)

        # Sums over the rows of a part have shape [1], to be concatenated like vectors of rows.
        def compute(rows: Any, first_row: tf.Tensor) -> Any:
            output = objective.compute(self._model, rows, dataclasses.replace(
                rng, first_example=rng.first_example + first_row), training=False)
            sums = dict(output.loss_sums), dict(output.metrics)
            return (*tf.nest.map_structure(lambda value: value[tf.newaxis], sums),
                    dict(output.per_example))

        loss_sums, means, per_example = concat_parts(compute, inputs, self._parts)
        means |= {name: WeightedMean(loss_sums[name],
                                     denominators[name][tf.newaxis]) for name in denominators}

        # Detection of replacements that are equal for all runs.
        for kind, (ids, replaced) in corruptions.items():
            per_example[f"{kind}/replaced"] = replaced
            per_example[f"{kind}/logits"] = concat_parts(
                lambda rows, first_row: objective.detection_logits(self._model, rows),
                batch._replace(ids=ids), self._parts)
        per_example |= {"ids": batch.ids, "padding_mask": batch.padding_mask}
        self._bools = {name for name, value in per_example.items() if value.dtype == tf.bool}
        return EvaluatedBatch(means, {
            name: tf.cast(value, tf.int32) if name in self._bools else value
            for name, value in per_example.items()})


class EvaluatedBatch(NamedTuple):
    """The results of a batch of B examples, as tensors or arrays."""

    means: dict[str, WeightedMean]  # Losses and metrics by name; [parts of the batch].
    per_example: dict[str, Any]  # Name -> [B, ...]; workers gather booleans as integers.


def _joined(batches: Iterable[EvaluatedBatch]) -> Arrays:
    """Returns the values of all examples, name -> [M, ...]."""
    per_example = [batch.per_example for batch in batches]
    return {name: np.concatenate([part[name] for part in per_example]) for name in per_example[0]}


def evaluate(run: Run) -> None:
    """Scores the newest checkpoint on the held-out shards; prints and saves a table."""
    with failures.explained(run.require_records):
        evaluator, step = _restored_evaluator(run)
        print(report(run, evaluator.evaluate(), step, run.model_dir), flush=True)


def show_samples(run: Run) -> None:
    """Prints held-out sentences, the replaced tokens, and the discriminator's probabilities."""
    with failures.explained(run.require_records):
        evaluator, step = _restored_evaluator(run)
        samples = evaluator.samples(SHOWN_SAMPLES, SAMPLED_BATCHES)
    print(f"Held-out sentences after {step:,} steps\n")
    print(terminal_page(samples, color=sys.stdout.isatty()))


def _restored_evaluator(run: Run) -> tuple[Evaluator, int]:
    """Returns an evaluator of the newest checkpoint and the checkpoint's step."""
    if not run.examples("eval"):
        raise UserError(f"the records in {run.records} have no held-out examples. Build them again "
                        "with `python -m data_prep.build_pretraining_data` from two documents or "
                        "more, with blank lines between them, without --held_out_fraction=0.")
    model = run.build_model()
    with run.strategy.scope():
        weights, step = read_checkpoint(run.model_dir)
        assign_weights(model.variables, weights, str(run.model_dir))
    return Evaluator(run, model), step


def report(run: Run, results: Mapping[str, float], step: int, directory: Path, *,
           as_table: bool = True) -> str:
    """Writes an evaluation to eval_results.json; returns a table or, without `as_table`, a line."""
    write_json(directory / EVALUATION_FILE, {"step": step, **results})
    if not as_table:
        scores = [f"{words} {results[name]:.3f}" for name, words in _LINE_SCORES.items()
                  if name in results]
        return f"evaluation at step {step:,}: {', '.join(scores)}"

    # A table with the unit of every score.
    held_out, units, runtime = run.examples("eval"), all_metrics(), run.config.runtime
    replicas = run.strategy.num_replicas_in_sync  # They read equal parts of a batch.
    used = runtime.eval_steps * -(-runtime.eval_batch_size // replicas) * replicas or held_out
    return "\n".join([
        f"evaluation at step {step:,} on {min(used, held_out):,} of {held_out:,} held-out examples",
        *(f"  {name:<28}{value:>9.4f}  {units.get(name, Metric()).unit}"
          for name, value in results.items())])


def saved_scores(model_dir: Path) -> dict[str, float | None]:
    """Returns the last evaluation of a run, "step" and scores by name; empty if there is none."""
    scores = model_dir / EVALUATION_FILE
    return strict_json.read(scores, dict[str, float | None]) if scores.exists() else {}


def explanation(run: Run, scores: Mapping[str, float | None]) -> str:
    """Returns sentences that explain the last evaluation; "" without its scores.

    The AUC on random replacements is compared with measured runs.
    """
    # The discriminator's scores, or those of a network that restores tokens.
    recall, precision, auc = (scores.get(f"discriminator_{name}")
                              for name in ("recall", "precision", "auc"))
    if None not in (recall, precision, auc):
        sentences = [f"the discriminator detects {100 * recall:.0f} % of the replaced tokens, and "
                     f"{100 * precision:.0f} % of its detections are right; AUC {auc:.3f}, chance "
                     "is 0.5."]
        if auc < LOW_AUC:
            sentences.append("It has learned little so far: train longer, or see "
                             "docs/how_to/size_and_recipe.md.")
    else:
        networks = {"restoring_accuracy": "encoder", "generator_accuracy": "model"}
        sentences = [f"the {network} restores {100 * scores[name]:.0f} % of the masked tokens."
                     for name, network in networks.items() if scores.get(name) is not None][:1]

    # The AUC on random replacements, against runs with as many tokens.
    if scores.get("unigram_auc") is not None:
        tokens = scores["step"] * run.config.training.train_batch_size * run.length
        sentences.append(learning_curves.compare_with_measured(
            scores["unigram_auc"], tokens, run.config.model.discriminator))
    return " ".join(sentences)
