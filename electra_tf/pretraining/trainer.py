"""Steps under a strategy, and what they report."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from electra_tf.config.pretraining import Precision
from electra_tf.errors import UserError
from electra_tf.training.step import TrainStep

Totals = dict[str, tuple[float, float]]


class Trainer:
    """Runs one step at a time; reads what steps report when it is asked.

    Example:
        trainer.step()
        trainer.step()
        totals = trainer.totals()  # Of both.
    """

    def __init__(self, strategy: tf.distribute.Strategy, step: TrainStep,
                 batches: tf.distribute.DistributedDataset):
        """Takes the step and the batches of all steps from the restored one on."""
        self._strategy = strategy
        self._step = step
        self._batches = batches
        self._iterator = None
        self._outputs = []
        # A step whose gradients overflow float16 is skipped: that is how loss scaling works.
        self._watched = (["loss"] if step.config.training.precision is Precision.FLOAT16
                         else ["loss", "gradient_norm"])
        self._run_step = tf.function(self._replicas_step, autograph=False)

    def _replicas_step(self, iterator):
        results = self._strategy.run(self._step, args=(next(iterator),))
        return tf.nest.map_structure(
            lambda value: self._strategy.experimental_local_results(value)[0], results)

    def step(self) -> None:
        """Runs a step on the next batch. An accelerator may still be busy with it afterwards."""
        if self._iterator is None:
            self._iterator = iter(self._batches)
        self._outputs.append(self._run_step(self._iterator))

    def totals(self) -> Totals:
        """Waits for the steps since the last call, at least one.

        Returns:
            Name -> (sum, weight) of every loss and statistic over these steps.

        Raises:
            UserError: a loss or gradient wasn't finite; names the steps. The weights are those
                before the first such step.
        """
        outputs, self._outputs = self._outputs, []
        first = int(self._step.state.step.numpy()) - len(outputs)
        history = {
            name: np.array([[float(part) for part in output[name]] for output in outputs])
            for name in outputs[0]}
        self._require_finite(first, history)
        return {name: tuple(rows.sum(axis=0)) for name, rows in history.items()}

    def _require_finite(self, first: int, history: Mapping[str, np.ndarray]) -> None:
        for name in self._watched:
            bad = np.flatnonzero(~np.isfinite(history[name][:, 0]))
            if bad.size:
                steps = ", ".join(str(first + index + 1) for index in bad[:10])
                more = f" and {bad.size - 10} more" if bad.size > 10 else ""
                raise UserError(
                    f"{name} is not finite at step {steps}{more}. The last checkpoint is intact; "
                    "continue from it with a lower --learning_rate in a new --model_dir, or try "
                    "--precision=float32.")
