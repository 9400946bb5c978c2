"""Random bits as a pure function of (seed, step, stream, example).

Philox-4x32-10 (Salmon et al., SC 2011) turns a 64-bit key and a 128-bit counter into four 32-bit
words. The key is a hash of the seed and of the stream's name, the counter's upper half is the
step, its lower half counts the words of the global batch, example after example. So the bits of
an example don't depend on which replica or micro-batch it is in, on what was drawn before, or on
the compiler: integer draws agree between plain TensorFlow and XLA, float draws don't.
"""

import dataclasses
import hashlib

import tensorflow as tf

PHILOX = 1
WORDS_PER_BLOCK = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Randomness:
    """Where in the run a draw happens. Names of streams tell draws of one step apart."""

    seed: int
    step: tf.Tensor
    """int64 []."""
    first_example: tf.Tensor
    """int64 []: index in the global batch of row 0 of the tensors at hand."""
    scope: str = ""

    def within(self, scope: str) -> "Randomness":
        """Returns the same place with `scope` put before the name of every stream."""
        return dataclasses.replace(self, scope=f"{self.scope}{scope}/")

    def bits(self, stream: str, batch_size: int, words: int) -> tf.Tensor:
        """Draws uniform 32-bit words.

        Args:
            stream: name of the draw, unique within the step.
            batch_size: B, rows at hand.
            words: W, words per row.

        Returns:
            int32 [B, W], every bit fair and independent.
        """
        blocks = -(-words // WORDS_PER_BLOCK)
        first = tf.cast(self.first_example, tf.uint64) * tf.constant(blocks, tf.uint64)
        drawn = tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=[batch_size, blocks * WORDS_PER_BLOCK],
            key=tf.constant([stream_key(self.seed, self.scope + stream)], tf.uint64),
            counter=tf.stack([first, tf.cast(self.step, tf.uint64)]),
            alg=PHILOX,
            dtype=tf.int32,
        )
        return drawn if words % WORDS_PER_BLOCK == 0 else drawn[:, :words]

    def uniform(self, stream: str, batch_size: int, size: int) -> tf.Tensor:
        """Draws float32 [B, size], uniform multiples of 2**-24 in [0, 1)."""
        return to_uniform(self.bits(stream, batch_size, size))


def stream_key(seed: int, stream: str) -> int:
    """Returns the 64-bit Philox key of a named stream of a run."""
    digest = hashlib.sha256(f"{seed}:{stream}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


def to_uniform(bits: tf.Tensor) -> tf.Tensor:
    """Turns int32 words into float32 in [0, 1): the upper 24 bits, exactly representable."""
    upper = tf.bitwise.right_shift(tf.bitcast(bits, tf.uint32), tf.constant(8, tf.uint32))
    return tf.cast(tf.cast(upper, tf.int32), tf.float32) * 2.0**-24


def dropout(
    x: tf.Tensor, rate: float, randomness: Randomness | None, stream: str
) -> tf.Tensor:
    """Zeroes elements with probability `rate` and scales the others by 1 / (1 - rate).

    One 32-bit word decides two elements, 16 bits each, so the rate is a multiple of 2**-16. The
    mask is multiplied in: a bfloat16 `tf.where` takes four times as long on the CPU.

    Args:
        x: floating [B, ...], static shape.
        rate: probability of zero, in [0, 1).
        randomness: None outside of training: `x` comes back unchanged.
        stream: name of the draw.

    Returns:
        Like `x`.
    """
    if randomness is None or rate == 0.0:
        return x
    batch_size, size = x.shape[0], x.shape[1:].num_elements()
    words = randomness.bits(stream, batch_size, (size + 1) // 2)
    halves = tf.reshape(tf.bitcast(words, tf.int16), [batch_size, -1])[:, :size]
    dropped = round(rate * 2**16)
    kept = tf.cast(halves >= tf.constant(dropped - 2**15, tf.int16), x.dtype)
    scale = tf.cast(2**16 / (2**16 - dropped), x.dtype)
    return x * tf.reshape(kept * scale, x.shape)
