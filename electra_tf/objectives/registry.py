"""The objectives by name."""

from electra_tf.command_line import UserError
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.modeling.masking import SpecialTokens
from electra_tf.modeling.token_replacement import TokenReplacement
from electra_tf.objectives.electra import ElectraObjective
from electra_tf.objectives.mlm import MlmObjective
from electra_tf.objectives.objective import Objective

OBJECTIVES = {"electra": ElectraObjective, "mlm": MlmObjective}


def build_objective(config: PretrainingConfig, special: SpecialTokens) -> Objective:
    """Returns the configured objective; `UserError` for an unknown name."""
    name = config.objective.name
    if name not in OBJECTIVES:
        raise UserError(
            f"objective.name must be one of {', '.join(OBJECTIVES)}. Received: {name!r}")
    replacement = TokenReplacement(config.masking, config.sampling, special)
    return OBJECTIVES[name](replacement=replacement, weights=config.objective)
