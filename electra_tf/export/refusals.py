"""Checks of requests inside a graph, with messages that name the input."""

from collections.abc import Mapping, Sequence

import tensorflow as tf

from electra_tf.config.model import EncoderConfig
from electra_tf.text.rows import Tokens

TOKEN_INPUTS = ("input_ids", "token_type_ids", "attention_mask")
"""Inputs of the signature `token_ids`, int32 [B, L], with BERT's names."""


def checked_tokens(inputs: Sequence[tf.Tensor], config: EncoderConfig) -> Tokens:
    """Returns what the signature `token_ids` was given, or stops.

    Args:
        inputs: `TOKEN_INPUTS`, int32 [B, L] each.
        config: of the encoder.
    """
    ids, segment_ids, mask = checked_shapes(
        dict(zip(TOKEN_INPUTS, inputs, strict=True)), "one shape")
    valid = mask > 0
    positions = config.max_position_embeddings
    checks = [
        _require(tf.reduce_all(tf.reduce_any(valid, axis=1)),
                 "attention_mask must have a 1 in every row"),
        _require(tf.logical_not(tf.reduce_any(valid[:, positions:])),
                 f"attention_mask: the model reads rows of at most {positions} tokens; received "
                 "a 1 beyond"),
        _require_below(ids, valid, config.vocab_size, TOKEN_INPUTS[0]),
        _require_below(segment_ids, valid, config.type_vocab_size, TOKEN_INPUTS[1])]
    rows, length = tf.unstack(tf.shape(ids))
    with tf.control_dependencies(checks):
        # No rows may come without columns; heads read the first.
        shape = tf.stack([rows, tf.maximum(length, 1)])
    return Tokens(*(tf.reshape(values, shape) for values in (ids, segment_ids, valid)))


def checked_shapes(inputs: Mapping[str, tf.Tensor], wanted: str) -> list[tf.Tensor]:
    """Returns tensors of one rank if they have one shape, or stops."""
    shapes = [tf.shape(value) for value in inputs.values()]
    same = tf.reduce_all(tf.stack(shapes) == shapes[0])
    message = f"{', '.join(inputs)} must have {wanted}. Received:"
    with tf.control_dependencies([tf.debugging.Assert(same, [message, *shapes])]):
        return [tf.identity(value) for value in inputs.values()]


def _require_below(values: tf.Tensor, valid: tf.Tensor, size: int, name: str) -> tf.Operation:
    fits = (values >= 0) & (values < size) | ~valid
    return _require(tf.reduce_all(fits), f"{name} must be from 0 to {size - 1}")


def _require(condition: tf.Tensor, message: str) -> tf.Operation:
    return tf.debugging.Assert(condition, [message])
