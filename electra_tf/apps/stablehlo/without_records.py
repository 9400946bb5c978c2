"""A training step of any size, where there are no records: to see whether and how it compiles."""

import numpy as np
import tensorflow as tf

from electra_tf.apps.stablehlo.artefact import LiftedStep
from electra_tf.apps.stablehlo.lift import for_one_device, lift
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.modeling import weight_table
from electra_tf.modeling.masking import SpecialTokens, TokenKinds
from electra_tf.objectives.objective import Given, GivenGenerator
from electra_tf.objectives.registry import build_objective
from electra_tf.platform.errors import UserError
from electra_tf.training.assembly import build_model, build_state

LONGEST = 512
"""Tokens of an example, where neither records nor a flag say."""


def lifted_step(config: PretrainingConfig) -> LiftedStep:
    """Lifts the step that settings describe; vocabulary and counts are stand-ins.

    Args:
        config: where a vocabulary would change `model.vocab_size`, it has to be set.

    Raises:
        UserError: the length is past the model's positions, or the vocabulary has no room.
    """
    config = for_one_device(config)
    length = config.data.max_seq_length or min(LONGEST, config.model.max_position_embeddings)
    if length > config.model.max_position_embeddings:
        raise UserError(f"data.max_seq_length={length}, but the model has "
                        f"model.max_position_embeddings={config.model.max_position_embeddings}.")
    config = override(config, {"data.max_seq_length": length})
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    objective = build_objective(config, _given(config))
    model = build_model(objective, config, strategy, seed=config.training.seed)
    return lift(config, objective, build_state(config, model, strategy), strategy)


def _given(config: PretrainingConfig) -> Given:
    size = config.model.vocab_size
    special = SpecialTokens(pad=0, cls=2, sep=3, mask=4)
    if size <= max(special):
        raise UserError(f"model.vocab_size={size} is too small for a vocabulary.")
    generator = GivenGenerator(
        source="a generator of this size", model=config.model,
        weights={path: np.zeros(shape, np.float32)
                 for path, shape in weight_table.generator(config.model).weights.items()})
    return Given(kinds=TokenKinds(special, size, np.zeros(size, bool)), generator=generator,
                 token_counts=lambda: np.ones(size, np.int64))
