import pytest

from electra_tf.config import pretraining, pretraining_flags
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import SIZES
from electra_tf.platform.errors import UserError


@pytest.mark.parametrize("size", SIZES)
def test_the_papers_recipe_is_the_sizes_settings(size):
    assert pretraining.recipe_settings("paper", SIZES[size]) == {}
    assert SIZES[size].initialization.scheme == "normal"
    assert not SIZES[size].optimizer.bias_correction


@pytest.mark.parametrize("size", SIZES)
def test_the_short_recipe_fits_every_size(size):
    config = override(SIZES[size], pretraining.recipe_settings("short", SIZES[size]))
    assert config.initialization.scheme == "neighbours"
    assert config.optimizer.bias_correction
    assert config.model.hidden_dropout == 0.0
    passed_on = config.model.hidden_size * config.model.initializer_range**2
    assert passed_on == pytest.approx(0.81, rel=0.01)


@pytest.mark.parametrize(("changes", "heads"), [
    ({}, 0), ({"num_heads": 4}, 2), ({"num_heads": 8}, 2), ({"num_heads": 32}, 0),
    ({"num_heads": 4, "embedding_size": 256}, 0), ({"num_heads": 4, "embedding_size": 15}, 0)],
    ids=str)
def test_two_of_four_heads_match_words_where_that_is_possible(changes, heads):
    given = {f"model.{name}": value for name, value in changes.items()}
    config = override(SIZES["tiny"], given)
    config = override(config, pretraining.recipe_settings("short", config))
    assert config.initialization.matching_heads == heads


def test_the_rate_falls_with_the_width():
    rates = {size: pretraining.recipe_settings("short", SIZES[size])["optimizer.learning_rate"]
             for size in ("tiny", "small")}
    assert rates == {"tiny": 1e-3, "small": 5e-4}


@pytest.mark.parametrize(("size", "width"), [("tiny", 64), ("small", 96)])
def test_the_generator_of_narrow_networks_has_one_head(size, width):
    """It sees one neighbour at first, and leaves the discriminator time."""
    config = override(SIZES[size], pretraining.recipe_settings("short", SIZES[size]))
    assert (config.model.generator.hidden_size, config.model.generator.num_heads) == (width, 1)


def test_the_width_is_the_runs_own_not_the_sizes():
    config = pretraining_flags.build_config("tiny", "short", {"model.hidden_size": 512})
    assert config.optimizer.learning_rate == 0.128 / 512
    assert config.model.initializer_range == pytest.approx(0.9 / 512**0.5, abs=1e-4)
    given = {"model.hidden_size": 512, "optimizer.learning_rate": 1e-3}
    assert pretraining.contradictions("short", SIZES["tiny"], given) == [
        "optimizer.learning_rate is 0.001, as given; --recipe=short has 0.00025"]


def test_an_unknown_recipe_is_refused_with_the_known_ones():
    with pytest.raises(UserError, match="paper, short. Received: 'long'"):
        pretraining.recipe_settings("long", SIZES["tiny"])


def test_a_given_setting_that_contradicts_is_named_and_an_equal_one_isnt():
    given = {"optimizer.learning_rate": "1e-3", "model.hidden_dropout": "0.1",
             "training.seed": "3"}
    assert pretraining.contradictions("short", SIZES["tiny"], given) == [
        "model.hidden_dropout is 0.1, as given; --recipe=short has 0.0"]
    assert pretraining.contradictions("paper", SIZES["tiny"], given) == []
