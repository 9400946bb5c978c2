"""Every fused chain against the same formula as plain TensorFlow ops: value and gradient."""

import functools
import math

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.core import machine
from electra_tf.modeling import fused
from electra_tf.modeling.fused import (
    affine,
    attend,
    dropout,
    gelu,
    layer_norm,
    residual_norm,
    rounded,
    split_heads,
)
from electra_tf.modeling.rng import dropout_keys, keep_mask
from tests.support.rng import rng_at

KEYS = dropout_keys(rng_at(), "stream", 4)
RATE = 0.3


def normal(*shape, seed=1):
    return tf.random.stateless_normal(shape, seed=[seed, 2])


def masked(x):
    return tf.where(keep_mask(KEYS, x.shape, RATE), x / (1.0 - RATE), 0.0)


def plain_norm(x, gamma, beta):
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    return (x - mean) / tf.sqrt(variance + 1e-12) * gamma + beta


def shares(scores):
    return tf.exp(scores) / tf.reduce_sum(tf.exp(scores), -1, keepdims=True)


def padding(scores):
    """Returns the bias of scores of examples with 6, 4, 5 and 1 tokens."""
    return -10000.0 * tf.cast(tf.range(6) >= tf.reshape([6, 4, 5, 1], [4, 1, 1, 1]), scores.dtype)


X, BRANCH = normal(4, 6, 32), normal(4, 6, 32, seed=3)
GAMMA, BETA = 1.0 + normal(32, seed=4), normal(32, seed=5)
WIDE_BIAS = normal(32, seed=12)
SCORES, VALUES = 3.0 * normal(4, 2, 6, 6, seed=6), normal(4, 2, 6, 5, seed=13)
JOINT, JOINT_BIAS = normal(4 * 6, 3 * 2 * 5, seed=14), normal(3 * 2 * 5, seed=15)
ROWS, KERNEL, BIAS = normal(9, 32, seed=7), normal(32, 5, seed=8), normal(5, seed=9)

CASES = {
    "gelu": (gelu, lambda x, b: 0.5 * (x + b) * (1.0 + tf.math.erf((x + b) / math.sqrt(2.0))),
             [3.0 * X, WIDE_BIAS]),
    "dropout": (lambda x: dropout(x, RATE, KEYS), masked, [X]),
    "layer_norm": (layer_norm, plain_norm, [X, GAMMA, BETA]),
    "residual_norm": (
        lambda *tensors: residual_norm(*tensors, RATE, KEYS),
        lambda x, branch, b, gamma, beta: plain_norm(x + masked(branch + b), gamma, beta),
        [X, BRANCH, WIDE_BIAS, GAMMA, BETA]),
    "residual_norm, no dropout": (
        lambda *tensors: residual_norm(*tensors, RATE, None),
        lambda x, branch, b, gamma, beta: plain_norm(x + branch + b, gamma, beta),
        [X, BRANCH, WIDE_BIAS, GAMMA, BETA]),
    "attend": (
        lambda scores, values: attend(scores, padding(scores), values, RATE, KEYS),
        lambda scores, values: tf.matmul(masked(shares(scores + padding(scores))), values),
        [SCORES, VALUES]),
    "attend, no dropout": (
        lambda scores, values: attend(scores, padding(scores), values, RATE, None),
        lambda scores, values: tf.matmul(shares(scores + padding(scores)), values),
        [SCORES, VALUES]),
    "split_heads": (
        lambda joint, b: split_heads(joint, b, 3, 2, 6),
        lambda joint, b: tf.transpose(tf.reshape(joint + b, [4, 6, 3, 2, 5]), [2, 0, 3, 1, 4]),
        [JOINT, JOINT_BIAS]),
    "affine": (affine, lambda x, w, b: tf.matmul(x, w) + b, [ROWS, KERNEL, BIAS]),
    "affine transposed": (functools.partial(affine, transposed=True),
                          lambda x, t, b: tf.matmul(x, tf.transpose(t)) + b,
                          [ROWS, tf.transpose(KERNEL), BIAS]),
}


