"""The recipe for short runs fits every size and follows the run's own width."""

import pytest

from electra_tf.config.overrides import override
from electra_tf.config.pretraining import SIZES, resolve


@pytest.mark.parametrize("size", SIZES)
def test_the_short_recipe_fits_every_size_and_the_papers_changes_nothing(size):
    assert resolve(size, "paper", {}) == SIZES[size]
    assert SIZES[size].initialization.scheme == "normal"
    config = resolve(size, "short", {})
    assert config.initialization.scheme == "adjacent"
    assert config.optimizer.bias_correction and not SIZES[size].optimizer.bias_correction
    assert config.model.hidden_dropout == 0.0
    passed_on = config.model.hidden_size * config.model.initializer_range**2
    assert passed_on == pytest.approx(0.81, rel=0.01)


@pytest.mark.parametrize(("changes", "heads"), [
    ({}, 0), ({"num_heads": 4}, 2), ({"num_heads": 8}, 2), ({"num_heads": 32}, 0),
    ({"num_heads": 4, "embedding_size": 256}, 0), ({"num_heads": 4, "embedding_size": 15}, 0)],
    ids=str)
def test_two_of_four_heads_match_words_where_that_is_possible(changes, heads):
    given = {f"model.{name}": value for name, value in changes.items()}
    assert resolve("tiny", "short", given).initialization.duplicate_token_heads == heads


def test_the_width_is_the_runs_own_not_the_sizes():
    config = resolve("tiny", "short", {"model.hidden_size": 512})
    assert config.optimizer.learning_rate == 0.128 / 512
    assert config.model.initializer_range == pytest.approx(0.9 / 512**0.5, abs=1e-4)
    given = override(config, {"optimizer.learning_rate": 0.1})
    assert resolve("tiny", "short", {
        "model.hidden_size": 512, "optimizer.learning_rate": 0.1}) == given
