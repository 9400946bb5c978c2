"""Element-wise chains that XLA compiles into one pass over memory, with their gradients.

TensorFlow runs a chain like GELU as a dozen ops that each read and write the whole tensor, and
slowly in bfloat16. For a [4096, 1024] bfloat16 tensor on two cores: GELU 25 ms as ops and 1 ms
fused, its gradient 30 ms and 1 ms. Matrix products stay outside: on the CPU oneDNN's are faster
than XLA's. So do sums over rows, which are products with a row of ones (`products.sum_rows`).

All arithmetic is in float32; only what is stored has the tensor's own type. Here is what chains
have in common, and dropout; `gelu`, `layer_norm` and `attention` have the others.
"""

import functools
import pathlib

import tensorflow as tf

from electra_tf.modeling.randomness import keep_mask
from electra_tf.modeling.tracing import (
    fused,
    is_compiled_as_a_whole,
    is_inference,
    with_gradient,
)


def rounded(wide: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Rounds float32 inside a chain to the type that is stored: to the nearest, halves to even.

    XLA's cast to bfloat16 looks for NaNs on the CPU. Without, a pass over [2048, 1024] that does
    nothing else takes 0.11 ms instead of 0.25. A NaN that arithmetic makes stays one: the lower
    half of its bits, which a carry would come from, is zero.
    """
    if dtype != tf.bfloat16 or is_inference() or not is_for_cpu():
        return tf.cast(wide, dtype)
    bits, half_word = tf.bitcast(wide, tf.uint32), tf.constant(16, tf.uint32)
    odd = tf.bitwise.bitwise_and(
        tf.bitwise.right_shift(bits, half_word), tf.constant(1, tf.uint32))
    bits = tf.bitwise.right_shift(bits + tf.constant(0x7FFF, tf.uint32) + odd, half_word)
    return tf.bitcast(tf.cast(bits, tf.uint16), tf.bfloat16)


def is_for_cpu() -> bool:
    """Tells whether what is traced runs on this machine's CPU, op by op."""
    return not is_compiled_as_a_whole() and not any(
        map(tf.config.list_logical_devices, ("GPU", "TPU")))


@functools.cache
def cpu_multiplies_bfloat16() -> bool:
    """Tells whether this machine's CPU has units for bfloat16, which oneDNN's kernels then use."""
    cpu = pathlib.Path("/proc/cpuinfo")
    return cpu.exists() and any(
        flag in cpu.read_text(encoding="utf-8") for flag in ("avx512_bf16", "amx_bf16"))


def biased(x: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Returns x [..., H] plus bias [H] in float32, inside a chain."""
    return tf.cast(x, tf.float32) + tf.cast(bias, tf.float32)


def dropout(x: tf.Tensor, rate: float, keys: tf.Tensor | None) -> tf.Tensor:
    """Zeroes elements with probability `rate` and scales the others by 1 / (1 - rate).

    Args:
        x: floating [B, ...], static shape.
        rate: probability of zero, in [0, 1).
        keys: uint32 [B, 2], where the randomness comes from; None outside of training: `x` comes
            back unchanged.

    Returns:
        Like `x`.
    """
    if keys is None or rate == 0.0:
        return x

    @with_gradient
    def run(x):
        return dropped(x, keys, rate), lambda upstream: dropped(upstream, keys, rate)

    return run(x)


@fused
def dropped(x, keys, rate):
    """`dropout` without a gradient of its own, for those who write it."""
    return rounded(drop(tf.cast(x, tf.float32), keys, rate), x.dtype)


def drop(wide: tf.Tensor, keys: tf.Tensor | None, rate: float) -> tf.Tensor:
    """Dropout of float32, inside a chain; arguments as for `dropout`."""
    return wide if keys is None else tf.where(
        keep_mask(keys, wide.shape, rate), wide * (1.0 / (1.0 - rate)), 0.0)
