"""Runs training steps under a strategy, and schedules checkpoints, evaluations and samples."""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from electra_tf.config.runtime import Precision, RuntimeConfig
from electra_tf.objectives.objective import Ratio
from electra_tf.platform.errors import UserError
from electra_tf.training.devices import device_type
from electra_tf.training.step import TrainStep

Totals = dict[str, tuple[float, float]]

TPU_STEPS = 20
"""Steps of a loop on a TPU, whose end a signal waits for: 20 s if a step takes 1 s, which is slow.
A preempted machine gets 30 s."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Timetable:
    """The events of a run from `first_step` to `num_steps`, by the number of finished steps."""

    first_step: int
    num_steps: int
    runtime: RuntimeConfig
    """Intervals of the events."""
    steps_per_loop: int = 1
    """Most steps of one loop on the devices."""

    def steps_in_one_go(self, step: int) -> int:
        """Returns the number of steps until the next event."""
        count = 1
        while count < self.steps_per_loop and not self.reads(step + count):
            count += 1
        return count

    def reads(self, step: int) -> bool:
        """Returns True if losses are read from the devices, which then wait.

        A read before every other event keeps the result of a bad step out of checkpoints.
        """
        return (step == self.first_step + 1 or self.records(step) or self.samples(step)
                or self.evaluates(step))

    def records(self, step: int) -> bool:
        """Returns True if an interval of metrics.jsonl ends, as at every checkpoint."""
        return self.saves(step) or _due(step, self.runtime.log_every_steps)

    def saves(self, step: int) -> bool:
        """Returns True if a checkpoint is due."""
        return step == self.num_steps or _due(step, self.runtime.save_checkpoints_steps)

    def samples(self, step: int) -> bool:
        """Returns True if sample corruptions are due."""
        return _due(step, self.runtime.sample_every_steps)

    def evaluates(self, step: int) -> bool:
        """Returns True if an evaluation is due."""
        return step == self.num_steps or _due(step, self.runtime.eval_every_steps)

    def to_come(self, step: int) -> dict[str, int]:
        """Returns the number of future events of each kind, by the reporter's names."""
        def times(every: int, *, at_the_end: bool) -> int:
            extra = at_the_end and step < self.num_steps and not _due(self.num_steps, every)
            return (self.num_steps // every - step // every if every else 0) + extra

        return {"checkpoint": times(self.runtime.save_checkpoints_steps, at_the_end=True),
                "samples": times(self.runtime.sample_every_steps, at_the_end=False),
                "evaluation": times(self.runtime.eval_every_steps, at_the_end=True)}


def _due(step: int, every: int) -> bool:
    return step > 0 and every > 0 and step % every == 0


class Trainer:
    """A compiled step, its batches, and the results that were not read yet."""

    def __init__(self, strategy: tf.distribute.Strategy, step: TrainStep,
                 batches: tf.distribute.DistributedDataset, *, in_loops: bool = False):
        """Takes the batches from the restored step on; with `in_loops` a call is one loop."""
        self._strategy, self._step, self._iterator = strategy, step, iter(batches)
        self._outputs = []
        # Loss scaling skips a step whose gradients overflow float16.
        self._watched = (["loss"] if step.config.training.precision is Precision.FLOAT16
                         else ["loss", "gradient_norm"])
        self._in_loops = in_loops
        self._run_step = tf.function(self._replicas_step, autograph=False)
        self._run_loop = None

    def _replicas_step(self, iterator):
        results = self._strategy.run(self._step, args=(next(iterator),))
        return tf.nest.map_structure(
            lambda value: self._strategy.experimental_local_results(value)[0], results)

    def _traced_loop(self) -> Callable[[tf.Tensor], Mapping[str, Ratio]]:
        """Returns a function that runs a number of steps and stacks their results, [steps] each."""
        one_step = self._run_step.get_concrete_function(self._iterator)

        def run(count: tf.Tensor) -> Mapping[str, Ratio]:
            def add_step(index: tf.Tensor, reports):
                return index + 1, tf.nest.map_structure(
                    lambda report, value: report.write(index, value), reports,
                    one_step(self._iterator))

            nothing = tf.nest.map_structure(
                lambda output: tf.TensorArray(output.dtype, count, element_shape=output.shape),
                one_step.structured_outputs)
            _, reports = tf.while_loop(lambda index, _reports: index < count, add_step,
                                       (tf.constant(0), nothing), parallel_iterations=1)
            return tf.nest.map_structure(lambda report: report.stack(), reports)

        return tf.function(run, autograph=False)

    def run(self, count: int = 1) -> None:
        """Starts steps on the next batches; an accelerator may run on after the call."""
        if self._in_loops:
            self._run_loop = self._run_loop or self._traced_loop()
            self._outputs.append(self._run_loop(tf.constant(count)))
        else:
            self._outputs += [self._run_step(self._iterator) for _ in range(count)]

    def totals(self) -> Totals:
        """Returns (sum, weight) by name over the steps since the last call, at least one.

        Waits for the steps. Raises `UserError` if a loss or gradient norm isn't finite; the weights
        are then those before that step.
        """
        outputs, self._outputs = self._outputs, []
        # A single step's results are scalars, those of a loop have shape [steps].
        history = {name: np.column_stack([
            np.hstack([output[name][part] for output in outputs]) for part in (0, 1)
        ]).astype(np.float64) for name in outputs[0]}
        for name in self._watched:
            bad = np.flatnonzero(~np.isfinite(history[name][:, 0]))
            if bad.size:
                first = int(self._step.state.step.numpy()) - len(history[name]) + 1
                steps = ", ".join(str(first + index) for index in bad[:10])
                raise UserError(
                    f"{name} is not finite at step {steps}{'...' if bad.size > 10 else ''}. The "
                    "last checkpoint is intact; continue from it in a new --model_dir, by "
                    "--init_checkpoint and this run's directory, with a lower --learning_rate or "
                    "--precision=float32.")
        return {name: tuple(rows.sum(axis=0)) for name, rows in history.items()}


def steps_per_loop(runtime: RuntimeConfig, strategy: tf.distribute.Strategy) -> int:
    """Returns the largest number of steps in one loop on the devices.

    The default is one on a CPU or GPU, which starts a step while the last one is running. A TPU
    waits for its host between two calls.
    """
    return runtime.steps_per_loop or (TPU_STEPS if device_type(strategy) == "TPU" else 1)
