"""Google's reference code gives equal outputs, losses, gradients and weights after four steps."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig, pretraining_config
from electra_tf.formats import pretrained
from electra_tf.modeling.electra import ElectraModel
from electra_tf.objectives.electra import ElectraObjective
from electra_tf.objectives.language_models import MaskedLanguageModel, MlmObjective
from electra_tf.objectives.pretraining import run_generator
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from electra_tf.training.step import TrainState, TrainStep
from tests.support import golden_files, named_arrays
from tests.support.golden_batch import CONTEXT, RNG, masked_batch

WITH_DISCRIMINATOR = ("electra", "electra_tied_generator", "electra_untied_embeddings")


def build(variant: str, config: ModelConfig | None = None):
    network = MaskedLanguageModel if variant == "mlm" else ElectraModel
    model = network(config or golden_files.model_config(variant), seed=0)
    golden_files.load_weights(model, variant)
    return model


class GoldenObjective(ElectraObjective):
    """ELECTRA with the golden masks and samples instead of random ones, and no dropout."""

    def prepare_inputs(self, batch, rng):
        inputs, _ = masked_batch()
        return inputs, self.denominators(inputs)

    def compute(self, model, inputs, rng, *, training):
        generated = run_generator(model.generator, inputs, rng, training=False)
        output = self.discriminate(
            model, inputs, masked_batch()[1], rng, training=False)
        generator_loss = {"generator_loss": tf.reduce_sum(generated.losses)}
        return output._replace(loss_sums=generator_loss | output.loss_sums)


def compute_losses(variant: str, model):
    """Runs the objective with the golden samples; returns losses, weighted total, details."""
    inputs, _ = masked_batch()
    if variant == "mlm":
        objective = MlmObjective(
            override(PretrainingConfig(), {"objective.name": "mlm"}), CONTEXT)
    else:
        objective = GoldenObjective(PretrainingConfig(), CONTEXT)
    output, weights = (objective.compute(model, inputs, RNG, training=False),
                       objective.denominators(inputs))
    losses = {name: value / weights[name] for name, value in output.loss_sums.items()}
    total = tf.add_n([objective.loss_weights[name] * loss for name, loss in losses.items()])
    return losses, total, output.per_example


def assert_close(values, golden):
    """Differences at most 1e-5 of the array's largest value."""
    np.testing.assert_allclose(values, golden, rtol=0, atol=1e-5 * np.max(np.abs(golden)))


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
    batch, positions = inputs.original, inputs.masked.positions
    layers = model.generator.encoder.all_layers(inputs.ids, batch.segment_ids, batch.padding_mask)
    assert_close(layers[0], golden["gen_embedding_output"])
    assert_close(layers[-1], golden["gen_sequence_output"])
    logits = model.generator(inputs.ids, batch.segment_ids, batch.padding_mask, positions)
    assert_close(logits[:, :500], golden["mlm_logits"].reshape(-1, 500))
    assert np.all(logits[:, 500:] < -1e8)


@pytest.mark.parametrize("variant", golden_files.VARIANTS)
def test_generator_equals_the_reference(variant):
    require_equal_generator(variant, build(variant))


def require_equal_discriminator(variant: str, model):
    golden = golden_files.load(f"{variant}_outputs")
    batch = masked_batch()[0].original
    _, _, per_example = compute_losses(variant, model)
    np.testing.assert_array_equal(per_example["corrupted_ids"], golden["disc_input_ids"])
    np.testing.assert_array_equal(per_example["replaced"], golden["disc_labels"])
    layers = model.discriminator.encoder.all_layers(
        per_example["corrupted_ids"], batch.segment_ids, batch.padding_mask)
    assert_close(layers[0], golden["disc_embedding_output"])
    assert_close(layers[-1], golden["disc_sequence_output"])
    assert_close(per_example["logits"], golden["disc_logits"])


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


def write_checkpoint(weights, directory):
    """Writes a checkpoint as TensorFlow 1's saver does: with Adam's slots and the step."""
    directory.mkdir()
    values = dict(weights) | {"global_step": np.int64(4)}
    for name, value in weights.items():
        values |= {f"{name}/adam_m": value * 0.1, f"{name}/adam_v": value * value}
    tf.raw_ops.SaveV2(
        prefix=str(directory / "model.ckpt-4"), tensor_names=list(values),
        shape_and_slices=[""] * len(values), tensors=list(map(tf.constant, values.values())))
    words = (f"word{index}" for index in range(500 - len(SPECIAL_TOKENS)))
    Vocabulary((*SPECIAL_TOKENS, *words)).save(directory / "vocab.txt")


@pytest.mark.parametrize("variant", WITH_DISCRIMINATOR)
def test_a_checkpoint_of_the_reference_computes_the_same_after_it_is_read(variant, tmp_path):
    """Other formats have the same weights: `tests/formats`."""
    weights = golden_files.load(f"{variant}_weights")
    write_checkpoint(weights, tmp_path / "reference")
    checkpoint = pretrained.read(tmp_path / "reference", num_heads=4)
    named_arrays.assert_close(checkpoint.weights, weights)
    model = build(variant, checkpoint.config)
    require_equal_generator(variant, model)
    require_equal_discriminator(variant, model)


# Learning rate 5e-4, 10 steps, 2 of warm-up; total loss before each step and after the last.
LOSSES = [65.39875030517578, 65.39875030517578, 25.793888092041016, 25.912702560424805,
          22.864835739135742]


def official_step() -> TrainStep:
    """The official run's settings, weights and optimizer, at step 0."""
    config = override(pretraining_config("small"), {
        "training.num_train_steps": 10, "training.train_batch_size": 5,
        "optimizer.warmup_steps": 2, "optimizer.learning_rate": 5e-4})
    model = build("electra")
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    return TrainStep(config, GoldenObjective(config, CONTEXT),
                     TrainState(config, model, strategy), strategy, 10)


def test_five_losses_and_the_weights_after_four_steps_equal_the_references():
    step, batch = official_step(), masked_batch()[0].original
    compiled = tf.function(lambda: step(batch)["loss"].total)
    losses = [float(compiled()) for _ in range(4)]
    weights = named_arrays.of(step.state.model.trainable_variables)
    golden = golden_files.load("electra_after_4_steps")
    np.testing.assert_allclose([*losses, float(compiled())], LOSSES, rtol=1e-5)
    named_arrays.assert_close({name: weights[name] for name in golden}, golden, atol=2e-6)
