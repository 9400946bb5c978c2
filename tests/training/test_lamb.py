"""LAMB's weights equal Model Garden's, and steps are as long as the weights."""

import numpy as np
import pytest
import tensorflow as tf
from official.modeling.optimization import lamb as model_garden

from electra_tf.config.optimization import OptimizerConfig
from electra_tf.training.lamb import Lamb

CONFIG = OptimizerConfig(bias_correction=True)
NAMES = ("electra/encoder/layer_0/dense/kernel", "electra/encoder/layer_0/dense/bias",
         "electra/embeddings/LayerNorm/gamma", "electra/embeddings/word_embeddings")
ONE = tf.ones([])


def _variables() -> list[tf.Variable]:
    random = np.random.default_rng(0)
    shapes = ((4, 3), (3,), (4,), (6, 4))
    return [tf.Variable(random.normal(size=shape), name=name, dtype=tf.float32)
            for name, shape in zip(NAMES, shapes, strict=True)]


def _apply(optimizer, gradients, step, rate=0.01, usable=True):
    optimizer.apply(gradients, tf.constant(rate), step=tf.constant(step), scale=ONE,
                    usable=tf.constant(usable))


@pytest.mark.parametrize("weight_decay", [0.01, 0.0])
def test_ten_steps_equal_model_gardens(weight_decay):
    ours, theirs = _variables(), _variables()
    optimizer = Lamb(OptimizerConfig(bias_correction=True, weight_decay=weight_decay), ours)
    # Its list of weights without adaptation is that of weights without decay.
    peer = model_garden.LAMB(learning_rate=0.01, weight_decay_rate=weight_decay,
                             exclude_from_weight_decay=["bias", "gamma"])
    random = np.random.default_rng(1)
    for step in range(10):
        gradients = [tf.constant(random.normal(size=variable.shape), tf.float32)
                     for variable in ours]
        _apply(optimizer, gradients, step)
        peer.apply_gradients(zip(gradients, theirs, strict=True))
    for name, one, other in zip(NAMES, ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-7, err_msg=name)


def test_an_unusable_gradient_changes_nothing():
    variables = _variables()
    optimizer = Lamb(CONFIG, variables)
    _apply(optimizer, [tf.ones_like(variable) for variable in variables], 0)
    parts = [*variables, *optimizer.first_moments, *optimizer.second_moments]
    before = [part.numpy() for part in parts]
    _apply(optimizer, [tf.fill(variable.shape, np.nan) for variable in variables], 1, usable=False)
    for old, new in zip(before, parts, strict=True):
        np.testing.assert_array_equal(old, new)
