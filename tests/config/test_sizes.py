"""The sizes are those of tables 6 and 7 of the ELECTRA paper."""

import dataclasses

import pytest

from electra_tf.config.model import ModelConfig, Tying
from electra_tf.config.pretraining import pretraining_config
from electra_tf.config.runtime import RuntimeConfig


@pytest.mark.parametrize(("size", "expected", "generators"), [
    ("small", (12, 256, 1024, 4, 128, 1 / 4, 0.15, 5e-4, 128, 1_000_000), (64, 256, 1, 12)),
    ("base", (12, 768, 3072, 12, 768, 1 / 3, 0.15, 2e-4, 256, 766_000), (256, 1024, 4, 12)),
    ("large", (24, 1024, 4096, 16, 1024, 1 / 4, 0.25, 2e-4, 2048, 400_000), (256, 1024, 4, 24))])
def test_settings_equal_the_papers_tables(size, expected, generators):
    config = pretraining_config(size)
    model, optimizer, training = config.model, config.optimizer, config.training
    assert expected == (
        model.num_layers, model.hidden_size, model.intermediate_size, model.num_heads,
        model.embedding_size, model.generator_width, config.masking.rate, optimizer.learning_rate,
        training.train_batch_size, training.num_train_steps)
    assert optimizer.warmup(training.num_train_steps) == 10_000
    assert (model.hidden_dropout, model.attention_dropout) == (0.1, 0.1)
    assert (optimizer.epsilon, optimizer.weight_decay) == (1e-6, 0.01)
    assert config.objective.discriminator_loss_weight == 50.0
    assert generators == (
        model.generator.hidden_size, model.generator.intermediate_size, model.generator.num_heads,
        model.generator.num_layers)


@pytest.mark.parametrize(("steps", "interval"), [(1, 1), (40, 2), (2000, 100), (1_000_000, 100)])
def test_a_short_run_warms_up_for_a_tenth_of_it_and_reports_often_enough(steps, interval):
    assert pretraining_config("small").optimizer.warmup(steps) == min(10_000, steps // 10)
    assert RuntimeConfig().log_interval(steps) == interval
    assert RuntimeConfig(log_every_steps=7).log_interval(steps) == 7


def test_an_untied_generator_embeds_at_its_own_width():
    assert ModelConfig(tying=Tying.NONE).generator.embedding_size == 64
    assert ModelConfig(tying=Tying.TOKEN_EMBEDDINGS).generator.embedding_size == 128


def test_a_generator_as_wide_as_the_discriminator_has_its_heads():
    encoder = ModelConfig(hidden_size=384, num_layers=6, num_heads=12, intermediate_size=1536)
    heads = [dataclasses.replace(encoder, generator_width=width).generator.num_heads
             for width in (1.0, 0.5, 0.25)]
    assert heads == [12, 3, 1]
