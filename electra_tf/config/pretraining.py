"""Everything that decides what a pre-training run computes."""

import dataclasses
from typing import Annotated

from annotated_types import Interval

from electra_tf.config.model import (
    InitializationConfig,
    MaskingConfig,
    ModelConfig,
    SamplingConfig,
)
from electra_tf.config.objectives import ElectraConfig, ObjectiveConfig
from electra_tf.config.optimization import OptimizerConfig
from electra_tf.config.runtime import Batch, Precision, RuntimeConfig
from electra_tf.platform.settings import Count, PositiveCount, Section


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig(Section, prefix="data."):
    """Length and order of the examples."""

    max_seq_length: Annotated[int, Interval(ge=0, le=1 << 16)] = 0
    """Tokens per example; 0 takes the length that the records were built with."""
    shuffle_window: PositiveCount = 131072
    """Examples shuffled together; they come from 64 shards or more, the same part of each."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig(Section, prefix="training."):
    """Length of the run, batch, seed and precision."""

    num_train_steps: PositiveCount = 1_000_000
    """Steps of the whole run; the learning rate reaches zero there. A larger number extends a
    finished run."""
    train_batch_size: Batch = 128
    """Examples per step, the global batch: the sum over all replicas and micro-batches."""
    seed: Count = 1
    """Seed of initial weights, input order, masks, samples and dropout."""
    precision: Precision = Precision.AUTO
    """Type of activations and matmuls; auto: bfloat16 where the device multiplies it
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

    def __post_init__(self) -> None:
        self.initialization.require_room(self.model)
