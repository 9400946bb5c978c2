"""Settings of the optimizer."""

import dataclasses
from typing import Annotated, Literal

from annotated_types import Interval

from electra_tf.core.settings import LARGEST_COUNT, Flag, Probability, Section, setting

Factor = Annotated[float, Interval(gt=0, le=100)]
TRAINING, PRETRAINING = Flag("Training"), Flag("Training", ("pretraining",))


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimizerConfig(Section, prefix="optimizer."):
    """The optimizer with decoupled weight decay, and its schedule."""

    name: Literal["adam", "lamb"] = setting("adam", """The optimizer: adam, or lamb (You et al.,
        2020) for batches of thousands of examples. lamb needs another learning rate; see
        docs/how_to/accelerators.md.""")
    learning_rate: Annotated[Factor, TRAINING] = setting(5e-4, "Peak learning rate.")
    warmup_steps: Annotated[int, Interval(ge=-1, le=LARGEST_COUNT), PRETRAINING] = setting(
        -1, """Steps of linear warm-up. -1 is a tenth of the run, in pre-training at most
        10,000.""")
    decay_power: Factor = setting(1.0, """Exponent of the polynomial decay of the learning rate to
        zero. 1 is linear.""")
    beta_1: Probability = setting(0.9, "Decay rate of the first moments.")
    beta_2: Probability = setting(0.999, "Decay rate of the second moments.")
    epsilon: Factor = setting(1e-6, "Constant added to the square root of the second moments.")
    bias_correction: bool = setting(False, """Divide the moments by 1 - beta^t (Kingma and Ba, 2015,
        algorithm 1). BERT and ELECTRA do not, so their first steps are three times as large as the
        learning rate implies.""")
    weight_decay: Probability = setting(0.01, """Weight decay per step, times the learning rate.
        Biases and layer norms do not decay.""")
    clip_norm: Annotated[float, Interval(gt=0)] = setting(1.0, """Maximum global norm of the
        gradients, after their sum over replicas.""")

    def warmup(self, num_train_steps: int) -> float:
        """Returns the number of warm-up steps of a run of `num_train_steps`."""
        return self.warmup_steps if self.warmup_steps >= 0 else min(10_000, num_train_steps // 10)
