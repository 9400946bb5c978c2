"""Muon's updates equal NumPy's in float64, and come at Adam's rate and schedule."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.optimization import OptimizerConfig
from electra_tf.core.errors import UserError
from electra_tf.training.adam import Adam
from electra_tf.training.muon import POLYNOMIALS, Muon, orthogonalize

NAMES = {"electra/encoder/layer_0/attention/self/query/kernel": (6, 6),
         "electra/encoder/layer_0/intermediate/dense/kernel": (6, 14),
         "electra/encoder/layer_0/output/dense/kernel": (14, 6),
         "electra/encoder/layer_1/output/dense/kernel": (14, 6),
         "generator/encoder/layer_0/output/dense/kernel": (14, 6),
         "electra/encoder/layer_0/output/dense/bias": (6,),
         "electra/embeddings_project/kernel": (6, 6),
         "electra/embeddings/word_embeddings": (9, 6)}
RATE, DECAY, FACTORS = 0.01, 0.1, [1.0, 0.5, 0.25, 2.0, 1.0, 1.0, 0.5, 1.0]


def numpy_orthogonal(matrix, method):
    """The polynomials of the singular values, by LAPACK's decomposition instead of matmuls."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    values /= ((1.02 * np.sum(values**4)**0.5)**0.5 if method == "polar_express"
               else np.linalg.norm(matrix))
    for a, b, c in POLYNOMIALS[method]:
        values = a * values + b * values**3 + c * values**5
    return (left * values) @ right


def run(config, gradients, **arguments):
    """Variables after some steps, one of them not finite, and the optimizer."""
    random = np.random.default_rng(0)
    variables = [tf.Variable(random.normal(size=shape), name=name, dtype=tf.float32)
                 for name, shape in NAMES.items()]
    optimizer = {"muon": Muon, "adam": Adam}[config.name](config, variables, FACTORS, **arguments)

    @tf.function(autograph=False, jit_compile=True)
    def apply(step, finite, *gradients):
        optimizer.apply(gradients, tf.constant(RATE), step=step, finite=finite,
                        clip_factor=tf.constant(0.5))

    for step, values in enumerate(gradients):
        apply(tf.constant(step), tf.constant(True), *values)
    before = [array.numpy() for array in (*variables, *optimizer.variables)]
    apply(tf.constant(3), tf.constant(False), *[np.nan * value for value in values])
    np.testing.assert_equal([array.numpy() for array in (*variables, *optimizer.variables)], before)
    return variables, optimizer


@pytest.fixture(scope="module")
def gradients():
    random = np.random.default_rng(1)
    return [[random.normal(size=shape).astype(np.float32) for shape in NAMES.values()]
            for _ in range(3)]


@pytest.mark.parametrize(("method", "networks"), [
    ("newton_schulz", "both"), ("polar_express", "discriminator")])
def test_three_steps_equal_numpys_for_matrices_and_adams_for_all_else(
        gradients, method, networks):
    settings = {"weight_decay": DECAY, "bias_correction": True}
    config = OptimizerConfig(name="muon", muon_networks=networks, muon_orthogonalization=method,
                             muon_rate=2.0, **settings)
    variables, optimizer = run(config, gradients)
    adams, _ = run(OptimizerConfig(**settings), gradients)
    initial, _ = run(config, [[np.zeros(shape, np.float32) for shape in NAMES.values()]])
    matrices = 0
    for index, (name, shape) in enumerate(NAMES.items()):
        if "/layer_" not in name or "bias" in name or (
                networks == "discriminator" and "generator" in name):
            np.testing.assert_array_equal(variables[index], adams[index])
            continue
        matrices += 1
        decay = 1 - RATE * FACTORS[index] * DECAY
        weight, momentum = initial[index].numpy() / decay, 0.0
        for step in range(3):
            gradient = 0.5 * gradients[step][index].astype(float)
            momentum = 0.95 * momentum + 0.05 * gradient
            update = numpy_orthogonal(0.95 * momentum + 0.05 * gradient, method)
            size = RATE * FACTORS[index] * 2.0 * 0.2 * max(shape)**0.5
            weight = decay * weight - size * update
        np.testing.assert_allclose(variables[index], weight, rtol=0, atol=2e-5)
    assert len(optimizer.momenta) == matrices


@pytest.mark.parametrize("shape", [(2, 48, 48), (2, 48, 128), (2, 128, 48)], ids=str)
@pytest.mark.parametrize("method", POLYNOMIALS)
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_singular_values_end_near_one(shape, method, kind):
    # A matrix whose singular values fall from 1 to 0.02, and one of rank 1.
    random = np.random.default_rng(0)
    left, right = (np.linalg.qr(random.normal(size=(size, min(shape[1:]))))[0]
                   for size in shape[1:])
    x = np.stack([left / np.arange(1, left.shape[1] + 1) @ right.T, left[:, :1] @ right[:, :1].T])
    x /= np.linalg.norm(x, axis=(1, 2), keepdims=True)
    y = tf.cast(orthogonalize(tf.cast(x, kind), method), tf.float64).numpy()
    expected = [numpy_orthogonal(matrix, method) for matrix in x]
    errors = np.linalg.norm(y - expected, axis=(1, 2)) / np.linalg.norm(expected, axis=(1, 2))
    if kind == "float32":
        assert max(errors) < 1e-3
    else:  # Its rounding is noise in the null space of the second.
        assert errors[0] < 0.2 and np.linalg.svd(y)[1].max() < 1.7
    zero = tf.zeros(shape, kind)
    np.testing.assert_array_equal(orthogonalize(zero, method), zero)


def test_a_network_without_own_layers_is_refused():
    variables = [tf.Variable(tf.zeros([2, 2]), name=name) for name in (
        "electra/encoder/layer_0/output/dense/kernel", "generator_predictions/dense/kernel")]
    with pytest.raises(UserError, match="optimizer.muon_networks=both, .* generator/encoder"):
        Muon(OptimizerConfig(name="muon", muon_networks="both"), variables)
