"""The generator that is rewarded for deceiving (ELECTRA, appendix F)."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints.weights import assign_parts
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.objectives.adversarial import AdversarialModel, AdversarialObjective, policy_losses
from electra_tf.platform.errors import UserError
from tests.support import golden_files
from tests.support.golden_batch import CONTEXT, RANDOMNESS, masked_batch


def objective(**changes) -> AdversarialObjective:
    return AdversarialObjective(override(PretrainingConfig(), {
        "objective.name": "adversarial"} | changes), CONTEXT)


def test_the_losses_of_one_sample_by_hand():
    # The discriminator is right with probability 0.8: R = -ln 0.8. The baseline expected 0.6.
    reward, surprise = tf.constant(-np.log(0.8), tf.float32), tf.constant(2.0)
    logit = tf.constant(np.log(0.6 / 0.4), tf.float32)
    policy, baseline = policy_losses(reward, surprise, logit)
    assert float(policy) == pytest.approx((-np.log(0.8) + np.log(0.6)) * 2.0, rel=1e-5)
    assert float(baseline) == pytest.approx(
        -0.8 * np.log(0.6) - 0.2 * np.log(0.4), rel=1e-5)


def test_the_gradient_ascends_the_advantage_and_leaves_the_baseline_alone():
    reward = tf.constant([1.0, 0.1])
    logits = tf.Variable([[1.0, 2.0, 0.5], [0.0, 0.0, 0.0]])
    logit = tf.Variable([0.0, 0.0])  # Expects ln 2.
    sampled = [2, 0]
    with tf.GradientTape(persistent=True) as tape:
        surprise = tf.nn.sparse_softmax_cross_entropy_with_logits(sampled, logits)
        policy, baseline = policy_losses(reward, surprise, logit)
    advantage = reward.numpy() - np.log(2.0)
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
    made = objective()
    made.sample = lambda *args: sampled
    outcome = made.compute(model, inputs, RANDOMNESS, training=False)
    golden, arrays = golden_files.load("electra_outputs"), golden_files.load("inputs")
    logits, labels = golden["disc_logits"].astype(np.float64), golden["disc_labels"]
    rewards = np.log1p(np.exp(np.where(labels == 1, -logits, logits)))
    rows = np.arange(5)[:, np.newaxis]
    expected = rewards[rows, arrays["masked_lm_positions"]][arrays["masked_lm_weights"] > 0]
    reward = outcome.measures["generator_reward"]
    assert float(reward.sum / reward.weight) == pytest.approx(expected.mean(), rel=1e-5)
    nats = outcome.measures["generator_loss"]
    assert float(nats.sum / nats.weight) == pytest.approx(float(golden["mlm_loss"]), rel=1e-5)


def test_the_discriminators_gradient_reaches_the_generator_by_policy_only():
    model = AdversarialModel(golden_files.model_config("electra"), seed=0)
    inputs, _ = masked_batch()
    with tf.GradientTape(persistent=True) as tape:
        sums = objective().compute(model, inputs, RANDOMNESS, training=False).loss_sums
    kernel = model.generator.encoder.encoder_layers[0].attention.query.kernel
    assert tape.gradient(sums["discriminator_loss"], kernel) is None
    assert tape.gradient(sums["baseline_loss"], kernel) is None
    assert np.any(tape.gradient(sums["policy_loss"], kernel).numpy())
    head = model.discriminator.head.dense_1.kernel
    assert tape.gradient(sums["policy_loss"], head) is None


def test_samples_of_another_distribution_are_refused():
    with pytest.raises(UserError, match="needs samples of the generator's own distribution"):
        objective(**{"sampling.temperature": 2.0})
