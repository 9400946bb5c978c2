"""Before any learning, the generator guesses among V words and the discriminator tosses a coin."""

import math

import pytest
import tensorflow as tf

from electra_tf.config.sizes import pretraining_config
from electra_tf.modeling.masking import SpecialTokens
from electra_tf.modeling.randomness import Randomness
from electra_tf.objectives.registry import build_objective
from electra_tf.records.example import Batch


def test_electra_smalls_first_loss_is_ln_v_plus_50_ln_2():
    config = pretraining_config("small")
    objective = build_objective(config, SpecialTokens(pad=0, cls=101, sep=102, mask=103))
    model = objective.build_model(config.model, seed=1, policy="float32")
    numbers = tf.random.stateless_uniform([8, 64], seed=[1, 2], minval=1000, maxval=30522,
                                          dtype=tf.int32)
    batch = Batch(numbers, tf.ones([8, 64], tf.bool), tf.zeros([8, 64], tf.int32))
    place = Randomness(seed=1, step=tf.constant(0, tf.int64),
                       first_example=tf.constant(0, tf.int64))
    inputs, weights = objective.prepare(batch, place)
    outcome = objective.compute(model, inputs, place, training=True)
    losses = {name: float(value / weights[name]) for name, value in outcome.loss_sums.items()}
    assert losses["generator_loss"] == pytest.approx(math.log(30522), rel=0.02)
    assert losses["discriminator_loss"] == pytest.approx(math.log(2), rel=0.03)
    total = sum(objective.coefficients[name] * loss for name, loss in losses.items())
    assert total == pytest.approx(math.log(30522) + 50 * math.log(2), rel=0.03)
