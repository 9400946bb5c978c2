"""Vectors of texts from the vectors of their tokens, as in sentence-transformers' `Pooling`."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
"""In the order in which several are concatenated."""
_SMALLEST_NORM = 1e-12


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pooling:
    """How `embed` makes the vector of a text."""

    modes: tuple[str, ...] = ("mean",)
    """Of `MODES`; their vectors are concatenated."""
    normalize: bool = False
    """Divide vectors by their Euclidean norm."""
    max_length: int | None = None
    """Tokens to which texts are cut, [CLS] and [SEP] included; None: what the encoder reads."""

    def combine(self, vectors: Mapping[str, tf.Tensor]) -> np.ndarray:
        """Returns float32 [B, modes * H] from float32 [B, H] by mode."""
        combined = np.concatenate(
            [vectors[mode].numpy() for mode in MODES if mode in self.modes], axis=1)
        if self.normalize:
            norms = np.linalg.norm(combined, axis=1, keepdims=True)
            combined = combined / np.maximum(norms, _SMALLEST_NORM)
        return combined


def pool(hidden: tf.Tensor, valid: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns float32 [B, H] by mode from float32 [B, L, H]; `valid` is bool [B, L]."""
    weights = tf.cast(valid, tf.float32)[:, :, tf.newaxis]
    total, count = tf.reduce_sum(hidden * weights, 1), tf.reduce_sum(weights, 1)
    rising = weights * tf.cumsum(tf.ones_like(weights), axis=1)
    return {
        "cls": hidden[:, 0],
        "max": tf.reduce_max(tf.where(valid[:, :, tf.newaxis], hidden, hidden.dtype.min), 1),
        "mean": total / count,
        "mean_sqrt_len_tokens": total / tf.sqrt(count),
        "weightedmean": tf.reduce_sum(hidden * rising, 1) / tf.reduce_sum(rising, 1),
        "lasttoken": tf.gather(hidden, tf.cast(count[:, 0], tf.int32) - 1, batch_dims=1)}
