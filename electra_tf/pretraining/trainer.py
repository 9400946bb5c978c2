"""Runs training steps under a strategy and collects their results."""

from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from electra_tf.config.runtime import Precision, RuntimeConfig
from electra_tf.objectives.objective import Ratio
from electra_tf.platform.errors import UserError
from electra_tf.training.devices import device_type
from electra_tf.training.step import TrainStep

Totals = dict[str, tuple[float, float]]
Outputs = Mapping[str, Ratio]

TPU_STEPS = 20
"""A signal waits for them: at a second a step, which is slow, less than the 30 that a preempted
machine is given."""


class Trainer:
    """A compiled step, its batches, and the results that were not read yet."""

    def __init__(self, strategy: tf.distribute.Strategy, step: TrainStep,
                 batches: tf.distribute.DistributedDataset, *, in_loops: bool = False):
        """Takes the step and the batches of all steps from the restored one on.

        With `in_loops` the steps of a call run in one loop in the graph.
        """
        self._strategy = strategy
        self._step = step
        self._batches = batches
        self._iterator = None
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

    def _traced_loop(self) -> Callable[[tf.Tensor], Outputs]:
        """Returns a function that runs a number of steps and stacks their results, [steps] each."""
        one_step = self._run_step.get_concrete_function(self._iterator)

        def run(count: tf.Tensor) -> Outputs:
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
        if self._iterator is None:
            self._iterator = iter(self._batches)
        if self._in_loops:
            self._run_loop = self._run_loop or self._traced_loop()
            self._outputs.append(self._run_loop(tf.constant(count)))
        else:
            self._outputs += [self._run_step(self._iterator) for _ in range(count)]

    def totals(self) -> Totals:
        """Waits for the steps since the last call, at least one.

        Returns:
            Name -> (sum, weight) of every loss and statistic over these steps.

        Raises:
            UserError: a loss or gradient isn't finite; the weights are those before that step.
        """
        outputs, self._outputs = self._outputs, []
        history = {name: np.concatenate([_rows(output[name]) for output in outputs])
                   for name in outputs[0]}
        self._require_finite(history)
        return {name: tuple(rows.sum(axis=0)) for name, rows in history.items()}

    def _require_finite(self, history: Mapping[str, np.ndarray]) -> None:
        for name in self._watched:
            bad = np.flatnonzero(~np.isfinite(history[name][:, 0]))
            first = int(self._step.state.step.numpy()) - len(history[name])
            if bad.size:
                steps = ", ".join(str(first + index + 1) for index in bad[:10])
                more = f" and {bad.size - 10} more" if bad.size > 10 else ""
                raise UserError(
                    f"{name} is not finite at step {steps}{more}. The last checkpoint is intact; "
                    "continue from it with a lower --learning_rate in a new --model_dir, or try "
                    "--precision=float32.")


def _rows(ratio: Ratio) -> np.ndarray:
    """Returns sums and weights of a step, or of a loop's steps, float64 [steps, 2]."""
    return np.column_stack([np.atleast_1d(part) for part in ratio]).astype(np.float64)


def steps_per_loop(runtime: RuntimeConfig, strategy: tf.distribute.Strategy) -> int:
    """Returns the steps that devices run, at most, without coming back to the program.

    One on a CPU or a GPU, which begins the next step while one is still running. A TPU waits for
    its host between two calls.
    """
    return runtime.steps_per_loop or (TPU_STEPS if device_type(strategy) == "TPU" else 1)
