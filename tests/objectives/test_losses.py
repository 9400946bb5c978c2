"""Losses of objectives against the reference's numbers, and scores by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints.weights import assign_parts
from electra_tf.config.objectives import objective_class
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core.errors import UserError
from electra_tf.modeling.corruption import Corrupted
from electra_tf.modeling.electra import ElectraModel
from electra_tf.modeling.masking import gather_at
from electra_tf.objectives.adversarial import AdversarialModel, policy_losses
from electra_tf.objectives.electra import ElectraLmModel, detection_scores
from electra_tf.objectives.language_models import copy_loss
from tests.support import golden_files, named_arrays
from tests.support.golden_batch import CONTEXT, RNG, masked_batch


def objective(name, **changes):
    config = override(PretrainingConfig(), {"objective.name": name} | changes)
    return objective_class(name)(config, CONTEXT)


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
    output = objective("electra_15").discriminate(
        model, inputs, sampled, RNG, training=False)
    assert float(output.loss_sums["discriminator_loss"]) == pytest.approx(
        losses[selected()].sum(), rel=1e-5)
    assert losses[selected()].sum() < 0.5 * losses[inputs.original.padding_mask].sum()


@pytest.mark.parametrize(("name", "loss", "of_all"), [
    ("electra_15", "discriminator_loss", False), ("electra", "discriminator_loss", True),
    ("electra_lm", "restoring_loss", False), ("electra_lm", "discriminator_loss", True),
    ("replace_mlm", "restoring_loss", False), ("all_tokens_mlm", "all_tokens_loss", True)])
def test_a_loss_averages_over_the_selected_tokens_or_over_all(name, loss, of_all):
    batch = masked_batch()[0].original
    _, denominators = objective(name).prepare_inputs(batch, RNG)
    tokens = batch.padding_mask.numpy().sum()
    assert float(denominators[loss]) == (
        tokens if of_all else float(denominators["generator_loss"]))
    assert float(denominators["generator_loss"]) < 0.2 * tokens


def test_scores_equal_a_count_by_hand():
    # Called replaced: tokens 0, 1, 4. Replaced: 0, 2, 4, 5.
    replaced = np.array([1, 0, 1, 0, 1, 1], bool)
    logits = np.array([2.0, 0.5, -1.0, -3.0, 0.1, -0.2])
    scores = detection_scores(replaced, logits)
    assert scores["discriminator_accuracy"] == pytest.approx(3 / 6)
    assert scores["discriminator_precision"] == pytest.approx(2 / 3)
    assert scores["discriminator_recall"] == pytest.approx(2 / 4)
    assert scores["replaced_fraction"] == pytest.approx(4 / 6)
    # The threshold 2.0 has precision 1, all lower ones have 0.8 or less.
    assert scores["discriminator_recall_at_p90"] == pytest.approx(1 / 4)
    # Of the 8 (replaced, original) pairs, 5 are in order: 2.0 beats both, 0.1, -0.2 and -1.0
    # beat -3.0 alone.
    assert scores["discriminator_auc"] == pytest.approx(5 / 8)


def test_scores_of_no_flags_and_of_one_class_alone():
    scores = detection_scores(np.array([True, False]), np.array([-1.0, -2.0]))
    assert scores["discriminator_precision"] == scores["discriminator_recall"] == 0.0
    scores = detection_scores(np.array([False, False]), np.array([-1.0, 2.0]))
    assert math.isnan(scores["discriminator_auc"])
    assert math.isnan(scores["discriminator_recall_at_p90"])


def test_recall_at_90_percent_precision_takes_the_lowest_such_threshold():
    replaced = np.array([1] * 9 + [0, 1, 0, 0], bool)  # By falling logit: 9 of 10, then 10 of 11.
    scores = detection_scores(replaced, -np.arange(13.0))
    assert scores["discriminator_recall_at_p90"] == pytest.approx(10 / 10)
    replaced = np.array([0, 1, 1], bool)
    scores = detection_scores(replaced, -np.arange(3.0))
    assert scores["discriminator_recall_at_p90"] == 0.0


def test_the_gradient_ascends_the_advantage_and_leaves_the_baseline_alone():
    reward = tf.constant([1.0, 0.1])
    logits = tf.Variable([[1.0, 2.0, 0.5], [0.0, 0.0, 0.0]])
    logit = tf.Variable([0.0, np.log(0.6 / 0.4)], dtype=tf.float32)  # Expects ln 2 and -ln 0.6.
    sampled = [2, 0]
    with tf.GradientTape(persistent=True) as tape:
        surprise = tf.nn.sparse_softmax_cross_entropy_with_logits(sampled, logits)
        policy, baseline = policy_losses(reward, surprise, logit)
    advantage = reward.numpy() + np.log([0.5, 0.6])
    np.testing.assert_allclose(policy, advantage * surprise, rtol=1e-5)
    right = np.exp(-reward.numpy())  # Probability that the discriminator gave to the label.
    np.testing.assert_allclose(
        baseline, -right * np.log([0.5, 0.6]) - (1 - right) * np.log([0.5, 0.4]), rtol=1e-5)
    softmax = tf.nn.softmax(logits).numpy()
    np.testing.assert_allclose(  # -(R - b) d log p / d logits
        tape.gradient(policy, logits),
        -advantage[:, np.newaxis] * (np.eye(3)[sampled] - softmax), rtol=1e-5, atol=1e-6)
    assert tape.gradient(policy, logit) is None
    assert tape.gradient(baseline, logits) is None


def test_the_reward_is_the_discriminators_loss_at_the_selected_positions():
    """With the reference's weights, whose samples and logits are known."""
    model = AdversarialModel(golden_files.model_config("electra"), seed=0)
    assign_parts(model.variables, golden_files.load("electra_weights"), "golden")
    inputs, sampled = masked_batch()
    made = objective("adversarial")
    made.sample = lambda *args, training: sampled
    output = made.compute(model, inputs, RNG, training=False)
    golden, arrays = golden_files.load("electra_outputs"), golden_files.load("inputs")
    logits, labels = golden["disc_logits"].astype(np.float64), golden["disc_labels"]
    rewards = np.log1p(np.exp(np.where(labels == 1, -logits, logits)))
    rows = np.arange(5)[:, np.newaxis]
    expected = rewards[rows, arrays["masked_lm_positions"]][arrays["masked_lm_weights"] > 0]
    reward = output.metrics["generator_reward"]
    assert float(reward.total / reward.weight) == pytest.approx(expected.mean(), rel=1e-5)
    nats = output.metrics["generator_loss"]
    assert float(nats.total / nats.weight) == pytest.approx(float(golden["mlm_loss"]), rel=1e-5)


