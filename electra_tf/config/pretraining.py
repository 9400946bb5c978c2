"""Everything that decides what a pre-training run computes."""

import dataclasses
import enum
from typing import Annotated

import numpy as np
from annotated_types import Interval

from electra_tf.config.initialization import InitializationConfig
from electra_tf.config.model import ModelConfig
from electra_tf.config.objectives import ElectraConfig, ObjectiveConfig
from electra_tf.config.runtime import Batch, RuntimeConfig
from electra_tf.platform.settings import (
    LARGEST_COUNT,
    Count,
    PositiveCount,
    Probability,
    Section,
    require,
)

Fraction = Annotated[float, Interval(ge=0, le=1)]
Factor = Annotated[float, Interval(gt=0, le=100)]
Temperature = Annotated[float, Interval(ge=0.01, le=100)]


class PositionDraw(enum.StrEnum):
    """Draw of the masked positions of an example."""

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
class DataConfig(Section, prefix="data."):
    """Length and order of the examples."""

    max_seq_length: Annotated[int, Interval(ge=0, le=1 << 16)] = 0
    """Tokens per example; 0 takes the length that the records were built with."""
    shuffle_window: PositiveCount = 131072
    """Examples shuffled together; they come from 64 shards or more, the same part of each."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskingConfig(Section, prefix="masking."):
    """Tokens that the generator has to predict (ELECTRA, section 3.1; appendix A)."""

    rate: Annotated[float, Interval(gt=0, lt=1)] = 0.15
    """Fraction of an example's tokens selected."""
    mask_token_rate: Fraction = 0.85
    """Fraction of the selected positions that read [MASK]. BERT's is 0.8."""
    random_token_rate: Fraction = 0.0
    """Fraction of the selected positions that read a random token; the rest keep their token.
    BERT's is 0.1 (Devlin et al., 2019, table 8 compares others)."""
    whole_words: bool = False
    """Select all pieces of a word or none: whole-word masking, as in BERT's later models. Words
    that exceed an example's remaining share of positions are skipped."""
    position_draw: PositionDraw = PositionDraw.WITHOUT_REPLACEMENT
    """Draw distinct positions, or with duplicates as the reference does."""

    def __post_init__(self):
        super().__post_init__()
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
class SamplingConfig(Section, prefix="sampling."):
    """How tokens are drawn from the generator's distributions (ELECTRA, section 3.1)."""

    temperature: Temperature = 1.0
    """Divisor of the logits before a token is drawn: above 1 replacements are easier to detect,
    towards 0 the most likely token is drawn. The generator's loss does not use it."""
    initial_temperature: Annotated[float, Interval(ge=0, le=100)] = 0.0
    """Temperature at the first step, from which it falls to `sampling.temperature`; 0 for no
    change. For a generator that is good from the start (Fast-ELECTRA, Dong et al., 2024: 2)."""
    cooling_time: Factor = 0.1
    """Part of the run in which the difference between the two falls to 1/e."""
    disallow_correct: bool = False
    """Never draw the original token, so that every selected token is replaced."""

    def __post_init__(self):
        super().__post_init__()
        require(self.initial_temperature == 0 or self.initial_temperature >= 0.01,
                "sampling.initial_temperature", "0, or 0.01 to 100", self.initial_temperature)


class Optimizer(enum.StrEnum):
    """How gradients become steps."""

    ADAM = "adam"
    """With decoupled weight decay, as in BERT and ELECTRA."""
    LAMB = "lamb"
    """Adam whose step for a weight is as long as the weight times the learning rate (You et al.,
    2020): for batches of thousands."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimizerConfig(Section, prefix="optimizer."):
    """The optimizer with decoupled weight decay, and its schedule."""

    name: Optimizer = Optimizer.ADAM
    """adam, or lamb for batches of thousands, with another learning rate: docs/devices.md."""
    learning_rate: Factor = 5e-4
    """Peak learning rate."""
    warmup_steps: Annotated[int, Interval(ge=-1, le=LARGEST_COUNT)] = -1
    """Steps of linear warm-up. -1 takes the paper's 10,000, or a tenth of a run that is
    shorter than 100,000 steps."""
    decay_power: Factor = 1.0
    """Exponent of the polynomial decay to zero; 1 is linear."""
    beta_1: Probability = 0.9
    """Decay of the first moments."""
    beta_2: Probability = 0.999
    """Decay of the second moments."""
    epsilon: Factor = 1e-6
    """Added to the root of the second moments, outside of it."""
    bias_correction: bool = False
    """Divide the moments by 1 - beta^t (Kingma and Ba, 2015, algorithm 1). BERT and ELECTRA don't:
    their first steps are three times as large as the learning rate implies, and those moments
    last for a thousand steps."""
    weight_decay: Probability = 0.01
    """Times the learning rate; not on biases and layer norms."""
    clip_norm: Annotated[float, Interval(gt=0)] = 1.0
    """Largest joint norm of all gradients, summed over replicas."""

    def warmup(self, num_train_steps: int) -> float:
        """Returns the number of warm-up steps of a run of `num_train_steps`."""
        if self.warmup_steps >= 0:
            return self.warmup_steps
        return min(10_000, num_train_steps // 10)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig(Section, prefix="training."):
    """Length of the run, batch, seed and precision."""

    num_train_steps: PositiveCount = 1_000_000
    """Steps of the whole run; the learning rate reaches zero there."""
    train_batch_size: Batch = 128
    """Examples per step, the global batch: the sum over all replicas and micro-batches."""
    seed: Count = 1
    """Seed of initial weights, input order, masks, samples and dropout."""
    precision: Precision = Precision.AUTO
    """Type of activations and matrix products; auto: bfloat16 where the device multiplies it
    natively. float16 comes with loss scaling."""


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
