"""Random bits as a pure function of (seed, step, stream, example).

Philox-4x32-10 (Salmon et al., SC 2011) turns a 64-bit key and a 128-bit counter into four 32-bit
words. The key is a hash of the seed and of the stream's name. The counter's upper half is the step;
its lower half counts the words of the global batch, example after example. The bits of an example
do not depend on its replica or micro-batch, on earlier draws or on the compiler: TensorFlow and XLA
draw equal integers, but not equal floats.
"""

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

_PHILOX, _WORDS_PER_BLOCK = 1, 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rng:
    """The position of draws in a run; names of streams distinguish the draws of one step."""

    seed: int
    step: tf.Tensor  # int64 [].
    first_example: tf.Tensor
    """int64 []: index in the global batch of the first example of the tensors drawn."""
    stride: int = 1  # Difference between the indices of two successive examples.
    parts: int = 1  # Successive rows of the tensors drawn that belong to one example.
    scope: str = ""  # Prefix of every stream's name.

    def within(self, scope: str) -> "Rng":
        """Returns the same position with `scope` appended to the prefix of every stream's name."""
        return dataclasses.replace(self, scope=f"{self.scope}{scope}/")

    def streams(self, *names: str) -> "Streams":
        """Returns the streams with these names, which are unique within the step."""
        keys = [[stream_key(self.seed, self.scope + name)] for name in names]
        return Streams(tf.constant(np.array(keys, np.uint64)), self.first_example, self.step,
                       self.stride, self.parts)

    def bits(self, stream: str, batch_size: int | tf.Tensor, words: int) -> tf.Tensor:
        """Draws uniform 32-bit words of one stream, int32 [batch_size, words]."""
        return self.streams(stream).bits(0, batch_size, words)

    def uniform(self, stream: str, batch_size: int, size: int) -> tf.Tensor:
        """Draws float32 [B, size], uniform multiples of 2**-24 in [0, 1)."""
        return to_uniform(self.bits(stream, batch_size, size))


class Streams(NamedTuple):
    """Streams at the position of a `Rng`, as tensors: an argument of traced functions."""

    keys: tf.Tensor  # uint64 [streams, 1].
    first_example: tf.Tensor  # int64 [].
    step: tf.Tensor  # int64 [].
    stride: int
    parts: int

    def bits(self, index: int, batch_size: int | tf.Tensor, words: int) -> tf.Tensor:
        """Draws uniform 32-bit words of a stream, int32 [batch_size, words]."""
        blocks = -(-words // _WORDS_PER_BLOCK)
        width = blocks * _WORDS_PER_BLOCK
        # The counter of the first row's first block; a block of Philox has four words.
        first_block = tf.cast(self.first_example, tf.uint64) * tf.constant(
            self.parts * blocks, tf.uint64)
        drawn = tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=[batch_size * self.stride, width], key=self.keys[index],
            counter=tf.stack([first_block, tf.cast(self.step, tf.uint64)]), alg=_PHILOX,
            dtype=tf.int32)
        if self.stride > 1:  # The examples between are drawn and dropped; a row has few words.
            drawn = tf.reshape(drawn, [-1, self.stride, self.parts * width])[:, 0]
            drawn = tf.reshape(drawn, [-1, width])
        return drawn if words == width else drawn[:, :words]

    def dropout_keys(self, batch_size: int | tf.Tensor) -> list[tf.Tensor]:
        """Draws the keys of `keep_mask` from every stream, uint32 [B, 2] each."""
        return [tf.bitcast(self.bits(index, batch_size, 2), tf.uint32)
                for index in range(self.keys.shape[0])]


def stream_key(seed: int, stream: str) -> int:
    """Returns the 64-bit Philox key of a named stream of a run."""
    digest = hashlib.sha256(f"{seed}:{stream}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


def to_uniform(bits: tf.Tensor) -> tf.Tensor:
    """Maps int32 words [...] to float32 in [0, 1), which holds their upper 24 bits exactly."""
    upper = tf.bitwise.right_shift(tf.bitcast(bits, tf.uint32), tf.constant(8, tf.uint32))
    return tf.cast(tf.cast(upper, tf.int32), tf.float32) * 2.0**-24


def dropout_keys(rng: Rng | None, stream: str, batch_size: int | tf.Tensor) -> tf.Tensor | None:
    """Draws the keys of `keep_mask`, uint32 [B, 2]; returns None without randomness."""
    if rng is None:
        return None
    return rng.streams(stream).dropout_keys(batch_size)[0]


def keep_mask(keys: tf.Tensor, shape: Sequence[int | tf.Tensor], rate: float) -> tf.Tensor:
    """Returns the mask of dropout, bool of `shape` [B, ...], False with probability `rate`.

    An element's word is a hash of its index within its example, keyed by the example's two Philox
    words, `keys`: two rounds of a 32-bit mixer (xor-shifts and odd multipliers that let every bit
    of the input flip half of the output's, by C. Wellons' search). In a compiled chain it takes a
    few instructions and no memory: the gradient computes the mask again. Ten rounds of Philox for
    every word took a ninth of a training step. Static sizes in `shape` are numbers.
    """
    # Starts with each example's first key word, [B, 1, ...].
    rows = [-1] + [1] * (len(shape) - 1)
    words, second = (tf.reshape(keys[:, column], rows) for column in range(2))
    # Adds the index, modulo 2**32, axis by axis: a constant of all indices would take 12 MB of
    # reads in every layer of ELECTRA-Base at L = 512.
    for axis in range(1, len(shape)):
        stride = math.prod(shape[axis + 1:])
        axis_shape = [1] * axis + [shape[axis]] + [1] * (len(shape) - axis - 1)
        if isinstance(shape[axis], int) and isinstance(stride, int):
            steps = np.arange(shape[axis], dtype=np.uint64) * stride % 2**32
            words += tf.constant(steps.astype(np.uint32).reshape(axis_shape))
        else:
            steps = tf.bitcast(tf.range(shape[axis]), tf.uint32) * tf.cast(stride, tf.uint32)
            words += tf.reshape(steps, axis_shape)

    # Two rounds, with the second key word between them; a uniform word is below rate * 2**32 with
    # probability `rate`.
    words = _mix(tf.bitwise.bitwise_xor(_mix(words), second))
    return words >= tf.constant(round(rate * 2**32), tf.uint32)


def _mix(words: tf.Tensor) -> tf.Tensor:
    """Maps uint32 one to one; every output bit depends evenly on all input bits."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        words = _xor_shift(words, shift) * tf.constant(factor, tf.uint32)
    return _xor_shift(words, 16)


def _xor_shift(words: tf.Tensor, shift: int) -> tf.Tensor:
    return tf.bitwise.bitwise_xor(
        words, tf.bitwise.right_shift(words, tf.constant(shift, tf.uint32)))
