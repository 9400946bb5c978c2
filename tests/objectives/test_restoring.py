"""Replace MLM and All-Tokens MLM (ELECTRA, section 3.4)."""

import math

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.objectives import objective_class
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.modeling.corruption import Corrupted
from electra_tf.objectives.language_models import copy_loss
from tests.support import golden_files, named_arrays
from tests.support.golden_batch import CONTEXT, RANDOMNESS, masked_batch


def built(name):
    """The objective, and its network with the reference's weights of BERT as the restorer."""
    objective = objective_class(name)(
        override(PretrainingConfig(), {"objective.name": name}), CONTEXT)
    model = objective.networks_class(golden_files.model_config("mlm"), seed=0)
    named_arrays.assign(model.restorer.variables, {
        name.replace("generator_predictions", "restorer_predictions"): value
        for name, value in golden_files.load("mlm_weights").items()})
    return objective, model


def read_as_the_reference(inputs) -> Corrupted:
    """What BERT reads, [MASK]s and all, in place of a corrupted text."""
    ids = inputs.ids
    return Corrupted(ids, ids != inputs.original.ids)


def test_replace_mlm_of_berts_input_is_the_references_bert():
    objective, model = built("replace_mlm")
    inputs, _ = masked_batch()
    outcome = objective.restore(
        model, inputs, read_as_the_reference(inputs), RANDOMNESS, training=False)
    slots = inputs.predictions.valid.numpy().sum()
    assert float(outcome.loss_sums["restoring_loss"]) / slots == pytest.approx(
        float(golden_files.load("mlm_outputs")["mlm_loss"]), rel=1e-5)


def test_all_tokens_mlm_without_copying_is_the_references_bert():
    """With a copy probability of nearly 0 the mixture is the softmax."""
    objective, model = built("all_tokens_mlm")
    inputs, _ = masked_batch()
    model.copying.dense_1.kernel.assign(tf.zeros_like(model.copying.dense_1.kernel))
    model.copying.dense_1.bias.assign([60.0])  # Logit of not copying.
    outcome = objective.restore(
        model, inputs, read_as_the_reference(inputs), RANDOMNESS, training=False)
    golden = golden_files.load("mlm_outputs")
    arrays = golden_files.load("inputs")
    states = model.restorer.encode(
        inputs.ids, inputs.original.segment_ids, inputs.original.valid)
    logits = model.restorer.head(tf.reshape(states, [-1, 64]))[:, :500].numpy().reshape(5, 48, 500)
    rows = np.arange(5)[:, np.newaxis]
    np.testing.assert_allclose(  # The same logits as the reference's, where it has any.
        logits[rows, arrays["masked_lm_positions"]], golden["mlm_logits"], atol=1e-4)
    log_p = logits - np.log(np.exp(logits.astype(np.float64)).sum(-1, keepdims=True))
    expected = -log_p[rows, np.arange(48), arrays["input_ids"]][arrays["input_mask"] > 0].sum()
    assert float(outcome.loss_sums["all_tokens_loss"]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("copying", "probability", "unchanged", "expected"), [
    (0.5, 0.25, True, 0.5 + 0.5 * 0.25),
    (0.5, 0.25, False, 0.5 * 0.25),
    (0.9, 0.1, True, 0.9 + 0.1 * 0.1),
    (0.9, 0.1, False, 0.1 * 0.1),
    (0.01, 0.99, True, 0.01 + 0.99 * 0.99)])
def test_the_mixture_of_copying_and_predicting(copying, probability, unchanged, expected):
    loss = copy_loss(tf.constant(math.log(copying / (1 - copying))),
                     tf.constant(-math.log(probability)), tf.constant(unchanged))
    assert float(loss) == pytest.approx(-math.log(expected), rel=1e-6, abs=1e-7)


def test_neither_the_mixtures_loss_nor_its_gradient_overflows():
    copy = np.repeat([-1e4, -90.0, 0.0, 90.0, 1e4], 6)
    losses = np.tile([0.0, 1e-6, 1.0, 50.0, 300.0, 1e4], 5)
    for unchanged in (True, False):
        x, y = tf.constant(copy, tf.float32), tf.constant(losses, tf.float32)
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            loss = copy_loss(x, y, tf.fill(x.shape, unchanged))
        copied, predicted = -np.logaddexp(0, -copy), -np.logaddexp(0, copy) - losses
        expected = -(np.logaddexp(copied, predicted) if unchanged else predicted)
        np.testing.assert_allclose(loss, expected, rtol=1e-5, atol=1e-6)
        share = np.exp(predicted - np.logaddexp(copied, predicted)) if unchanged else 1.0
        d_copy, d_losses = tape.gradient(loss, [x, y])
        np.testing.assert_allclose(d_losses, np.broadcast_to(share, 30), atol=1e-5)
        sigmoid = 1 / (1 + np.exp(np.minimum(-copy, 700)))
        np.testing.assert_allclose(
            d_copy, share * sigmoid - (1 - share) * (1 - sigmoid), atol=1e-5)


def test_replace_mlm_learns_of_selected_tokens_and_all_tokens_mlm_of_all():
    inputs, _ = masked_batch()
    tokens = inputs.original.valid.numpy().sum()
    _, of_selected = built("replace_mlm")[0].prepare(inputs.original, RANDOMNESS)
    _, of_all = built("all_tokens_mlm")[0].prepare(inputs.original, RANDOMNESS)
    assert float(of_selected["restoring_loss"]) == float(of_selected["generator_loss"])
    assert float(of_all["all_tokens_loss"]) == tokens
    assert max(float(of["generator_loss"]) for of in (of_selected, of_all)) < 0.2 * tokens


def test_the_copy_head_judges_tokens():
    objective, model = built("all_tokens_mlm")
    inputs, _ = masked_batch()
    judged = objective.judge(model, inputs.original)
    unchanged = Corrupted(inputs.original.ids, tf.zeros_like(inputs.original.valid))
    outcome = objective.restore(model, inputs, unchanged, RANDOMNESS, training=False)
    np.testing.assert_array_equal(judged, outcome.details["logits"])
