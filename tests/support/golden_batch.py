"""The batch that Google's reference code made its numbers of, as our objectives read it."""

import dataclasses

import numpy as np
import tensorflow as tf

from electra_tf.data.example import Batch
from electra_tf.modeling.masking import MaskedPositions, SpecialTokens
from electra_tf.modeling.rng import Rng
from electra_tf.objectives.pretraining import MaskedBatch, ObjectiveContext
from tests.support import golden_files

CONTEXT = dataclasses.replace(
    ObjectiveContext.placeholder(500, SpecialTokens(pad=0, cls=2, sep=3, mask=4)),
    token_counts=lambda: np.arange(500))
RNG = Rng(seed=0, step=tf.constant(0, tf.int64),
          first_example=tf.constant(0, tf.int64))


def masked_batch() -> tuple[MaskedBatch, tf.Tensor]:
    """The batch as the official masking left it, and the tokens put in place of samples."""
    arrays = golden_files.load("inputs")
    batch = Batch(tf.constant(arrays["input_ids"]), tf.constant(arrays["input_mask"] > 0),
                  tf.constant(arrays["segment_ids"]))
    masked = MaskedPositions(
        tf.constant(arrays["masked_lm_positions"]), tf.constant(arrays["masked_lm_ids"]),
        tf.constant(arrays["masked_lm_weights"] > 0))
    return (MaskedBatch(batch, tf.constant(arrays["masked_input_ids"]), masked),
            tf.constant(arrays["sampled_tokids"]))
