"""Everything that decides what a pre-training run computes."""

import dataclasses
import enum

import numpy as np

from electra_tf.config.checks import (
    LARGEST_COUNT,
    require,
    require_at_most,
    require_positive,
    require_probability,
)
from electra_tf.config.initialization import InitializationConfig
from electra_tf.config.model import ModelConfig
from electra_tf.config.objectives import ElectraConfig, ObjectiveConfig
from electra_tf.config.runtime import RuntimeConfig

LARGEST_BATCH = 1 << 20
"""Examples of a step: 500 times ELECTRA-Large's."""


class PositionDraw(enum.StrEnum):
    """How the masked positions of an example are drawn."""

    WITHOUT_REPLACEMENT = "without_replacement"
    WITH_REPLACEMENT = "with_replacement"
    """The reference implementation's draw: 7 to 12 % of the positions are duplicates, and the
    tokens that fall on one position are averaged. Its author calls it a flaw."""


class Precision(enum.StrEnum):
    """Type of activations and matrix products; weights and statistics stay float32."""

    AUTO = "auto"
    """bfloat16 where the device multiplies it natively, float32 elsewhere."""
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    """With dynamic loss scaling."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Which records are read, and in what order."""

    max_seq_length: int = 0
    """Tokens per example; 0 takes the length that the records were built with."""
    shuffle_window: int = 131072
    """Rows shuffled together; they come from 64 shards or more, the same part of each."""

    def __post_init__(self):
        require(self.max_seq_length >= 0, "data.max_seq_length", "0 or more", self.max_seq_length)
        require_positive("data", self, "shuffle_window")
        require_at_most("data", self, 1 << 16, "max_seq_length")
        require_at_most("data", self, LARGEST_COUNT, "shuffle_window")


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskingConfig:
    """Which tokens the generator has to guess (ELECTRA, section 3.1; appendix A)."""

    rate: float = 0.15
    """Fraction of an example's tokens selected, in (0, 1)."""
    mask_token_rate: float = 0.85
    """Fraction of the selected positions that read [MASK]. BERT's is 0.8."""
    random_token_rate: float = 0.0
    """Fraction of the selected positions that read a random token; those left keep theirs. BERT's
    is 0.1 (Devlin et al., 2019, table 8 compares others)."""
    whole_words: bool = False
    """Select all pieces of a word or none: whole-word masking, as in BERT's later models. Words
    that don't fit into an example's share of positions any more are passed over."""
    position_draw: PositionDraw = PositionDraw.WITHOUT_REPLACEMENT
    """Whether an example's positions are distinct, or drawn as the reference draws them."""

    def __post_init__(self):
        require(0.0 < self.rate < 1.0, "masking.rate", "in (0, 1)", self.rate)
        for name in ("mask_token_rate", "random_token_rate"):
            value = getattr(self, name)
            require(0.0 <= value <= 1.0, f"masking.{name}", "in [0, 1]", value)
        require(self.mask_token_rate + self.random_token_rate <= 1.0 + 1e-9,
                "masking.random_token_rate",
                f"at most 1 with masking.mask_token_rate={self.mask_token_rate}",
                self.random_token_rate)
        require(not (self.whole_words and self.position_draw is PositionDraw.WITH_REPLACEMENT),
                "masking.whole_words", "false with masking.position_draw=with_replacement",
                self.whole_words)

    def max_predictions(self, max_seq_length: int) -> int:
        """Returns N, the static number of prediction slots of an example of L positions."""
        return max(1, int((self.rate + 0.005) * max_seq_length))

    def predictions_by_length(self, max_seq_length: int) -> np.ndarray:
        """Returns int32 [L + 1]: predictions for an example of 0, 1, ... L tokens.

        round(rate * tokens) with halves to even in float32, as the reference computes it, at
        least 1 (0 without tokens) and at most N.
        """
        tokens = np.arange(max_seq_length + 1, dtype=np.float32)
        rounded = np.round(tokens * np.float32(self.rate)).astype(np.int32)
        predictions = np.clip(rounded, 1, self.max_predictions(max_seq_length))
        predictions[0] = 0
        return predictions


@dataclasses.dataclass(frozen=True, kw_only=True)
class SamplingConfig:
    """How the generator's distributions become tokens (ELECTRA, section 3.1)."""

    temperature: float = 1.0
    """What its logits are divided by before a token is drawn: above 1 likelier to be a mistake that
    is easy to see, towards 0 the most likely token. The generator's loss knows nothing of it."""
    initial_temperature: float = 0.0
    """Temperature at the first step, from which it falls to `sampling.temperature`; 0 for no
    change. For a generator that is good from the start (Fast-ELECTRA, Dong et al., 2024: 2)."""
    cooling_time: float = 0.1
    """Part of the run in which the difference between the two falls to 1/e."""
    disallow_correct: bool = False
    """Never draw the token that stood there, so that every selected token is replaced."""

    def __post_init__(self):
        require(0.01 <= self.temperature <= 100.0, "sampling.temperature", "0.01 to 100",
                self.temperature)
        require(self.initial_temperature == 0.0 or 0.01 <= self.initial_temperature <= 100.0,
                "sampling.initial_temperature", "0, or 0.01 to 100", self.initial_temperature)
        require(0.0 < self.cooling_time <= 100.0, "sampling.cooling_time", "in (0, 100]",
                self.cooling_time)


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How long, with what batch, from which seed."""

    num_train_steps: int = 1_000_000
    """Steps of the whole run; the learning rate reaches zero there."""
    train_batch_size: int = 128
    """Examples per step, the global batch: the sum over all replicas and micro-batches."""
    seed: int = 1
    """Of initial weights, input order, masks, samples and dropout."""
    precision: Precision = Precision.AUTO
    """Type of activations and matrix products; auto: bfloat16 where the device multiplies it
    natively. float16 comes with loss scaling."""

    def __post_init__(self):
        require_positive("training", self, "num_train_steps", "train_batch_size")
        require(self.seed >= 0, "training.seed", "0 or more", self.seed)
        require_at_most("training", self, LARGEST_COUNT, "num_train_steps", "seed")
        require_at_most("training", self, LARGEST_BATCH, "train_batch_size")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingConfig:
    """A whole run. All sections but `runtime` decide its result."""

    model: ModelConfig = ModelConfig()
    initialization: InitializationConfig = InitializationConfig()
    data: DataConfig = DataConfig()
    masking: MaskingConfig = MaskingConfig()
    sampling: SamplingConfig = SamplingConfig()
    objective: ObjectiveConfig = ElectraConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    training: TrainingConfig = TrainingConfig()
    runtime: RuntimeConfig = RuntimeConfig()

    def __post_init__(self):
        self.initialization.require_room(self.model)