def value_and_gradients(function, inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        value = function(*inputs)
        upstream = tf.cast(normal(*value.shape, seed=11), value.dtype)
    return value, tape.gradient(value, inputs, output_gradients=upstream)


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradients_equal_plain_ops(name):
    function, plain, inputs = CASES[name]
    value, gradients = value_and_gradients(function, inputs)
    expected, expected_gradients = value_and_gradients(plain, inputs)
    np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5)
    for gradient, exact_value in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(gradient, exact_value, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_bfloat16_rounds_only_what_is_stored(name):
    function, plain, inputs = CASES[name]
    low = [x if x is GAMMA or x is BETA else tf.cast(x, tf.bfloat16) for x in inputs]
    value, gradients = value_and_gradients(function, low)
    expected, expected_gradients = value_and_gradients(
        plain, [tf.cast(x, tf.float32) for x in low])
    # A stored bfloat16 is off by 2**-9 of itself; a sum of few such terms by that of its terms.
    for part, exact in zip([value, *gradients], [expected, *expected_gradients], strict=True):
        scale = float(tf.reduce_max(tf.abs(exact)))
        np.testing.assert_allclose(tf.cast(part, tf.float32), exact, rtol=0.02, atol=0.015 * scale)


def every_bfloat16(limit):
    """All bfloat16 numbers up to a limit, both signs."""
    positive = np.arange(0x7F80, dtype=np.uint16).view(tf.bfloat16.as_numpy_dtype)
    positive = positive[positive.astype(np.float32) <= limit]
    return np.concatenate([-positive, positive])


def test_gelu_of_bfloat16_is_the_erf_form_up_to_rounding():
    numbers = every_bfloat16(64.0)
    with tf.GradientTape() as tape:
        x = tf.constant(numbers[:, np.newaxis])
        tape.watch(x)
        y = gelu(x, tf.zeros([1], tf.bfloat16))
    slope = tape.gradient(y, x)
    exact = numbers.astype(np.float64)
    cdf = np.array([0.5 * math.erfc(-number / math.sqrt(2.0)) for number in exact])
    density = np.exp(-0.5 * exact**2) / math.sqrt(2.0 * math.pi)
    # What rounding may add: half a unit in the last of eight places.
    for value, exact_value, off in ((y, exact * cdf, np.maximum(7e-5, 5e-6 * np.abs(exact))),
                             (slope, cdf + exact * density, 1.4e-4)):
        error = np.abs(tf.cast(value, tf.float64)[:, 0] - exact_value)
        assert np.all(error <= off + 2.0**-8 * np.abs(exact_value))


def test_rounding_to_bfloat16_is_that_of_a_cast():
    bits = np.random.default_rng(1).integers(0, 2**32, 100_000, dtype=np.uint32)
    halves = np.arange(0x8000, 2**32, 0x10000, dtype=np.uint32)
    numbers = np.concatenate([bits, halves, halves + 1, halves - 1]).view(np.float32)
    numbers = np.concatenate([numbers[~np.isnan(numbers)], np.float32([np.inf, -np.inf, np.nan])])
    compiled = tf.function(lambda x: rounded(x, tf.bfloat16), jit_compile=True)
    value, exact_value = (tf.cast(x, tf.float32).numpy() for x in (
        compiled(numbers), tf.cast(numbers, tf.bfloat16)))
    normal_or_zero = (np.abs(numbers) >= np.finfo(np.float32).tiny) | (numbers == 0.0)
    np.testing.assert_array_equal(value[normal_or_zero], exact_value[normal_or_zero])
    assert np.isnan(value[-1]) and normal_or_zero.sum() > 200_000


@pytest.mark.parametrize("device", ["GPU", "TPU"])
def test_accelerators_get_a_softmax_of_float32(monkeypatch, device):
    monkeypatch.setattr(tf.config, "list_logical_devices",
                        lambda kind: ["one"] if kind == device else [])
    traced = tf.function(lambda scores: attend(scores, 0.0, scores, 0.0, None))
    graph = traced.get_concrete_function(tf.TensorSpec([2, 2, 4, 4], tf.bfloat16)).graph
    (softmax,) = [node for node in graph.get_operations() if node.type == "Softmax"]
    assert softmax.inputs[0].dtype == tf.float32


@pytest.mark.parametrize(("line", "variables", "expected"), [
    ("flags\t\t: sse2 avx512_bf16 fma", {}, True), ("Features\t: asimd bf16", {}, False),
    (None, {}, False), ("flags\t\t: amx_bf16", {"ONEDNN_MAX_CPU_ISA": "avx2"}, False),
    ("flags\t\t: amx_bf16", {"TF_ENABLE_ONEDNN_OPTS": "0"}, False)],
    ids=["x86 with bfloat16", "arm64", "macOS", "limited", "off"])
def test_bfloat16_units_are_those_of_x86_that_onednn_may_use(
        line, variables, expected, tmp_path, monkeypatch):
    path = tmp_path / "cpuinfo"
    if line:
        path.write_text(f"processor\t: 0\n{line}\n")
    monkeypatch.setattr(machine, "CPU_INFO", path)
    for name in ("ONEDNN_MAX_CPU_ISA", "TF_ENABLE_ONEDNN_OPTS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert fused.cpu_multiplies_bfloat16.__wrapped__() is expected
