"""The steps of a run: their function on the devices, their results, and the events between them."""

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from electra_tf.config.runtime import RuntimeConfig
from electra_tf.core.errors import UserError
from electra_tf.objectives.objective import Means
from electra_tf.training.devices import device_type
from electra_tf.training.step import CHECKED, TrainStep

Totals = dict[str, tuple[float, float]]  # Name -> sum and weight over several steps.

TPU_STEPS = 20
"""Steps of one loop on a TPU. A signal waits for its end: 20 s for slow steps of 1 s. A preempted
machine gets 30 s."""


def compile_steps(train_step: TrainStep, batches: tf.distribute.DistributedDataset, *,
                  in_loops: bool = False) -> Callable[[int], Means]:
    """Returns `train_steps(count)`, which starts steps on the next batches.

    It returns their means, whose parts are [] after a step and [steps] after a loop; an accelerator
    may run on after the call. `count` is 1, or with `in_loops` the number of steps of one loop on
    the devices.
    """
    iterator = iter(batches)

    @tf.function(autograph=False)
    def run_step(count: int = 1) -> Means:
        return train_step(next(iterator))

    if not in_loops:
        return run_step
    traced_step = run_step.get_concrete_function()

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([], tf.int32)])
    def run_loop(count: tf.Tensor) -> Means:
        # An array for each of a step's results, float32 [steps] in the end.
        arrays = tf.nest.map_structure(
            lambda output: tf.TensorArray(output.dtype, count, element_shape=output.shape),
            traced_step.structured_outputs)
        _, arrays = tf.while_loop(
            lambda index, _: index < count,
            lambda index, arrays: (index + 1, tf.nest.map_structure(
                lambda array, value: array.write(index, value), arrays, traced_step())),
            (tf.constant(0), arrays), parallel_iterations=1)
        return tf.nest.map_structure(lambda array: array.stack(), arrays)

    return run_loop


def steps_per_loop(runtime: RuntimeConfig, strategy: tf.distribute.Strategy) -> int:
    """Returns the largest number of steps in one loop on the devices.

    The default is one on a CPU or GPU, which starts a step while the last one is running. A TPU
    waits for its host between two calls.
    """
    return runtime.steps_per_loop or (TPU_STEPS if device_type(strategy) == "TPU" else 1)


class StepMetrics:
    """The losses and metrics of the last steps, which stay on the devices until they are read."""

    def __init__(self) -> None:
        self._results: list[Means] = []

    def update(self, results: Means) -> None:
        """Adds the results of a step, or of a loop of steps."""
        self._results.append(results)

    def pop(self, last_step: int) -> Totals:
        """Returns the totals of all steps since the last call, up to `last_step`; waits for them.

        Raises `UserError` if a loss or gradient norm isn't finite; the weights are then those
        before that step.
        """
        # Name -> sum and weight of every step, float64 [steps, 2]; reading them waits.
        results, self._results = self._results, []
        history = {name: np.column_stack([
            np.hstack([result[name].total for result in results]),
            np.hstack([result[name].weight for result in results])]).astype(np.float64)
            for name in results[0]}

        # The first ten steps whose loss or gradient norm isn't finite.
        for name in CHECKED:
            not_finite = np.flatnonzero(~np.isfinite(history[name][:, 0]))
            if not_finite.size:
                first = last_step - len(history[name]) + 1
                steps = ", ".join(str(first + index) for index in not_finite[:10])
                raise UserError(
                    f"{name} is not finite at step {steps}"
                    f"{'...' if not_finite.size > 10 else ''}. Begin again with --restart, or from "
                    "this run's last checkpoint, if it has one, with --init_checkpoint set to its "
                    "directory and a new --model_dir; in both cases with a lower --learning_rate "
                    "or --precision=float32.")
        return {name: tuple(rows.sum(axis=0)) for name, rows in history.items()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Events:
    """The events of a run from `first_step` to `num_steps`, by the number of finished steps."""

    first_step: int
    num_steps: int
    runtime: RuntimeConfig  # Intervals of the events.
    steps_per_loop: int = 1  # Maximum number of steps in one loop on the devices.

    def steps_until_next(self, step: int) -> int:
        """Returns the number of steps until the next event."""
        count = 1
        while count < self.steps_per_loop and not self.needs_results(step + count):
            count += 1
        return count

    @property
    def intervals(self) -> dict[str, tuple[int, bool]]:
        """Event -> its interval in steps, 0 for none, and True if it also follows the last step."""
        return {"log": (self.runtime.log_every_steps, True),
                "checkpoint": (self.runtime.save_checkpoints_steps, True),
                "samples": (self.runtime.sample_every_steps, False),
                "evaluation": (self.runtime.eval_every_steps, True)}

    def is_due(self, event: str, step: int) -> bool:
        """Returns True if an event follows a step. An interval of the log ends at checkpoints."""
        interval, at_the_end = self.intervals[event]
        return ((step > 0 and interval > 0 and step % interval == 0)
                or (at_the_end and step == self.num_steps)
                or (event == "log" and self.is_due("checkpoint", step)))

    def needs_results(self, step: int) -> bool:
        """Returns True if losses are read from the devices, which then wait.

        A read before every other event keeps the result of a bad step out of checkpoints.
        """
        return step == self.first_step + 1 or any(
            self.is_due(event, step) for event in self.intervals)

    def remaining(self, step: int) -> dict[str, int]:
        """Returns the number of events after a step by kind; for the log those of its interval."""
        counts = {}
        for event, (interval, at_the_end) in self.intervals.items():
            # Multiples of the interval, and the last step if it is none.
            multiples = self.num_steps // interval - step // interval if interval else 0
            has_extra = at_the_end and step < self.num_steps and (
                not interval or self.num_steps % interval != 0)
            counts[event] = multiples + has_extra
        return counts
