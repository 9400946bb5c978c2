"""Everything that decides what a pre-training run computes."""

import dataclasses
import enum

from electra_tf.config.checks import (
    LARGEST_COUNT,
    require,
    require_at_most,
    require_positive,
)
from electra_tf.config.initialization import InitializationConfig
from electra_tf.config.masking import MaskingConfig, SamplingConfig
from electra_tf.config.model import ModelConfig
from electra_tf.config.objectives import ElectraConfig, ObjectiveConfig
from electra_tf.config.optimization import OptimizerConfig
from electra_tf.config.runtime import RuntimeConfig

LARGEST_BATCH = 1 << 20
"""Examples of a step: 500 times ELECTRA-Large's."""


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
