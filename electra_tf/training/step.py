"""One training step: inputs, losses, gradients and the update, and the state that it changes.

`TrainStep` is the whole step, in pre-training and in fine-tuning.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from electra_tf.config.runtime import Precision
from electra_tf.modeling.fused import fused
from electra_tf.modeling.rng import Rng
from electra_tf.objectives.objective import Means, Objective, WeightedMean
from electra_tf.training.adam import Adam, Lamb, clip_factor_and_norm
from electra_tf.training.devices import Settings, use_xla
from electra_tf.training.muon import Muon
from electra_tf.training.schedule import Schedule

SUM = tf.distribute.ReduceOp.SUM
RowsFunction = Callable[[Any, tf.Tensor], Any]
"""Maps a structure of tensors [rows, ...] and the index int64 [] of its first row in the batch."""
NOT_INLINED = {"_noinline": True}
"""Attribute of a traced function, so that all parts share the start-up and memory of one graph."""
CHECKED = ("loss", "gradient_norm")
"""Results of a step that are finite unless training has diverged."""
AVERAGED_STEPS = 10
"""Steps from one update of the average to the next, so that it takes less than 1 % of the time."""


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
        differentiate_all = functools.partial(
            sum_parts, differentiate, rounds=runtime.gradient_accumulation_steps,
            parts=max(1, runtime.cpu_parts))
        if self._compile_with_xla:
            differentiate_all = tf.function(differentiate_all, jit_compile=True, autograph=False)
        gradients, loss_sums, metrics = differentiate_all(inputs)
        gradients = replica_context.all_reduce(SUM, gradients)
        loss_sums, metrics = replica_context.all_reduce(SUM, (loss_sums, metrics))

        # Clipping and the update, which is left out if the loss or a gradient isn't finite.
        loss = tf.add_n([factors[name] * loss_sums[name] for name in factors])
        clip_factor, norm = clip_factor_and_norm(gradients, self.config.optimizer.clip_norm)
        finite = tf.math.is_finite(norm) & tf.math.is_finite(loss)
        # In float16 a lower loss scale repairs most overflows, so their norm doesn't count.
        norm_weight = tf.where(tf.math.is_finite(norm) | (loss_scale <= 1.0), 1.0, 0.0)
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
            "gradient_norm": WeightedMean(
                tf.math.multiply_no_nan(norm, norm_weight), norm_weight)}


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


class WeightAverage(tf.Module):
    """The mean of the weights after every 10th step, then their exponential moving average.

    After step 10 k, average += (w - average) * max(1 - decay^10, 1 / k), so that initial weights
    have no part in it. Up to step 10 it is the weights of the last step.
    """

    def __init__(self, decay: float, variables: Sequence[tf.Variable]):
        """Creates an average per variable, under the strategy's scope."""
        super().__init__(name="average")
        self._share, self._variables = 1.0 - decay**AVERAGED_STEPS, list(variables)
        self.averages = [tf.Variable(tf.zeros_like(variable), trainable=False,
                                     name=f"{variable.name.split(':')[0]}/average")
                         for variable in variables]

    def update(self, step: tf.Tensor) -> None:
        """Updates the averages after the step of one replica, in a replica context.

        `step`, integer [], counts all earlier steps. A step that left the weights as they were, as
        its gradients were not finite, counts like others.
        """
        # Most steps pass the averages on, without a copy.
        steps = step + 1
        count = tf.cast(tf.maximum(steps // AVERAGED_STEPS, 1), tf.float32)
        share = tf.maximum(self._share, 1.0 / count)
        averages = list(map(tf.convert_to_tensor, self.averages))
        weights = list(map(tf.convert_to_tensor, self._variables))
        averages = tf.cond((steps < AVERAGED_STEPS) | (steps % AVERAGED_STEPS == 0),
                           lambda: _mix(averages, weights, share), lambda: averages)

        def assign_all(strategy, averages):
            for variable, average in zip(self.averages, averages, strict=True):
                strategy.extended.update(
                    variable, lambda variable, value: variable.assign(value), args=(average,),
                    group=False)

        tf.distribute.get_replica_context().merge_call(assign_all, args=(averages,))

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Gives the model the averages within the context; outside of replica contexts."""
        weights = [variable.numpy() for variable in self._variables]
        for variable, average in zip(self._variables, self.averages, strict=True):
            variable.assign(average)
        try:
            yield
        finally:
            for variable, weight in zip(self._variables, weights, strict=True):
                variable.assign(weight)


@fused
def _mix(averages: Sequence[tf.Tensor], weights: Sequence[tf.Tensor],
         share: tf.Tensor) -> list[tf.Tensor]:
    return [average + share * (weight - average)
            for average, weight in zip(averages, weights, strict=True)]


def _scalar(value: float, name: str, dtype: tf.DType) -> tf.Variable:
    return tf.Variable(value, trainable=False, name=name, dtype=dtype,
                       aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)


def concat_parts(function: RowsFunction, inputs: Any, parts: int) -> Any:
    """Runs a function on all parts in parallel and concatenates the tensors of its results.

    `inputs` is a structure of tensors [B, ...], B a multiple of `parts`.
    """
    traced = tf.function(function, autograph=False, experimental_attributes=NOT_INLINED)
    results = [traced(rows, tf.constant(first_row, tf.int64))
               for first_row, rows in _split_rows(inputs, parts)]
    return tf.nest.map_structure(lambda *values: tf.concat(values, axis=0), *results)


def sum_parts(function: RowsFunction, inputs: Any, *, rounds: int, parts: int) -> Any:
    """Returns the sum of a function's results, a structure of tensors, over a whole batch.

    The rounds run one after the other, the parts of each in parallel. `inputs` is a structure of
    tensors [B, ...], B a multiple of `rounds * parts`. A part has consecutive rows, a round of it
    every `rounds`-th of them: a compiler may give every core consecutive rows of the batch, and so
    each core works in every round.
    """
    traced = tf.function(function, autograph=False, experimental_attributes=NOT_INLINED)

    def run_round(index: tf.Tensor | int) -> Any:
        # [B, ...] becomes [B / rounds, rounds, ...]; row i of round r has index i * rounds + r in
        # the batch. TensorFlow runs parts in parallel, as they don't depend on each other.
        own_rows = tf.nest.map_structure(lambda rows: tf.reshape(
            rows, [-1, rounds, *rows.shape[1:]])[:, index], inputs)
        results = [traced(rows, tf.cast(first_row * rounds + index, tf.int64))
                   for first_row, rows in _split_rows(own_rows, parts)]
        return tf.nest.map_structure(lambda *values: tf.add_n(values), *results)

    if rounds == 1:
        return run_round(0)

    # A loop in the graph: memory holds the sums and one round's activations.
    _, sums = tf.while_loop(
        lambda index, _: index < rounds,
        lambda index, sums: (index + 1, tf.nest.map_structure(tf.add, sums, run_round(index))),
        (tf.constant(1), run_round(0)))
    return sums


def _split_rows(inputs: Any, parts: int) -> Iterator[tuple[int, Any]]:
    """Yields the index of the first row of each part of a batch, and its rows."""
    columns = [tf.split(value, parts) for value in tf.nest.flatten(inputs)]
    size = columns[0][0].shape[0]
    for index, rows in enumerate(zip(*columns, strict=True)):
        yield index * size, tf.nest.pack_sequence_as(inputs, rows)


def largest_divisor(number: int, limit: int) -> int:
    """Returns the largest divisor of `number` up to `limit`."""
    return max(divisor for divisor in range(1, limit + 1) if number % divisor == 0)


def with_static_rows(batch: Any, rows: int) -> Any:
    """Restores the static shapes [rows, ...], which a dataset of several workers loses."""
    return tf.nest.map_structure(
        lambda value: tf.ensure_shape(value, [rows, *value.shape[1:]]), batch)
