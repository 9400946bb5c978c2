"""Rotary position embeddings (Su et al., "RoFormer", 2021): positions as angles in attention.

The D dimensions of a head are D / 2 pairs (x_j, x_{j + D/2}). Before scores are computed, the pairs
of queries and keys at position p are turned by p w_j radians with w_j = base^(-2j / D). A score
then depends on the difference of two positions alone: R(p) q . R(r) k = q . R(r - p) k.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf


class Rotation(NamedTuple):
    """Cosines and sines of the angles of L positions, float32 [L, D]; see `rotate` for signs."""

    cosines: tf.Tensor
    sines: tf.Tensor

    def first(self, length: int | tf.Tensor) -> "Rotation":
        """Returns the angles of the first positions alone."""
        return Rotation(self.cosines[:length], self.sines[:length])


def frequencies(head_size: int, base: float) -> np.ndarray:
    """Returns w_j, the radians by which pairs turn from one position to the next, [D / 2]."""
    return base ** (-2.0 * np.arange(head_size // 2) / head_size)


def rotation(length: int, head_size: int, base: float) -> Rotation:
    """Returns the angles of positions 0 to length - 1."""
    angles = np.arange(length)[:, np.newaxis] * frequencies(head_size, base)
    cosines, sines = np.cos(angles), np.sin(angles)
    return Rotation(*(tf.constant(np.concatenate(halves, axis=1), tf.float32)
                      for halves in ((cosines, cosines), (-sines, sines))))


def rotate(x: tf.Tensor, cosines: tf.Tensor, sines: tf.Tensor) -> tf.Tensor:
    """Turns x [..., L, D] of the type of the angles [L, D]; negated sines turn it back."""
    # (a, b), the halves of D, become (a cos - b sin, b cos + a sin).
    first, second = tf.split(x, 2, axis=-1)
    return x * cosines + tf.concat([second, first], axis=-1) * sines
