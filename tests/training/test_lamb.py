"""LAMB's weights equal Model Garden's, and steps are as long as the weights."""

import numpy as np
import pytest
import tensorflow as tf
from official.modeling.optimization import lamb as model_garden

from electra_tf.config.optimization import OptimizerConfig
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.platform.errors import UserError
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


def test_a_step_is_as_long_as_the_weight_times_the_rate():
    before = _variables()
    lengths = [float(tf.norm(variable)) for variable in before]
    old = [variable.numpy() for variable in before]
    _apply(Lamb(CONFIG, before), [1e-3 * tf.ones_like(variable) for variable in before], 0)
    moved = [float(tf.norm(variable - value)) for variable, value in zip(before, old, strict=True)]
    assert moved[0] == pytest.approx(0.01 * lengths[0], rel=1e-4)
    assert moved[3] == pytest.approx(0.01 * lengths[3], rel=1e-4)
    # Adam's step, 1 per value, where there is no ratio.
    assert moved[1] == pytest.approx(0.01 * np.sqrt(3), rel=2e-3)


def test_a_weight_of_zeros_takes_the_plain_rate():
    kernel = tf.Variable(tf.zeros([2, 2]), name=NAMES[0])
    _apply(Lamb(CONFIG, [kernel]), [tf.ones([2, 2])], 0)
    np.testing.assert_allclose(kernel, np.full((2, 2), -0.01), rtol=1e-5)


def test_a_rate_factor_multiplies_the_step():
    steps = []
    for factor in (1.0, 0.25):
        kernel = tf.Variable(tf.ones([2, 2]), name=NAMES[0])
        _apply(Lamb(CONFIG, [kernel], [factor]), [tf.constant([[1.0, 2.0], [3.0, 4.0]])], 0)
        steps.append(1.0 - kernel.numpy())
    np.testing.assert_allclose(steps[1], 0.25 * steps[0], rtol=1e-5)


def test_an_unusable_gradient_changes_nothing():
    variables = _variables()
    optimizer = Lamb(CONFIG, variables)
    _apply(optimizer, [tf.ones_like(variable) for variable in variables], 0)
    parts = [*variables, *optimizer.first_moments, *optimizer.second_moments]
    before = [part.numpy() for part in parts]
    _apply(optimizer, [tf.fill(variable.shape, np.nan) for variable in variables], 1, usable=False)
    for old, new in zip(before, parts, strict=True):
        np.testing.assert_array_equal(old, new)


def test_an_optimizer_that_does_not_exist_is_refused():
    with pytest.raises(UserError, match=r"optimizer.name must be one of adam, lamb"):
        override(PretrainingConfig(), {"optimizer.name": "sgd"})
