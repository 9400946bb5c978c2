"""The model sizes: tables 6 and 7 of the ELECTRA paper, and a tiny one for tests and demos."""

from electra_tf.config.model import ModelConfig
from electra_tf.config.pretraining import (
    MaskingConfig,
    OptimizerConfig,
    PretrainingConfig,
    TrainingConfig,
)
from electra_tf.platform.settings import require_one_of

SIZES = {
    "tiny": PretrainingConfig(
        model=ModelConfig(
            embedding_size=64, hidden_size=128, num_layers=2, num_heads=2,
            intermediate_size=512, max_position_embeddings=128, generator_width=0.5,
            hidden_dropout=0.0, attention_dropout=0.0),
        optimizer=OptimizerConfig(learning_rate=2e-4, warmup_steps=600),
        training=TrainingConfig(train_batch_size=16, num_train_steps=3000),
    ),
    "small": PretrainingConfig(),
    "base": PretrainingConfig(
        model=ModelConfig(
            embedding_size=768, hidden_size=768, num_heads=12, intermediate_size=3072,
            generator_width=1 / 3),
        optimizer=OptimizerConfig(learning_rate=2e-4),
        training=TrainingConfig(train_batch_size=256, num_train_steps=766_000),
    ),
    "large": PretrainingConfig(
        model=ModelConfig(
            embedding_size=1024, hidden_size=1024, num_layers=24, num_heads=16,
            intermediate_size=4096, generator_width=0.25),
        masking=MaskingConfig(rate=0.25),
        optimizer=OptimizerConfig(learning_rate=2e-4),
        training=TrainingConfig(train_batch_size=2048, num_train_steps=400_000),
    ),
}


def pretraining_config(model_size: str) -> PretrainingConfig:
    """Returns the paper's settings for a model size; `UserError` for an unknown one."""
    require_one_of(SIZES, "--model_size", model_size)
    return SIZES[model_size]
