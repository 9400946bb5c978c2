"""The objectives by name."""

import importlib

from electra_tf.config.objectives import OBJECTIVES
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.objectives.objective import Given, PretrainingObjective


def build_objective(config: PretrainingConfig, given: Given) -> PretrainingObjective:
    """Returns the configured objective."""
    module, _, name = OBJECTIVES[config.objective.name].implementation.partition(":")
    return getattr(importlib.import_module(module), name)(config, given)
