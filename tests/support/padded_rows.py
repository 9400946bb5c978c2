"""Random rows of several lengths with padding, and an encoder without a weight that is zero."""

import numpy as np
import tensorflow as tf

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling.encoder import Encoder, create_encoder
from electra_tf.modeling.layers import LayerOptions


def random_encoder(config: EncoderConfig, policy: str = "float32") -> Encoder:
    """Returns an encoder whose biases and norms are random, too: what is zero hides mistakes."""
    encoder = create_encoder(config, LayerOptions(seed=1, policy=policy))
    draw = np.random.default_rng(2)
    for variable in encoder.variables:
        variable.assign_add(draw.normal(0.0, 0.1, variable.shape))
    return encoder


def random_rows(lengths: list[int], vocab_size: int = 60) -> tuple[tf.Tensor, ...]:
    """Returns ids and segments, int32 [B, L], and the padding mask, bool [B, L]."""
    draw = np.random.default_rng(3)
    shape = (len(lengths), max(lengths))
    return (tf.constant(draw.integers(0, vocab_size, shape), tf.int32),
            tf.constant(draw.integers(0, 2, shape), tf.int32), tf.sequence_mask(lengths, shape[1]))
