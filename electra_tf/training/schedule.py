"""The learning rate: linear warm-up times a polynomial decay, over the whole run or its end."""

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from electra_tf.config.optimization import OptimizerConfig

EXTENSION_WARMUP = 0.1  # Longest warm-up of an extension, as a fraction of its steps.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Schedule:
    """A learning rate, peak * (1 - min(t, T) / T)**power * min(1, t / warmup), t from 0.

    With S stable steps the decay begins at t = S: t - S, if it isn't negative, and T - S replace t
    and T in its formula.

    The warm-up is multiplied into the decay, as in the reference implementation, so the largest
    rate is a little below the peak. The first rate is 0 with a warm-up and the peak without.
    """

    peak: float
    decay_steps: int  # T.
    warmup_steps: float
    """Not rounded: fine-tuning warms up for a tenth of its steps, such as 3.3 of 33."""
    power: float = 1.0
    stable_steps: float = 0.0  # S; T if the rate never decays.
    begin: int = 0  # Step at which t is 0.
    before: "Schedule | None" = None  # Schedule of the steps before `begin`.

    @classmethod
    def from_config(cls, config: OptimizerConfig, num_train_steps: int,
                    finished_at: Sequence[int] = (), stable_until: int = 0) -> "Schedule":
        """Returns the schedule that settings describe.

        Each extension of a run, after the steps `finished_at`, has a short warm-up to the peak and
        a decay to zero. The loss of ELECTRA-Tiny is 24.12 after 1,000 + 1,000 steps and 24.00 after
        2,000 in one run; it is 24.84 with that run's lower rates in the extension.

        The extension of a run that ended without a decay, or did so up to the step `stable_until`,
        is the same schedule with more steps, whose decay does not begin before the extension.
        """
        # The last extension begins at `begin`; the schedule before it is that of the earlier run.
        *earlier, begin = [0] if not finished_at else finished_at
        before = cls.from_config(config, begin, earlier, stable_until) if begin else None
        stable = 1.0 - (config.decay_fraction if num_train_steps > stable_until else 0.0)
        if before is not None and before.stable_steps == before.decay_steps:
            steps = num_train_steps - before.begin
            return dataclasses.replace(before, decay_steps=steps, stable_steps=max(
                stable * steps, begin - before.begin))
        steps = num_train_steps - begin
        warmup = config.warmup(steps)
        if begin:
            warmup = min(warmup, EXTENSION_WARMUP * steps)
        return cls(peak=config.learning_rate, power=config.decay_power, begin=begin,
                   decay_steps=steps, warmup_steps=warmup, stable_steps=stable * steps,
                   before=before)

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        """Returns the learning rate, float32 [], of a step, integer []."""
        # peak * (1 - progress)**power, times min(1, t / warmup).
        time = tf.cast(step - self.begin, tf.float32)
        rate, decay = tf.constant(self.peak), self.decay_steps - self.stable_steps
        if decay:
            progress = tf.clip_by_value(time - self.stable_steps, 0.0, decay) / decay
            rate = self.peak * tf.pow(1.0 - progress, self.power)
        if self.warmup_steps:
            rate *= tf.minimum(1.0, time / self.warmup_steps)
        if self.before is None:
            return rate
        return tf.where(step < self.begin, self.before(step), rate)
