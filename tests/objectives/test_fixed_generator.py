import math

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.objectives import Replacements
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.data.example import Batch
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.variants import DiscriminatorModel
from electra_tf.objectives.given_generator import FixedGeneratorObjective, replacement_logits
from tests import tiny_given
from tests.parity import golden_files

GIVEN = tiny_given.of(vocab_size=500)
PLACE = Randomness(seed=0, step=tf.constant(0, tf.int64), first_example=tf.constant(0, tf.int64))


def test_uniform_replacements_are_the_references():
    """Its logits are zeros, special tokens included; blocks are filled with what is impossible."""
    logits = replacement_logits(Replacements.UNIFORM, GIVEN)
    np.testing.assert_array_equal(logits[:500], np.zeros(500))
    assert logits.shape == (512,) and (logits[500:] < -1e8).all()


def test_unigram_replacements_are_as_likely_as_frequent():
    logits = replacement_logits(Replacements.UNIGRAM, GIVEN).astype(np.float64)
    np.testing.assert_allclose(np.exp(logits[:500]), np.arange(500) / (499 * 500 / 2), rtol=1e-5)
    assert logits[0] < -1e8 and (logits[500:] < -1e8).all()


@pytest.mark.parametrize(("replacements", "mean"), [
    ("uniform", 499 / 2), ("unigram", 999 / 3)])
def test_selected_tokens_are_replaced_by_such_draws_and_others_stay(replacements, mean):
    config = override(PretrainingConfig(), {
        "objective.name": "fixed_generator", "objective.replacements": replacements})
    objective = FixedGeneratorObjective(config, GIVEN)
    model = DiscriminatorModel(golden_files.model_config("electra"), seed=0)
    ids = tf.fill([64, 60], 7)
    batch = Batch(ids, ids > 0, tf.zeros_like(ids))
    inputs, weights = objective.prepare(batch, PLACE)
    assert weights.keys() == objective.coefficients.keys() == {"discriminator_loss"}
    details = objective.compute(model, inputs, PLACE, training=False).details
    corrupted, replaced = details["corrupted_ids"].numpy(), details["replaced"].numpy()
    assert (corrupted[~replaced] == 7).all()
    drawn = corrupted[replaced]
    assert 64 * 8 < drawn.size <= 64 * 9
    assert drawn.mean() == pytest.approx(mean, abs=4 * 145 / math.sqrt(drawn.size))
