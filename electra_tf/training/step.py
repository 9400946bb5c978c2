"""One training step: inputs, losses, gradients and the update, and the state that it changes.

`TrainStep` is the whole step, in pre-training and in fine-tuning.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from electra_tf.config.runtime import Precision
from electra_tf.modeling.rng import Rng
from electra_tf.objectives.objective import Means, Objective, WeightedMean
from electra_tf.training.adam import Adam, Lamb, clip_factor_and_norm
from electra_tf.training.averaging import WeightAverage
from electra_tf.training.devices import Settings, use_xla
from electra_tf.training.muon import Muon
from electra_tf.training.schedule import Schedule

SUM = tf.distribute.ReduceOp.SUM
RowsFunction = Callable[[Any, tf.Tensor], Any]
"""Maps a structure of tensors [rows, ...] and the index int64 [] of its first row in the batch."""
NOT_INLINED = {"_noinline": True}
"""Attribute of a traced function, so that all parts share the start-up and memory of one graph."""


class TrainStep:
    """A training step: it prepares inputs, runs, differentiates, sums over replicas and updates.

    Every loss is divided once by its number of terms in the global batch, so padding, replicas and
    micro-batches do not change the mean.
    """

    def __init__(self, config: Settings, objective: Objective, state: "TrainState",
                 strategy: tf.distribute.Strategy, num_steps: int,
                 finished_at: Sequence[int] = (), stable_until: int = 0):
        """Takes what a run of `num_steps` trains; `Schedule` explains the last two arguments."""
        self.config, self.objective, self.state, self.strategy = config, objective, state, strategy
        self._schedule = Schedule.from_config(
            config.optimizer, num_steps, finished_at, stable_until)
        self._compile_with_xla = use_xla(config.runtime.xla, strategy)

    def __call__(self, batch: Any) -> Means:
        """Runs the step on all replicas, each on its [B / R, ...] rows of the batch.

        Returns losses and statistics of the global batch before the update.
        """
        # All replicas return the same results, because the step sums over them.
        results = self.strategy.run(self._run_replica, args=(batch,))
        return tf.nest.map_structure(
            lambda value: self.strategy.experimental_local_results(value)[0], results)

    def _run_replica(self, batch: Any) -> Means:
        # This replica's rows, and their position in the global batch, which random bits depend on.
        state, runtime = self.state, self.config.runtime
        model, step, loss_scale = (
            state.model, tf.convert_to_tensor(state.step), state.loss_scale.scale.value())
        replica_context = tf.distribute.get_replica_context()
        num_rows = self.config.training.train_batch_size // replica_context.num_replicas_in_sync
        first_example = tf.cast(replica_context.replica_id_in_sync_group, tf.int64) * num_rows
        rng = Rng(seed=self.config.training.seed, step=step, first_example=first_example)

        # The objective draws masks, and counts the terms of every loss in the global batch.
        inputs, denominators = self.objective.prepare_inputs(with_static_rows(batch, num_rows), rng)
        denominators = replica_context.all_reduce(SUM, dict(denominators))
        factors = {name: tf.math.divide_no_nan(coefficient, denominators[name])
                   for name, coefficient in self.objective.loss_weights.items()}

        def differentiate(rows: Any, first_row: tf.Tensor) -> tuple[
                list[tf.Tensor], dict[str, tf.Tensor], dict[str, WeightedMean]]:
            """Returns gradients, losses and metrics of some rows of `inputs`, summed over them."""
            with tf.GradientTape() as tape:
                output = self.objective.compute(model, rows, dataclasses.replace(
                    rng, first_example=first_example + first_row,
                    stride=runtime.gradient_accumulation_steps), training=True)
                # sum over losses of coefficient * sum over rows / terms in the global batch.
                loss = tf.add_n([factors[name] * value
                                 for name, value in output.loss_sums.items()]) * loss_scale
            gradients = [tf.convert_to_tensor(gradient)
                         for gradient in tape.gradient(loss, model.trainable_variables)]
            if state.loss_scale.enabled:
                gradients = [gradient / loss_scale for gradient in gradients]
            return gradients, dict(output.loss_sums), dict(output.metrics)

        # Forward and backward, by micro-batches; then the sum over replicas.
        def differentiate_all() -> Any:
            return sum_parts(differentiate, inputs, rounds=runtime.gradient_accumulation_steps,
                             parts=max(1, runtime.cpu_parts))

        if self._compile_with_xla:
            differentiate_all = tf.function(differentiate_all, jit_compile=True, autograph=False)
        gradients, loss_sums, metrics = differentiate_all()
        gradients = replica_context.all_reduce(SUM, gradients)
        loss_sums, metrics = replica_context.all_reduce(SUM, (loss_sums, metrics))

        # Clipping and the update, which is left out if the loss or a gradient isn't finite.
        loss = tf.add_n([factors[name] * loss_sums[name] for name in factors])
        clip_factor, norm = clip_factor_and_norm(gradients, self.config.optimizer.clip_norm)
        finite = tf.math.is_finite(norm) & tf.math.is_finite(loss)
        rate = self._schedule(step)
        state.optimizer.apply(gradients, rate, step=step, clip_factor=clip_factor, finite=finite)
        if state.average is not None:
            state.average.update(step)
        state.loss_scale.update(finite)
        state.step.assign_add(1)
        return {
            "loss": WeightedMean(loss, tf.ones([])),
            **{name: WeightedMean(loss_sums[name], denominators[name]) for name in denominators},
            **metrics,
            "learning_rate": WeightedMean(rate, tf.ones([])),
            "gradient_norm": WeightedMean(norm, tf.ones([]))}


class LossScale(tf.Module):
    """A factor that keeps small gradients representable in float16 (Micikevicius et al., 2018).

    It halves after a step with non-finite gradients and doubles after 2,000 finite ones. If it is
    not `enabled`, it is always 1.
    """

    INITIAL = 2.0**15
    GROWTH_INTERVAL = 2000

    def __init__(self, enabled: bool):
        super().__init__(name="loss_scale")
        self.enabled = enabled
        self.scale = _scalar(self.INITIAL if enabled else 1.0, "loss_scale", tf.float32)
        self.good_steps = _scalar(0, "good_steps", tf.int64)

    def update(self, finite: tf.Tensor) -> None:
        """Adapts the scale after a step; `finite`, bool [], is True if its gradients were."""
        if not self.enabled:
            return
        # Finite: one more good step, and twice the scale after 2,000. Otherwise half the scale.
        streak = tf.where(finite, self.good_steps + 1, tf.zeros([], tf.int64))
        grow = streak >= self.GROWTH_INTERVAL
        grown = tf.where(grow, self.scale * 2.0, self.scale)
        self.scale.assign(tf.where(finite, grown, tf.maximum(self.scale / 2.0, 1.0)))
        self.good_steps.assign(tf.where(grow, tf.zeros([], tf.int64), streak))


class TrainState(tf.Module):
    """The state in a checkpoint: weights, their average, optimizer slots, loss scale and step."""

    def __init__(self, config: Settings, model: tf_keras.Model, strategy: tf.distribute.Strategy,
                 rate_factors: Sequence[float] | None = None):
        """Creates the state at step 0; `rate_factors` are those of `Adam`."""
        super().__init__(name="train_state")
        settings, precision = config.optimizer, config.training.precision
        optimizer = {"adam": Adam, "lamb": Lamb, "muon": functools.partial(
            Muon, matmul_type=tf.bfloat16 if precision is Precision.BFLOAT16 else tf.float32)}
        self.model, variables = model, model.trainable_variables
        with strategy.scope():
            self.optimizer = optimizer[settings.name](settings, variables, rate_factors)
            self.loss_scale = LossScale(enabled=precision is Precision.FLOAT16)
            self.average = (WeightAverage(settings.average_decay, variables)
                            if settings.average_decay else None)
            self.step = _scalar(0, "step", tf.int64)

    def averaged(self) -> contextlib.AbstractContextManager[None]:
        """Returns a context in which the model has its averaged weights, if there are any."""
        return contextlib.nullcontext() if self.average is None else self.average.in_use()


def _scalar(value: float, name: str, dtype: tf.DType) -> tf.Variable:
    return tf.Variable(value, trainable=False, name=name, dtype=dtype,
                       aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)


def concat_parts(function: RowsFunction, inputs: Any, parts: int) -> Any:
    """Runs a function on all parts in parallel and concatenates the tensors of its results.

    `inputs` is a structure of tensors [B, ...], B a multiple of `parts`.
    """
    traced = tf.function(function, autograph=False, experimental_attributes=NOT_INLINED)
    size = tf.nest.flatten(inputs)[0].shape[0] // parts

    def run_part(first_row: int) -> Any:
        rows = tf.nest.map_structure(lambda value: value[first_row:first_row + size], inputs)
        return traced(rows, tf.constant(first_row, tf.int64))

    # TensorFlow runs calls that don't depend on each other in parallel.
    results = [run_part(first_row) for first_row in range(0, parts * size, size)]
    return tf.nest.map_structure(lambda *values: tf.concat(values, axis=0), *results)


def sum_parts(function: RowsFunction, inputs: Any, *, rounds: int, parts: int) -> Any:
    """Returns the sum of a function's results, a structure of tensors, over a whole batch.

    The rounds run one after the other, the parts of each in parallel. `inputs` is a structure of
    tensors [B, ...], B a multiple of `rounds * parts`. A part has consecutive rows, a round of it
    every `rounds`-th of them: a compiler may give every core consecutive rows of the batch, and so
    each core works in every round.
    """
    traced = tf.function(function, autograph=False, experimental_attributes=NOT_INLINED)
    size = tf.nest.flatten(inputs)[0].shape[0] // parts

    # [B, ...] becomes [parts, rows of a round, rounds, ...]; row i of part p, of round r, has index
    # p * size + i * rounds + r in the batch.
    split = tf.nest.map_structure(
        lambda rows: tf.reshape(rows, [parts, size // rounds, rounds, *rows.shape[1:]]), inputs)

    def run_part(part: int, index: tf.Tensor | int) -> Any:
        rows = tf.nest.map_structure(lambda value: value[part, :, index], split)
        return traced(rows, tf.cast(part * size + index, tf.int64))

    def run_round(index: tf.Tensor | int) -> Any:
        results = [run_part(part, index) for part in range(parts)]
        return tf.nest.map_structure(lambda *values: tf.add_n(values), *results)

    if rounds == 1:
        return run_round(0)

    # A loop in the graph: memory holds the sums and one round's activations.
    _, sums = tf.while_loop(
        lambda index, _: index < rounds,
        lambda index, sums: (index + 1, tf.nest.map_structure(tf.add, sums, run_round(index))),
        (tf.constant(1), run_round(0)))
    return sums


def largest_divisor(number: int, limit: int) -> int:
    """Returns the largest divisor of `number` up to `limit`."""
    return max(divisor for divisor in range(1, limit + 1) if number % divisor == 0)


def with_static_rows(batch: Any, rows: int) -> Any:
    """Restores the static shapes [rows, ...], which a dataset of several workers loses."""
    return tf.nest.map_structure(
        lambda value: tf.ensure_shape(value, [rows, *value.shape[1:]]), batch)