def test_the_discriminators_gradient_reaches_the_generator_by_policy_only():
    model = AdversarialModel(golden_files.model_config("electra"), seed=0)
    inputs, _ = masked_batch()
    with tf.GradientTape(persistent=True) as tape:
        sums = objective("adversarial").compute(model, inputs, RNG, training=False).loss_sums
    kernel = model.generator.encoder.encoder_layers[0].attention.query.kernel
    assert tape.gradient(sums["discriminator_loss"], kernel) is None
    assert tape.gradient(sums["baseline_loss"], kernel) is None
    assert np.any(tape.gradient(sums["policy_loss"], kernel).numpy())
    head = model.discriminator.head.dense_1.kernel
    assert tape.gradient(sums["policy_loss"], head) is None


@pytest.mark.parametrize("name", ["adversarial", "electric"])
@pytest.mark.parametrize("changes", [
    {"sampling.temperature": 2.0}, {"sampling.disallow_correct": True}])
def test_samples_of_another_distribution_are_refused(name, changes):
    """Noise q' gives ln(q'/q) - ln p as the best energy of NCE with ln q, instead of -ln p."""
    with pytest.raises(UserError, match=f"={name} needs samples of the generator's own distrib"):
        objective(name, **changes)


def built(name):
    """The objective, and its network with the reference's weights of BERT as the restorer."""
    made = objective(name)
    model = made.model_class(golden_files.model_config("mlm"), seed=0)
    named_arrays.assign(model.restorer.variables, {
        name.replace("generator_predictions", "restorer_predictions"): value
        for name, value in golden_files.load("mlm_weights").items()})
    return made, model


def read_as_the_reference(inputs) -> Corrupted:
    """Returns the text with [MASK]s that BERT reads, in place of a corrupted text."""
    ids = inputs.ids
    return Corrupted(ids, ids != inputs.original.ids)


