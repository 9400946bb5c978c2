"""The learning rate over time: polynomial decay times linear warm-up."""

import dataclasses

import tensorflow as tf

from electra_tf.config.optimization import OptimizerConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Schedule:
    """rate(t) = peak * (1 - min(t, T) / T)**power * min(1, t / warmup), t from 0.

    The warm-up is multiplied into the decay, as in the reference implementation, so the peak is
    never quite reached. The first rate is 0 with a warm-up and the full one without.
    """

    peak: float
    num_train_steps: int
    warmup_steps: float
    """A fraction of a step counts: fine-tuning warms up for a tenth of its steps, 3.3 of 33."""
    power: float = 1.0

    @classmethod
    def of(cls, config: OptimizerConfig, num_train_steps: int) -> "Schedule":
        """Returns the schedule that settings describe, of a run of so many steps."""
        return cls(peak=config.learning_rate, power=config.decay_power,
                   num_train_steps=num_train_steps, warmup_steps=config.warmup(num_train_steps))

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        """Returns the learning rate, float32 [], of a step, integer []."""
        step = tf.cast(step, tf.float32)
        done = tf.minimum(step, self.num_train_steps) / self.num_train_steps
        rate = self.peak * tf.pow(1.0 - done, self.power)
        if self.warmup_steps == 0:
            return rate
        return rate * tf.minimum(1.0, step / self.warmup_steps)
