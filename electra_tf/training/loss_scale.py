"""Dynamic loss scaling for float16 (Micikevicius et al., 2018, section 3.2)."""

import tensorflow as tf


class LossScale(tf.Module):
    """A factor that keeps small gradients representable in float16.

    It halves after a step with non-finite gradients and doubles after 2,000 good ones. With a
    fixed scale of 1 (`enabled=False`) it does nothing.
    """

    INITIAL = 2.0**15
    GROWTH_INTERVAL = 2000

    def __init__(self, enabled: bool):
        super().__init__(name="loss_scale")
        self.enabled = enabled
        self.scale = tf.Variable(
            self.INITIAL if enabled else 1.0, trainable=False, name="loss_scale",
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
        self.good_steps = tf.Variable(
            0, trainable=False, name="good_steps", dtype=tf.int64,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)

    def update(self, finite: tf.Tensor) -> None:
        """Adapts the scale to one step, bool []: whether its gradients were finite."""
        if not self.enabled:
            return
        streak = tf.where(finite, self.good_steps + 1, tf.zeros([], tf.int64))
        grow = streak >= self.GROWTH_INTERVAL
        grown = tf.where(grow, self.scale * 2.0, self.scale)
        self.scale.assign(tf.where(finite, grown, tf.maximum(self.scale / 2.0, 1.0)))
        self.good_steps.assign(tf.where(grow, tf.zeros([], tf.int64), streak))
