"""Forward pass, losses and gradients equal Google's reference code on its weights and inputs."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.modeling.electra import ElectraModel
from electra_tf.objectives.electra import ElectraObjective
from electra_tf.objectives.language_models import MaskedLanguageModel, MlmObjective
from electra_tf.objectives.pretraining import run_generator
from tests.support import golden_files
from tests.support.golden_batch import CONTEXT, RANDOMNESS, masked_batch

WITH_DISCRIMINATOR = ("electra", "electra_tied_generator", "electra_untied_embeddings")


def build(variant: str, config: ModelConfig | None = None):
    network = MaskedLanguageModel if variant == "mlm" else ElectraModel
    model = network(config or golden_files.model_config(variant), seed=0)
    golden_files.load_weights(model, variant)
    return model


def compute_losses(variant: str, model):
    """Runs the objective with the golden samples; returns losses, weighted total, details."""
    inputs, sampled = masked_batch()
    masks = float(tf.reduce_sum(tf.cast(inputs.predictions.valid, tf.float32)))
    tokens = float(tf.reduce_sum(tf.cast(inputs.original.valid, tf.float32)))
    if variant == "mlm":
        objective = MlmObjective(
            override(PretrainingConfig(), {"objective.name": "mlm"}), CONTEXT)
        outcome = objective.compute(model, inputs, RANDOMNESS, training=False)
    else:
        objective = ElectraObjective(PretrainingConfig(), CONTEXT)
        generated = run_generator(model.generator, inputs, RANDOMNESS, training=False)
        outcome = objective.discriminate(model, inputs, sampled, RANDOMNESS, training=False)
        outcome.loss_sums["generator_loss"] = tf.reduce_sum(generated.losses)
    weights = {"generator_loss": masks, "discriminator_loss": tokens}
    losses = {name: value / weights[name] for name, value in outcome.loss_sums.items()}
    total = tf.add_n([objective.coefficients[name] * loss for name, loss in losses.items()])
    return losses, total, outcome.details


def assert_close(ours, golden):
    """Differences at most 1e-5 of the array's largest value."""
    np.testing.assert_allclose(ours, golden, rtol=0, atol=1e-5 * np.max(np.abs(golden)))


@pytest.mark.parametrize("variant", golden_files.VARIANTS)
def test_losses_equal_the_reference(variant):
    golden = golden_files.load(f"{variant}_outputs")
    losses, total, _ = compute_losses(variant, build(variant))
    np.testing.assert_allclose(float(losses["generator_loss"]), golden["mlm_loss"], rtol=1e-6)
    np.testing.assert_allclose(float(total), golden["total_loss"], rtol=1e-6)
    if variant in WITH_DISCRIMINATOR:
        np.testing.assert_allclose(
            float(losses["discriminator_loss"]), golden["disc_loss"], rtol=1e-6)


def require_equal_generator(variant: str, model):
    golden = golden_files.load(f"{variant}_outputs")
    inputs, _ = masked_batch()
    batch, positions = inputs.original, inputs.predictions.positions
    layers = model.generator.encoder.all_layers(inputs.ids, batch.segment_ids, batch.valid)
    assert_close(layers[0], golden["gen_embedding_output"])
    assert_close(layers[-1], golden["gen_sequence_output"])
    logits = model.generator(inputs.ids, batch.segment_ids, batch.valid, positions)
    assert_close(logits[:, :500], golden["mlm_logits"].reshape(-1, 500))
    assert np.all(logits[:, 500:] < -1e8)


@pytest.mark.parametrize("variant", golden_files.VARIANTS)
def test_generator_equals_the_reference(variant):
    require_equal_generator(variant, build(variant))


def require_equal_discriminator(variant: str, model):
    golden = golden_files.load(f"{variant}_outputs")
    batch = masked_batch()[0].original
    _, _, details = compute_losses(variant, model)
    np.testing.assert_array_equal(details["corrupted_ids"], golden["disc_input_ids"])
    np.testing.assert_array_equal(details["replaced"], golden["disc_labels"])
    layers = model.discriminator.encoder.all_layers(
        details["corrupted_ids"], batch.segment_ids, batch.valid)
    assert_close(layers[0], golden["disc_embedding_output"])
    assert_close(layers[-1], golden["disc_sequence_output"])
    assert_close(details["logits"], golden["disc_logits"])


@pytest.mark.parametrize("variant", WITH_DISCRIMINATOR)
def test_corruption_and_discriminator_equal_the_reference(variant):
    require_equal_discriminator(variant, build(variant))


@pytest.mark.parametrize("variant", golden_files.VARIANTS)
def test_gradients_equal_the_reference(variant):
    model = build(variant)
    with tf.GradientTape() as tape:
        _, total, _ = compute_losses(variant, model)
    golden_files.assert_gradients(
        variant, model, tape.gradient(total, model.trainable_variables), rtol=1e-5)
