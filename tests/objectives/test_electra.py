"""ELECTRA 15 % against the reference's logits, and the discriminator's scores by hand."""

import math

import numpy as np
import pytest

from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.modeling.electra import ElectraModel
from electra_tf.objectives.electra import Electra15Objective, ElectraObjective, detection_scores
from tests.support import golden_files
from tests.support.golden_batch import CONTEXT, RANDOMNESS, masked_batch


def objective() -> Electra15Objective:
    return Electra15Objective(
        override(PretrainingConfig(), {"objective.name": "electra_15"}), CONTEXT)


def selected() -> np.ndarray:
    """bool [B, L]."""
    arrays = golden_files.load("inputs")
    marks = np.zeros(arrays["input_ids"].shape, bool)
    rows, slots = np.nonzero(arrays["masked_lm_weights"])
    marks[rows, arrays["masked_lm_positions"][rows, slots]] = True
    return marks


def test_the_loss_is_the_references_of_the_selected_tokens_alone():
    """The reference has no such objective, but the logits are its own."""
    golden = golden_files.load("electra_outputs")
    labels, logits = golden["disc_labels"], golden["disc_logits"].astype(np.float64)
    losses = np.log1p(np.exp(-np.where(labels == 1, logits, -logits)))
    model = ElectraModel(golden_files.model_config("electra"), seed=0)
    golden_files.load_weights(model, "electra")
    inputs, sampled = masked_batch()
    outcome = objective().discriminate(model, inputs, sampled, RANDOMNESS, training=False)
    assert float(outcome.loss_sums["discriminator_loss"]) == pytest.approx(
        losses[selected()].sum(), rel=1e-5)
    assert losses[selected()].sum() < 0.5 * losses[inputs.original.valid].sum()


def test_the_loss_averages_over_the_selected_tokens():
    inputs, _ = masked_batch()
    own, weights = objective().prepare(inputs.original, RANDOMNESS)
    assert float(weights["discriminator_loss"]) == float(weights["generator_loss"])
    _, all_weights = ElectraObjective(PretrainingConfig(), CONTEXT).prepare(
        inputs.original, RANDOMNESS)
    assert float(all_weights["discriminator_loss"]) == inputs.original.valid.numpy().sum()


def test_scores_equal_a_count_by_hand():
    # Called replaced: tokens 0, 1, 4. Replaced: 0, 2, 4, 5.
    replaced = np.array([1, 0, 1, 0, 1, 1], bool)
    logits = np.array([2.0, 0.5, -1.0, -3.0, 0.1, -0.2])
    scores = detection_scores(replaced, logits)
    assert scores["discriminator_accuracy"] == pytest.approx(3 / 6)
    assert scores["discriminator_precision"] == pytest.approx(2 / 3)
    assert scores["discriminator_recall"] == pytest.approx(2 / 4)
    assert scores["replaced_fraction"] == pytest.approx(4 / 6)
    # Of the 8 (replaced, original) pairs, 5 are in order: 2.0 beats both, 0.1, -0.2 and -1.0
    # beat -3.0 alone.
    assert scores["discriminator_auc"] == pytest.approx(5 / 8)


def test_scores_of_no_flags_and_of_one_class_alone():
    scores = detection_scores(np.array([True, False]), np.array([-1.0, -2.0]))
    assert scores["discriminator_precision"] == scores["discriminator_recall"] == 0.0
    scores = detection_scores(np.array([False, False]), np.array([-1.0, 2.0]))
    assert math.isnan(scores["discriminator_auc"])
