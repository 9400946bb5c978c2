"""The generator's loss, samples from it, and the corrupted text that the discriminator reads.

The logits [M, V] are the largest tensor of a training step: 608 x 30,592 for ELECTRA-Small at batch
32, 74 MB in float32. They stay in the compute type. Their exponentials are not stored; the gradient
computes them again. The loss and its gradient take 26 ms on two cores instead of 42.
"""

from typing import NamedTuple

import tensorflow as tf

from electra_tf.config.corruption import SamplingConfig
from electra_tf.modeling.electra import BLOCK, IMPOSSIBLE_LOGIT
from electra_tf.modeling.fused import fused, is_for_cpu, rounded, with_gradient
from electra_tf.modeling.masking import MaskedPositions, write_tokens


class Distribution(NamedTuple):
    """One softmax distribution per row, ready to be sampled from."""

    logits: tf.Tensor  # Floating [M, V], V a multiple of 128.
    largest: tf.Tensor  # float32 [M], the largest logit.
    block_sums: tf.Tensor
    """float32 [M, V / 128], the sum of exp(logit - largest) over every block of 128 entries."""


def distribution(logits: tf.Tensor) -> Distribution:
    """Normalizes logits [M, V] in float32, without a gradient; V is a multiple of 128."""
    logits = candidates = tf.stop_gradient(logits)
    if is_for_cpu():
        # The largest entries over blocks, [M, V / 128, 1, 128] to [M, 1, 1, 128]: oneDNN pools
        # [614, 8192] in bfloat16 in 0.7 ms on one core; `reduce_max` takes 9.
        rows, entries = logits.shape
        window = [entries // BLOCK, 1]
        blocks = tf.reshape(logits, [rows, *window, BLOCK])
        candidates = tf.reshape(tf.nn.max_pool2d(blocks, window, 1, "VALID"), [rows, BLOCK])
    largest = tf.cast(tf.reduce_max(candidates, axis=-1), tf.float32)
    # softmax(x) = exp(x - largest) / total; the total is the sum of the block sums.
    return Distribution(logits, largest, _block_sums(logits, largest))


def at_temperature(softmax: Distribution, temperature: tf.Tensor | float) -> Distribution:
    """Returns softmax(logits / temperature); the temperature is above 0, a number or float32 []."""
    if isinstance(temperature, float) and temperature == 1.0:
        return softmax
    return distribution(softmax.logits / tf.cast(temperature, softmax.logits.dtype))


def temperature_at(config: SamplingConfig, step: tf.Tensor) -> tf.Tensor | float:
    """Returns the temperature of a training step, integer []: T + (T_0 - T) exp(-step / decay).

    It is float32 [], or the number T if it does not change.
    """
    if not config.temperature_decay_steps:
        return config.temperature
    decayed = tf.exp(tf.cast(step, tf.float32) / -config.temperature_decay_steps)
    return config.temperature + (config.initial_temperature - config.temperature) * decayed


def without(softmax: Distribution, ids: tf.Tensor) -> Distribution:
    """Sets entry `ids`, int32 [M], of every row to probability 0 and renormalizes the rest."""
    # bool [M, V]: one entry of each row.
    excluded = tf.range(softmax.logits.shape[1]) == ids[:, tf.newaxis]
    never = tf.cast(IMPOSSIBLE_LOGIT, softmax.logits.dtype)
    return distribution(tf.where(excluded, never, softmax.logits))


@fused
def _block_sums(logits, largest):
    rows, entries = logits.shape
    blocks = tf.reshape(_exponentials(logits, largest), [rows, entries // BLOCK, BLOCK])
    return tf.reduce_sum(blocks, axis=-1)


def _exponentials(logits, largest):
    return tf.exp(tf.cast(logits, tf.float32) - largest[:, tf.newaxis])


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor, softmax: Distribution) -> tf.Tensor:
    """Returns the cross entropy, float32 [M], of logits [M, V] and labels int32 [M].

    `softmax` is `distribution(logits)`. The gradient is softmax minus one-hot.
    """
    @with_gradient
    def run(logits):
        # -log softmax(x)[label] = log(total) + largest - x[label].
        total = tf.reduce_sum(softmax.block_sums, axis=-1)
        label_logits = tf.cast(tf.gather(logits, labels, batch_dims=1), tf.float32)
        loss = tf.math.log(total) + softmax.largest - label_logits
        return loss, lambda d_loss: _logits_gradient(logits, softmax.largest, total, labels, d_loss)

    return run(logits)


@fused
def _logits_gradient(logits, largest, total, labels, d_loss):
    # d loss / d x = softmax(x) - one_hot(label), times the gradient of the loss.
    probs = _exponentials(logits, largest) * (d_loss / total)[:, tf.newaxis]
    is_label = tf.range(logits.shape[1]) == labels[:, tf.newaxis]
    return rounded(probs - tf.where(is_label, d_loss[:, tf.newaxis], 0.0), logits.dtype)


def sample(softmax: Distribution, uniforms: tf.Tensor) -> tf.Tensor:
    """Draws one index per row, int32 [M], by inverse CDF from uniforms, float32 [M] in [0, 1).

    A uniform selects a block of 128 entries, then the entry within. Gumbel noise would need a
    uniform per entry, and one inverse CDF a running sum over the whole vocabulary. An entry whose
    probability is 0 in float32 is never drawn.
    """
    rows, entries = softmax.logits.shape
    # The block, by the running sums over blocks, [M, V / 128].
    ends = tf.cumsum(softmax.block_sums, axis=-1)
    block, before = _invert(ends, uniforms * ends[:, -1])
    # The entry within it, by the running sums over its 128 entries.
    blocks = tf.reshape(softmax.logits, [rows, entries // BLOCK, BLOCK])
    inside = _exponentials(tf.gather(blocks, block, batch_dims=1), softmax.largest)
    entry, _ = _invert(tf.cumsum(inside, axis=-1), uniforms * ends[:, -1] - before)
    return tf.stop_gradient(block * BLOCK + entry)


def _invert(ends: tf.Tensor, target: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the first index whose running sum exceeds the target, and the sum before it.

    The index is int32 [M] and its weight is positive; the sum is float32 [M]. `ends` are the
    running sums, float32 [M, K]. `target` [M] is limited, as rounding may let it reach the last.
    """
    largest = ends[:, -1] * (1.0 - 2.0**-23)
    target = tf.minimum(target, largest)[:, tf.newaxis]
    # The number of running sums up to the target is the index of the first above it.
    passed = ends <= target
    index = tf.reduce_sum(tf.cast(passed, tf.int32), axis=-1)
    before = tf.reduce_max(tf.where(passed, ends, 0.0), axis=-1)
    return index, before


class Corrupted(NamedTuple):
    """A batch as the discriminator reads it."""

    ids: tf.Tensor  # int32 [B, L].
    replaced: tf.Tensor  # bool [B, L], True for tokens that differ from the original ones.


def corrupt(ids: tf.Tensor, padding_mask: tf.Tensor, masked: MaskedPositions,
            sampled: tf.Tensor) -> Corrupted:
    """Writes samples int32 [B, N] to all selected positions of the original ids [B, L].

    They include the positions whose original token the generator read. A token is replaced if it
    differs from the original one and isn't padding, False in `padding_mask`, bool [B, L].
    """
    corrupted = write_tokens(ids, masked.positions, sampled, masked.filled)
    return Corrupted(corrupted, padding_mask & (ids != corrupted))
