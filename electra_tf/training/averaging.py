"""An average of the weights of many steps, beside those that are trained."""

import contextlib
from collections.abc import Iterator, Sequence

import tensorflow as tf

from electra_tf.modeling.fused import fused

EVERY = 10  # Steps from one update to the next, so that it takes less than 1 % of the time.


class WeightAverage(tf.Module):
    """The mean of the weights after every 10th step, then their exponential moving average.

    After step 10 k, average += (w - average) * max(1 - decay^10, 1 / k), so that initial weights
    have no part in it. Up to step 10 it is the weights of the last step.
    """

    def __init__(self, decay: float, variables: Sequence[tf.Variable]):
        """Creates an average per variable, under the strategy's scope."""
        super().__init__(name="average")
        self._share, self._variables = 1.0 - decay**EVERY, list(variables)
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
        share = tf.maximum(self._share, 1.0 / tf.cast(tf.maximum(steps // EVERY, 1), tf.float32))
        averages = list(map(tf.convert_to_tensor, self.averages))
        weights = list(map(tf.convert_to_tensor, self._variables))
        averages = tf.cond((steps < EVERY) | (steps % EVERY == 0),
                           lambda: _mix(averages, weights, share), lambda: averages)

        def assign_all(strategy, averages):
            for variable, average in zip(self.averages, averages, strict=True):
                strategy.extended.update(variable, _assign, args=(average,), group=False)

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


def _assign(variable: tf.Variable, value: tf.Tensor) -> None:
    variable.assign(value)
