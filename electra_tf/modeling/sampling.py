"""The generator's loss and its samples, from two passes over its logits.

[M, V] is the largest tensor of a training step: 608 x 30,592 for ELECTRA-Small at batch 32, 74 MB
in float32. So it is kept in the compute type, its exponentials are summed as they arise and never
stored, and the gradient computes them again: 26 ms on two cores instead of 42.
"""

from typing import NamedTuple

import tensorflow as tf

from electra_tf.modeling.fused import rounded
from electra_tf.modeling.tracing import fused, with_gradient

BLOCK = 128
"""Entries per block of `sample`; the generator pads its logits to whole blocks."""
_NEVER = -1e9
"""A logit whose exponential is 0."""


class Distribution(NamedTuple):
    """One softmax distribution per row, ready to be sampled from."""

    logits: tf.Tensor
    """Floating [M, V], V a multiple of 128."""
    largest: tf.Tensor
    """float32 [M], the largest logit."""
    block_sums: tf.Tensor
    """float32 [M, V / 128], exp(logit - largest) added up over every block of 128 entries."""


def distribution(logits: tf.Tensor) -> Distribution:
    """Normalizes logits [M, V], in float32; no gradient flows through it."""
    logits = tf.stop_gradient(logits)
    largest = tf.cast(tf.reduce_max(logits, axis=-1), tf.float32)
    return Distribution(logits, largest, _block_sums(logits, largest))


def at_temperature(softmax: Distribution, temperature: tf.Tensor | float) -> Distribution:
    """Divides the logits by a temperature: softmax(logits / T), with T = 1.0 as it was.

    Args:
        softmax: M distributions over V entries.
        temperature: T, above 0; float32 [] where it changes with the steps.

    Returns:
        M distributions over V entries, of the logits' type.
    """
    if isinstance(temperature, float) and temperature == 1.0:
        return softmax
    return distribution(softmax.logits / tf.cast(temperature, softmax.logits.dtype))


def without(softmax: Distribution, ids: tf.Tensor) -> Distribution:
    """Gives one entry of every row the probability 0, the others theirs over the rest.

    Args:
        softmax: M distributions over V entries.
        ids: int32 [M].
    """
    excluded = tf.range(softmax.logits.shape[1]) == ids[:, tf.newaxis]
    return distribution(tf.where(excluded, tf.cast(_NEVER, softmax.logits.dtype), softmax.logits))


@fused
def _block_sums(logits, largest):
    rows, entries = logits.shape
    blocks = tf.reshape(_exponentials(logits, largest), [rows, entries // BLOCK, BLOCK])
    return tf.reduce_sum(blocks, axis=-1)


def _exponentials(logits, largest):
    return tf.exp(tf.cast(logits, tf.float32) - largest[:, tf.newaxis])


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor, softmax: Distribution) -> tf.Tensor:
    """Cross entropy of every row; its gradient is softmax minus one-hot.

    Args:
        logits: floating [M, V].
        labels: int32 [M].
        softmax: `distribution(logits)`.

    Returns:
        float32 [M].
    """
    @with_gradient
    def lose(logits):
        total = tf.reduce_sum(softmax.block_sums, axis=-1)
        wanted = tf.cast(tf.gather(logits, labels, batch_dims=1), tf.float32)
        loss = tf.math.log(total) + softmax.largest - wanted
        return loss, lambda d_loss: _logits_gradient(logits, softmax.largest, total, labels, d_loss)

    return lose(logits)


@fused
def _logits_gradient(logits, largest, total, labels, d_loss):
    shares = _exponentials(logits, largest) * (d_loss / total)[:, tf.newaxis]
    right = tf.range(logits.shape[1]) == labels[:, tf.newaxis]
    return rounded(shares - tf.where(right, d_loss[:, tf.newaxis], 0.0), logits.dtype)


def sample(softmax: Distribution, uniforms: tf.Tensor) -> tf.Tensor:
    """Draws one index per row by inverse CDF.

    Two levels: first the block of 128 entries, then the entry within. One uniform per row
    instead of one Gumbel variable per entry, and no running sum over the whole vocabulary.

    Args:
        softmax: M distributions.
        uniforms: float32 [M] in [0, 1).

    Returns:
        int32 [M]; an entry whose probability is 0 in float32 is never drawn.
    """
    rows, entries = softmax.logits.shape
    ends = tf.cumsum(softmax.block_sums, axis=-1)
    block, before = _invert(ends, uniforms * ends[:, -1])
    blocks = tf.reshape(softmax.logits, [rows, entries // BLOCK, BLOCK])
    inside = _exponentials(tf.gather(blocks, block, batch_dims=1), softmax.largest)
    entry, _ = _invert(tf.cumsum(inside, axis=-1), uniforms * ends[:, -1] - before)
    return tf.stop_gradient(block * BLOCK + entry)


def _invert(ends: tf.Tensor, target: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the interval that holds a target on a running sum.

    Args:
        ends: float32 [M, K], running sum.
        target: float32 [M]; pulled below the last end, which rounding may have let it reach.

    Returns:
        int32 [M], the first index whose end is beyond the target (so its weight isn't zero), and
        float32 [M], the sum before it.
    """
    largest = ends[:, -1] * (1.0 - 2.0**-23)
    target = tf.minimum(target, largest)[:, tf.newaxis]
    passed = ends <= target
    index = tf.reduce_sum(tf.cast(passed, tf.int32), axis=-1)
    before = tf.reduce_max(tf.where(passed, ends, 0.0), axis=-1)
    return index, before
