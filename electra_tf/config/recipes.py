"""What suits a long run, the paper's, and what makes a short one learn."""

from collections.abc import Mapping
from typing import Any

from electra_tf.config.initialization import Scheme
from electra_tf.config.model import ModelConfig
from electra_tf.config.overrides import flatten, override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.platform.settings import require_one_of

PAPER, SHORT = RECIPES = ("paper", "short")


def settings_of(recipe: str, config: PretrainingConfig) -> dict[str, Any]:
    """Returns what a recipe changes in the paper's settings of a model size.

    `short` is for minutes to days of a few cores or one GPU, where the paper's settings, made for
    a million steps, leave the discriminator knowing how frequent words are and nothing else.
    docs/explanation/short_runs.md says which of the values were compared with others, and where.

    Args:
        recipe: one of `RECIPES`.
        config: the run's settings as far as they are given; the width counts.

    Raises:
        UserError: an unknown recipe.
    """
    require_one_of(RECIPES, "--recipe", recipe)
    if recipe == PAPER:
        return {}
    return {
        "initialization.scheme": Scheme.NEIGHBOURS.value,
        "initialization.matching_heads": _matching_heads(config.model),
        # H x range^2, to which what passes through two matrices is proportional, is 0.81.
        "model.initializer_range": round(0.9 * config.model.hidden_size**-0.5, 4),
        "model.hidden_dropout": 0.0,
        "model.attention_dropout": 0.0,
        # One head, so that it sees one neighbour at first: a generator that begins with both runs
        # away from the discriminator (AUC 0.71, not 0.83, after 8 million tokens of 4 x 256).
        "model.generator_width": 0.5 if config.model.hidden_size < 256 else 0.375,
        "model.generator_depth": 0.5,
        "masking.rate": 0.25,
        "optimizer.bias_correction": True,
        # For tiny twice as much kills the discriminator.
        "optimizer.learning_rate": min(1e-3, 0.128 / config.model.hidden_size),
        "optimizer.warmup_steps": -1,
    }


def _matching_heads(model: ModelConfig) -> int:
    """Returns two, if two others remain that look at both neighbours, and if heads can match."""
    fits = (8 * model.type_vocab_size <= model.embedding_size <= model.hidden_size
            and model.hidden_size >= 8 * model.num_heads)
    return 2 if model.num_heads >= 4 and fits else 0


def contradictions(recipe: str, config: PretrainingConfig,
                   given: Mapping[str, Any]) -> list[str]:
    """Returns the recipe's settings that the command line sets otherwise, in words.

    Args:
        recipe: one of `RECIPES`.
        config: the size's settings.
        given: setting -> value of the command line; it wins.
    """
    wanted = settings_of(recipe, override(config, given))
    there, here = flatten(override(config, wanted)), flatten(override(config, given))
    return [f"{name} is {here[name]}, as given; --recipe={recipe} has {there[name]}"
            for name in wanted if name in given and here[name] != there[name]]
