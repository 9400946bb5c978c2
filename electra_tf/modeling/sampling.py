"""The generator's loss and its samples from one pass over the exponentials of its logits."""

import tensorflow as tf

BLOCK = 128
"""Entries per block of `sample`; the generator pads its logits to whole blocks."""


@tf.custom_gradient
def cross_entropy(logits: tf.Tensor, labels: tf.Tensor):
    """Cross entropy, and the exponentials it was computed from.

    The gradient (softmax minus one-hot) reuses the exponentials; none flows through them.

    Args:
        logits: float32 [M, V].
        labels: int32 [M].

    Returns:
        loss float32 [M] and exponentials float32 [M, V], proportional to the softmax.
    """
    largest = tf.reduce_max(logits, axis=-1, keepdims=True)
    exponentials = tf.exp(logits - largest)
    total = tf.reduce_sum(exponentials, axis=-1)
    rows = tf.range(tf.shape(logits)[0])
    at_label = tf.stack([rows, labels], axis=1)
    loss = tf.math.log(total) + largest[:, 0] - tf.gather_nd(logits, at_label)

    def gradient(d_loss: tf.Tensor, _d_exponentials: tf.Tensor):
        softmax = exponentials * (d_loss / total)[:, tf.newaxis]
        return tf.tensor_scatter_nd_sub(softmax, at_label, d_loss), None

    return (loss, exponentials), gradient


def sample(weights: tf.Tensor, uniforms: tf.Tensor) -> tf.Tensor:
    """Draws one index per row with probability proportional to its weight, by inverse CDF.

    Two levels: first the block of 128 entries, then the entry within. One uniform per row
    instead of one Gumbel variable per entry, and no running sum over the whole vocabulary.

    Args:
        weights: float32 [M, V], not negative; V a multiple of 128.
        uniforms: float32 [M] in [0, 1).

    Returns:
        int32 [M]; an entry of weight zero is never drawn.
    """
    rows, entries = weights.shape
    blocks = tf.reshape(weights, [rows, entries // BLOCK, BLOCK])
    ends = tf.cumsum(tf.reduce_sum(blocks, axis=-1), axis=-1)
    block, before = _invert(ends, uniforms * ends[:, -1])
    inside = tf.gather(blocks, block, batch_dims=1)
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
