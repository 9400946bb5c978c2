"""Every fused chain against the same formula as plain TensorFlow ops: value and gradient."""

import functools
import math

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling.fused import attention_weights, dropout, gelu, layer_norm, residual_norm
from electra_tf.modeling.products import affine
from electra_tf.modeling.randomness import Randomness, dropout_keys, keep_mask

KEYS = dropout_keys(
    Randomness(seed=7, step=tf.constant(3, tf.int64), first_example=tf.constant(0, tf.int64)),
    "stream", 4)
RATE = 0.3


def normal(*shape, seed=1):
    return tf.random.stateless_normal(shape, seed=[seed, 2])


def masked(x):
    return tf.where(keep_mask(KEYS, x.shape, RATE), x / (1.0 - RATE), 0.0)


def plain_norm(x, gamma, beta):
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    return (x - mean) / tf.sqrt(variance + 1e-12) * gamma + beta


X, BRANCH = normal(4, 6, 32), normal(4, 6, 32, seed=3)
GAMMA, BETA = 1.0 + normal(32, seed=4), normal(32, seed=5)
SCORES = 3.0 * normal(4, 2, 6, 6, seed=6)
ROWS, KERNEL, BIAS = normal(9, 32, seed=7), normal(32, 5, seed=8), normal(5, seed=9)

CASES = {
    "gelu": (gelu, lambda x: 0.5 * x * (1.0 + tf.math.erf(x / math.sqrt(2.0))), [3.0 * X]),
    "dropout": (lambda x: dropout(x, RATE, KEYS), masked, [X]),
    "layer_norm": (layer_norm, plain_norm, [X, GAMMA, BETA]),
    "residual_norm": (
        lambda *tensors: residual_norm(*tensors, RATE, KEYS),
        lambda x, branch, gamma, beta: plain_norm(x + masked(branch), gamma, beta),
        [X, BRANCH, GAMMA, BETA]),
    "residual_norm, no dropout": (
        lambda *tensors: residual_norm(*tensors, RATE, None),
        lambda x, branch, gamma, beta: plain_norm(x + branch, gamma, beta),
        [X, BRANCH, GAMMA, BETA]),
    "attention_weights": (
        lambda scores: attention_weights(scores, RATE, KEYS),
        lambda scores: masked(tf.exp(scores) / tf.reduce_sum(tf.exp(scores), -1, keepdims=True)),
        [SCORES]),
    "attention_weights, no dropout": (
        lambda scores: attention_weights(scores, RATE, None),
        lambda scores: tf.exp(scores) / tf.reduce_sum(tf.exp(scores), -1, keepdims=True),
        [SCORES]),
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
    for gradient, wanted in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(gradient, wanted, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_bfloat16_rounds_only_what_is_stored(name):
    function, plain, inputs = CASES[name]
    low = [x if x is GAMMA or x is BETA else tf.cast(x, tf.bfloat16) for x in inputs]
    value, gradients = value_and_gradients(function, low)
    expected, expected_gradients = value_and_gradients(
        plain, [tf.cast(x, tf.float32) for x in low])
    # A stored bfloat16 is off by 2**-9 of itself; a sum of few such terms by that of its terms.
    for got, wanted in zip([value, *gradients], [expected, *expected_gradients], strict=True):
        scale = float(tf.reduce_max(tf.abs(wanted)))
        np.testing.assert_allclose(tf.cast(got, tf.float32), wanted, rtol=0.02, atol=0.01 * scale)


def test_the_softmax_of_bfloat16_scores_is_computed_in_float32():
    scores = tf.cast(normal(4, 2, 6, 512), tf.bfloat16)
    exact = tf.nn.softmax(tf.cast(scores, tf.float32))
    got = tf.cast(attention_weights(scores, 0.0, None), tf.float32)
    # Half a unit in the last place of bfloat16, and float32's own rounding.
    np.testing.assert_allclose(got, exact, rtol=2.0**-8 + 1e-5)


@pytest.mark.parametrize("device", ["GPU", "TPU"])
def test_accelerators_get_a_softmax_of_float32(monkeypatch, device):
    monkeypatch.setattr(tf.config, "list_logical_devices",
                        lambda kind: ["one"] if kind == device else [])
    graph = tf.function(lambda scores: attention_weights(scores, 0.0, None)).get_concrete_function(
        tf.TensorSpec([2, 2, 4, 4], tf.bfloat16)).graph
    (softmax,) = [node for node in graph.get_operations() if node.type == "Softmax"]
    assert softmax.inputs[0].dtype == tf.float32


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_dropout_keeps_the_mean(rate, dtype):
    y = tf.cast(dropout(tf.ones([4, 200, 100], dtype), rate, KEYS), tf.float32).numpy()
    deviation = math.sqrt(rate * (1.0 - rate) / y.size)
    assert abs(np.mean(y == 0.0) - rate) < 5.0 * deviation
    precision = 1e-6 if dtype == tf.float32 else 2.0**-8
    np.testing.assert_allclose(np.unique(y), [0.0, 1.0 / (1.0 - rate)], rtol=precision)


def test_without_keys_or_rate_nothing_is_dropped():
    assert dropout(X, RATE, None) is X
    assert dropout(X, 0.0, KEYS) is X
