"""The settings of a run from its size, recipe, initial networks, saved run and given changes."""

import pytest

from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.overrides import flatten, override
from electra_tf.config.pretraining import SIZES, resolve
from electra_tf.core.errors import UserError


@pytest.mark.parametrize("size", SIZES)
def test_the_short_recipe_fits_every_size_and_the_papers_changes_nothing(size):
    assert resolve(size) == SIZES[size]
    config = resolve(size, "short")
    assert (SIZES[size].initialization.scheme, config.initialization.scheme) == (
        "normal", "adjacent")
    assert (SIZES[size].initialization.word_vectors, config.initialization.word_vectors) == (
        "random", "cooccurrence")
    assert config.optimizer.bias_correction and not SIZES[size].optimizer.bias_correction
    assert config.model.hidden_dropout == 0.0
    gain = config.model.hidden_size * config.model.initializer_range**2
    assert gain == pytest.approx(0.81, rel=0.01)


@pytest.mark.parametrize(("changes", "heads"), [
    ({}, 0), ({"num_heads": 4}, 2), ({"num_heads": 8}, 2), ({"num_heads": 32}, 0),
    ({"num_heads": 4, "embedding_size": 256}, 0), ({"num_heads": 4, "embedding_size": 15}, 0)],
    ids=str)
def test_a_short_run_has_two_duplicate_token_heads_if_they_fit(changes, heads):
    config = resolve("tiny", "short", {f"model.{name}": value for name, value in changes.items()})
    assert config.initialization.duplicate_token_heads == heads


def test_fine_tuning_takes_word_vectors_from_a_file_alone():
    with pytest.raises(UserError, match=r"word_vectors must be the path of vectors.*cooccurrence"):
        override(FinetuningConfig(), {"initialization.word_vectors": "cooccurrence"})
    override(FinetuningConfig(), {"initialization.word_vectors": "runs/a/word_vectors.npy"})


def test_the_recipe_follows_the_width_of_the_run_and_changes_override_it():
    changes = {"model.hidden_size": 512}
    config = resolve("tiny", "short", changes)
    assert config == resolve("tiny", "short", shape=changes)
    assert config.optimizer.learning_rate == 0.128 / 512
    assert config.model.initializer_range == pytest.approx(0.9 / 512**0.5, abs=1e-4)
    config = resolve("tiny", "short", changes | {"optimizer.learning_rate": "0.1"},
                     shape={"model.hidden_size": 64})
    assert (config.model.hidden_size, config.optimizer.learning_rate) == (512, 0.1)
    rates = {size: resolve(size, "short").optimizer.learning_rate
             for size in ("small", "modern-tiny", "modern-mini", "modern-base")}
    assert rates == {"small": 5e-4, "modern-tiny": 1e-3, "modern-mini": 1e-3,
                     "modern-base": 0.256 / 768}  # ModernBERT's layers take twice the rate.


def test_a_continued_run_keeps_its_settings_except_for_given_changes():
    saved = flatten(resolve("tiny", "short", {"training.seed": 5}))
    config = resolve(saved=saved, changes={"training.num_train_steps": "1e4"})
    assert flatten(config) == saved | {"training.num_train_steps": 10_000}


@pytest.mark.parametrize(("arguments", "message"), [
    (("tinny",), "--model_size must be one of .*'tinny'. Did you mean 'tiny'"),
    (("tiny", "fast"), "--recipe must be one of paper, short. Received: 'fast'")])
def test_an_unknown_size_or_recipe_is_refused(arguments, message):
    with pytest.raises(UserError, match=message):
        resolve(*arguments)
