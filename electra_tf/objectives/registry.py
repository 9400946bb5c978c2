"""The objectives by name."""

import importlib

from electra_tf.config.objectives import OBJECTIVES
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.objectives.pretraining import Given, PretrainingObjective


def objective_class(name: str) -> type[PretrainingObjective]:
    """Returns the class of an objective."""
    module, _, attribute = OBJECTIVES[name].implementation.partition(":")
    return getattr(importlib.import_module(module), attribute)


def build_objective(config: PretrainingConfig, given: Given) -> PretrainingObjective:
    """Returns the configured objective."""
    return objective_class(config.objective.name)(config, given)
