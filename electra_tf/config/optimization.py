"""The optimizer and its schedule."""

import dataclasses
import enum

from electra_tf.config.checks import (
    LARGEST_COUNT,
    require,
    require_at_most,
    require_positive,
    require_probability,
)


class Optimizer(enum.StrEnum):
    """How gradients become steps."""

    ADAM = "adam"
    """With decoupled weight decay, as BERT and ELECTRA use it."""
    LAMB = "lamb"
    """Adam whose step for a weight is as long as the weight, times the rate (You et al., 2020): for
    batches of thousands."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """The optimizer with decoupled weight decay, and its schedule."""

    name: Optimizer = Optimizer.ADAM
    """adam, or lamb for batches of thousands, whose rate is another: docs/devices.md."""
    learning_rate: float = 5e-4
    """Peak rate."""
    warmup_steps: int = -1
    """Steps of linear warm-up. -1 takes the paper's 10,000, or a tenth of a run that is
    shorter than 100,000 steps."""
    decay_power: float = 1.0
    """Exponent of the polynomial decay to zero; 1 is linear."""
    beta_1: float = 0.9
    """Decay of the first moments."""
    beta_2: float = 0.999
    """Decay of the second moments."""
    epsilon: float = 1e-6
    """Added to the root of the second moments, outside of it."""
    bias_correction: bool = False
    """Divide the moments by 1 - beta^t (Kingma and Ba, 2015, algorithm 1). BERT and ELECTRA don't:
    their first steps are three times as large as the rate says, and the moments that go with them
    last for a thousand."""
    weight_decay: float = 0.01
    """Times the learning rate; not on biases and layer norms."""
    clip_norm: float = 1.0
    """Largest joint norm of all gradients, after adding up over replicas."""

    def __post_init__(self):
        require_positive("optimizer", self, "learning_rate", "decay_power", "epsilon", "clip_norm")
        require_probability("optimizer", self, "beta_1", "beta_2", "weight_decay")
        require(self.warmup_steps >= -1, "optimizer.warmup_steps", "-1 or more", self.warmup_steps)
        require_at_most("optimizer", self, LARGEST_COUNT, "warmup_steps")
        require_at_most("optimizer", self, 100, "learning_rate", "decay_power", "epsilon")

    def warmup(self, num_train_steps: int) -> float:
        """Returns the number of warm-up steps of a run of `num_train_steps`."""
        if self.warmup_steps >= 0:
            return self.warmup_steps
        return min(10_000, num_train_steps // 10)
