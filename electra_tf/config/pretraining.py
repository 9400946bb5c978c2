"""Settings of pre-training, with the paper's sizes and a recipe for short runs."""

import dataclasses
from typing import Annotated, Any

from annotated_types import Interval

from electra_tf.config.corruption import MaskingConfig, SamplingConfig
from electra_tf.config.model import (
    COOCCURRENCE,
    MODEL_SIZES,
    InitializationConfig,
    ModelConfig,
)
from electra_tf.config.objectives import ElectraConfig, ObjectiveConfig
from electra_tf.config.optimization import TRAINING, OptimizerConfig
from electra_tf.config.overrides import Changes, name_fields, override
from electra_tf.config.runtime import BatchSize, Precision, RuntimeConfig
from electra_tf.core.settings import Count, PositiveCount, Section, require_one_of, setting

PAPER, SHORT = RECIPES = ("paper", "short")


class DataConfig(Section, prefix="data."):
    """Length and order of the examples."""

    max_seq_length: Annotated[int, Interval(ge=0, le=1 << 16), TRAINING] = setting(
        0, """Tokens per example. Default: 0, which is the length that the records were built
        with.""")
    shuffle_buffer: PositiveCount = setting(131072, """Examples in the shuffle buffer. A buffer
        has examples of 64 shards or more, or of all shards if there are fewer.""")


class TrainingConfig(Section, prefix="training."):
    """Length of the run, batch, seed and precision."""

    num_train_steps: Annotated[PositiveCount, TRAINING] = setting(
        1_000_000, """Steps of the whole run, after which the learning rate is zero unless
        optimizer.decay_fraction is. A larger number extends a finished run.""")
    train_batch_size: Annotated[BatchSize, TRAINING] = setting(
        128, "Examples per step (global batch), summed over all replicas and micro-batches.")
    seed: Annotated[Count, TRAINING] = setting(1, """Seed of initial weights, order of examples,
        masks, samples and dropout.""")
    precision: Annotated[Precision, TRAINING] = setting(
        Precision.AUTO, """Number type of activations and matmuls. auto selects bfloat16 on devices
        with bfloat16 instructions, otherwise float32. float16 adds loss scaling.""")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingConfig:
    """Settings of a run. All sections but `runtime` affect its result."""

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
        self.initialization.require_width(self.model)


SIZES = {  # ELECTRA, tables 6 and 7.
    "tiny": PretrainingConfig(
        model=MODEL_SIZES["tiny"],
        optimizer=OptimizerConfig(learning_rate=2e-4, warmup_steps=600),
        training=TrainingConfig(train_batch_size=16, num_train_steps=3000)),
    "small": PretrainingConfig(),
    "base": PretrainingConfig(
        model=MODEL_SIZES["base"],
        optimizer=OptimizerConfig(learning_rate=2e-4),
        training=TrainingConfig(train_batch_size=256, num_train_steps=766_000)),
    "large": PretrainingConfig(
        model=MODEL_SIZES["large"],
        masking=MaskingConfig(rate=0.25),
        optimizer=OptimizerConfig(learning_rate=2e-4),
        training=TrainingConfig(train_batch_size=2048, num_train_steps=400_000)),
}
SIZES |= {f"modern-{size}": dataclasses.replace(SIZES[size], model=MODEL_SIZES[f"modern-{size}"])
          for size in ("tiny", "small", "base")}
SIZES["modern-mini"] = dataclasses.replace(
    SIZES["modern-small"], model=MODEL_SIZES["modern-mini"],
    training=TrainingConfig(train_batch_size=16, num_train_steps=12_000))


def pretraining_config(model_size: str, recipe: str = PAPER, **settings: Any) -> PretrainingConfig:
    """Returns the settings of a model size; raises `UserError` for unknown names or values.

    Args:
        model_size: "tiny", "small", "base" or "large"; "modern-tiny", "modern-mini",
            "modern-small" or "modern-base" for ModernBERT's layers.
        recipe: "paper", or "short" for runs of minutes to days.
        **settings: Other settings by the names of their fields, such as `num_train_steps=10_000`.
    """
    require_one_of(SIZES, "--model_size", model_size)
    return resolve(model_size, recipe, name_fields(SIZES[model_size], settings))


def resolve(model_size: str = "", recipe: str = PAPER, changes: Changes | None = None, *,
            shape: Changes | None = None, saved: Changes | None = None) -> PretrainingConfig:
    """Returns the settings of a run, from all that determines them.

    Args:
        model_size: one of `SIZES`, or "" for small.
        recipe: one of `RECIPES`; its values depend on the width after `shape` and `changes`.
        changes: `section.field` -> value, which overrides all others.
        shape: the settings of `model` that initial networks have; they override the size's.
        saved: all settings of a run that is continued, in place of the size's and the recipe's.
    """
    changes = changes or {}
    if saved is not None:
        return override(PretrainingConfig(), {**saved, **changes})
    require_one_of(RECIPES, "--recipe", recipe)
    model_size = model_size or "small"
    require_one_of(SIZES, "--model_size", model_size)
    # Size, initial networks, the recipe for that width, and what the user gives; the last counts.
    config = SIZES[model_size]
    changes = {**(shape or {}), **changes}
    if recipe == SHORT:
        changes = _short_recipe(override(config, changes).model) | changes
    return override(config, changes)


def _short_recipe(model: ModelConfig) -> dict[str, Any]:
    """Returns the changes of the recipe for minutes to days on a few cores or one GPU.

    There, the discriminator plateaus at unigram statistics with the paper's settings
    (docs/explanation/short_runs.md).
    """
    return {
        "initialization.scheme": "adjacent",
        "initialization.word_vectors": COOCCURRENCE,
        # At least two previous-token and next-token heads remain.
        "initialization.duplicate_token_heads": (
            2 if model.num_heads >= 4 and model.duplicate_token_heads_fit else 0),
        # H x range^2, the gain of two matrices, is 0.81.
        "model.initializer_range": round(0.9 * model.hidden_size**-0.5, 4),
        "model.hidden_dropout": 0.0,
        "model.attention_dropout": 0.0,
        # One head, which initially attends to one adjacent token. With both, replacements are too
        # hard to detect (AUC 0.71 instead of 0.83 after 8M tokens of 4 x 256).
        "model.generator_width": 0.5 if model.hidden_size < 256 else 0.375,
        "model.generator_depth": 0.5,
        "masking.rate": 0.25,
        "optimizer.bias_correction": True,
        # Twice this rate makes the discriminator of tiny collapse. ModernBERT's layers take it.
        "optimizer.learning_rate": min(
            1e-3, (0.256 if model.is_modern else 0.128) / model.hidden_size),
        "optimizer.warmup_steps": -1,
    }
