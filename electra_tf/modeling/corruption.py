"""Writing the generator's samples into the text, and telling which of them changed it."""

import tensorflow as tf


def write_tokens(ids: tf.Tensor, positions: tf.Tensor, new_ids: tf.Tensor,
                 valid: tf.Tensor) -> tf.Tensor:
    """Replaces tokens at given positions.

    Several valid slots may name one position (only when positions are drawn with replacement):
    it gets the mean of their ids, rounded down, as in the reference implementation.

    Args:
        ids: int32 [B, L].
        positions: int32 [B, N].
        new_ids: int32 [B, N].
        valid: bool [B, N]; other slots write nothing.

    Returns:
        int32 [B, L].
    """
    hits = tf.cast(_hits(positions, valid, ids.shape[1]), tf.int32)
    counts = tf.reduce_sum(hits, axis=1)
    sums = tf.reduce_sum(hits * new_ids[:, :, tf.newaxis], axis=1)
    return tf.where(counts > 0, sums // tf.maximum(counts, 1), ids)


def mark_positions(positions: tf.Tensor, valid: tf.Tensor, length: int) -> tf.Tensor:
    """Returns bool [B, L], True at those of `positions` int32 [B, N] whose slots are `valid`."""
    return tf.reduce_any(_hits(positions, valid, length), axis=1)


def _hits(positions: tf.Tensor, valid: tf.Tensor, length: int) -> tf.Tensor:
    """Returns bool [B, N, L], one True at most in a row."""
    targets = tf.where(valid, positions, -1)
    return targets[:, :, tf.newaxis] == tf.range(length)


def gather_tokens(ids: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Returns the tokens int32 [B, N] of `ids` [B, L] at `positions` [B, N]."""
    return tf.gather(ids, positions, batch_dims=1)


def gather_vectors(hidden: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Returns the vectors [B * N, H] of `hidden` [B, L, H] at `positions` int32 [B, N]."""
    batch_size, length, size = hidden.shape
    rows = positions + length * tf.range(batch_size)[:, tf.newaxis]
    return tf.gather(tf.reshape(hidden, [-1, size]), tf.reshape(rows, [-1]))


def label_replaced(original_ids: tf.Tensor, corrupted_ids: tf.Tensor,
                   valid: tf.Tensor) -> tf.Tensor:
    """Marks the tokens that the generator actually changed (ELECTRA, section 3.1).

    Args:
        original_ids: int32 [B, L], before corruption.
        corrupted_ids: int32 [B, L], what the discriminator reads.
        valid: bool [B, L], False on padding.

    Returns:
        bool [B, L]; a sample equal to the original is not replaced.
    """
    return valid & (original_ids != corrupted_ids)
