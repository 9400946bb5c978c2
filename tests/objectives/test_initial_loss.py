"""Before any learning, the generator guesses among V words and the discriminator tosses a coin."""

import math

import pytest
import tensorflow as tf

from electra_tf.config.sizes import pretraining_config
from electra_tf.data.example import Batch
from electra_tf.modeling.randomness import Randomness
from electra_tf.objectives.registry import build_objective
from tests import tiny_given

SEEDS = 8


def test_electra_smalls_first_loss_is_ln_v_plus_50_ln_2():
    # At first all tokens get nearly the same logit, some 0.1 from zero, which shifts one seed's
    # discriminator loss by up to 8 %; the mean over eight seeds by a third of that.
    losses = [first_losses(seed) for seed in range(SEEDS)]
    generator, discriminator = (sum(column) / SEEDS for column in zip(*losses, strict=True))
    assert generator == pytest.approx(math.log(30522), rel=0.02)
    assert discriminator == pytest.approx(math.log(2), rel=0.04)
    assert generator + 50 * discriminator == pytest.approx(
        math.log(30522) + 50 * math.log(2), rel=0.03)


def first_losses(seed: int) -> tuple[float, float]:
    """Generator's and discriminator's loss of a fresh ELECTRA-Small on random text."""
    config = pretraining_config("small")
    objective = build_objective(config, tiny_given.of(
        vocab_size=30522, cls=101, sep=102, mask=103))
    model = objective.build_model(config.model, seed=seed, policy="float32")
    numbers = tf.random.stateless_uniform([4, 64], seed=[1, seed], minval=1000, maxval=30522,
                                          dtype=tf.int32)
    batch = Batch(numbers, tf.ones([4, 64], tf.bool), tf.zeros([4, 64], tf.int32))
    place = Randomness(seed=seed, step=tf.constant(0, tf.int64),
                       first_example=tf.constant(0, tf.int64))
    inputs, weights = objective.prepare(batch, place)
    outcome = objective.compute(model, inputs, place, training=True)
    return tuple(float(outcome.loss_sums[name] / weights[name])
                 for name in ("generator_loss", "discriminator_loss"))