def test_replace_mlm_of_berts_input_is_the_references_bert():
    made, model = built("replace_mlm")
    inputs, _ = masked_batch()
    output = made.restore(
        model, inputs, read_as_the_reference(inputs), RNG, training=False)
    slots = inputs.masked.filled.numpy().sum()
    assert float(output.loss_sums["restoring_loss"]) / slots == pytest.approx(
        float(golden_files.load("mlm_outputs")["mlm_loss"]), rel=1e-5)


def test_electra_lm_detects_as_electra_and_restores_as_the_references_bert():
    """If the discriminator reads BERT's input, its second head has BERT's loss."""
    made = objective("electra_lm")
    model = ElectraLmModel(golden_files.model_config("mlm"), seed=0)
    assign_parts(model.variables, {
        name.replace("generator_predictions", "restorer_predictions"): value
        for name, value in golden_files.load("mlm_weights").items()}, "golden")
    inputs, _ = masked_batch()
    output = made.discriminate(model, inputs, gather_at(inputs.ids, inputs.masked.positions), RNG,
                               training=False)
    slots = inputs.masked.filled.numpy().sum()
    assert float(output.loss_sums["restoring_loss"]) / slots == pytest.approx(
        float(golden_files.load("mlm_outputs")["mlm_loss"]), rel=1e-5)
    detected = objective("electra").discriminate(
        model, inputs, gather_at(inputs.ids, inputs.masked.positions), RNG, training=False)
    np.testing.assert_array_equal(output.per_example["logits"], detected.per_example["logits"])


def test_accuracies_of_restored_tokens_are_of_selected_and_of_replaced_ones():
    # Of three filled slots, those at positions 1 and 3 were replaced; 0 and 3 are restored.
    scores = objective("electra_lm").scores({
        "padding_mask": np.ones([1, 5], bool), "logits": np.zeros([1, 5]),
        "replaced": np.array([[0, 1, 0, 1, 0]], bool), "positions": np.array([[0, 1, 3, 1]]),
        "predicted": np.array([[1, 1, 1, 0]], bool), "original_ids": np.array([[7, 8, 9, 0]]),
        "best_ids": np.array([[7, 7, 7, 7]]), "restored_ids": np.array([[7, 7, 9, 8]]),
    }, {"generator_sampled_accuracy": 0.5})
    assert scores["generator_accuracy"] == pytest.approx(1 / 3)
    assert scores["restoring_accuracy"] == pytest.approx(2 / 3)
    assert scores["restoring_accuracy_replaced"] == pytest.approx(1 / 2)


def test_all_tokens_mlm_without_copying_is_the_references_bert():
    """With a copy probability of nearly 0 the mixture is the softmax."""
    made, model = built("all_tokens_mlm")
    inputs, _ = masked_batch()
    model.copying.dense_1.kernel.assign(tf.zeros_like(model.copying.dense_1.kernel))
    model.copying.dense_1.bias.assign([60.0])  # Logit of not copying.
    output = made.restore(
        model, inputs, read_as_the_reference(inputs), RNG, training=False)
    golden = golden_files.load("mlm_outputs")
    arrays = golden_files.load("inputs")
    states = model.restorer.encode(
        inputs.ids, inputs.original.segment_ids, inputs.original.padding_mask)
    logits = model.restorer.head(tf.reshape(states, [-1, 64]))[:, :500].numpy().reshape(5, 48, 500)
    rows = np.arange(5)[:, np.newaxis]
    np.testing.assert_allclose(  # The same logits as the reference's, where it has any.
        logits[rows, arrays["masked_lm_positions"]], golden["mlm_logits"], atol=1e-4)
    log_p = logits - np.log(np.exp(logits.astype(np.float64)).sum(-1, keepdims=True))
    expected = -log_p[rows, np.arange(48), arrays["input_ids"]][arrays["input_mask"] > 0].sum()
    assert float(output.loss_sums["all_tokens_loss"]) == pytest.approx(expected, rel=1e-5)


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


def test_logits_of_not_copying_are_those_that_detect_replaced_tokens():
    made, model = built("all_tokens_mlm")
    inputs, _ = masked_batch()
    unchanged = Corrupted(inputs.original.ids, tf.zeros_like(inputs.original.padding_mask))
    output = made.restore(model, inputs, unchanged, RNG, training=False)
    np.testing.assert_array_equal(
        made.detection_logits(model, inputs.original), output.per_example["logits"])
