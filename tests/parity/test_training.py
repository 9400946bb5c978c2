"""Four whole training steps equal four of Google's reference code: the losses and the weights."""

import numpy as np
import tensorflow as tf

from electra_tf.config.overrides import override
from electra_tf.config.pretraining import pretraining_config
from electra_tf.objectives.electra import ElectraObjective
from electra_tf.objectives.pretraining import run_generator
from electra_tf.training.adam import Adam
from electra_tf.training.schedule import Schedule
from electra_tf.training.step import LossScale, TrainState, TrainStep
from tests.parity.test_networks import build
from tests.support import golden_files, named_arrays
from tests.support.golden_batch import CONTEXT, masked_batch

# Learning rate 5e-4, 10 steps, 2 of warm-up; total loss before each step and after the last.
LOSSES = [65.39875030517578, 65.39875030517578, 25.793888092041016, 25.912702560424805,
          22.864835739135742]


class GoldenObjective(ElectraObjective):
    """ELECTRA with the golden masks and samples instead of random ones, and no dropout."""

    def prepare(self, batch, randomness):
        inputs, _ = masked_batch()
        return inputs, {
            "generator_loss": tf.reduce_sum(tf.cast(inputs.predictions.valid, tf.float32)),
            "discriminator_loss": tf.reduce_sum(tf.cast(inputs.original.valid, tf.float32))}

    def compute(self, model, inputs, randomness, *, training):
        generated = run_generator(model.generator, inputs, randomness, training=False)
        judged = self.discriminate(
            model, inputs, masked_batch()[1], randomness, training=False)
        generator_loss = {"generator_loss": tf.reduce_sum(generated.losses)}
        return judged._replace(loss_sums=generator_loss | judged.loss_sums)


def official_step() -> TrainStep:
    """The official run's settings, weights and optimizer, at step 0."""
    config = override(pretraining_config("small"), {
        "training.num_train_steps": 10, "training.train_batch_size": 5,
        "optimizer.warmup_steps": 2, "optimizer.learning_rate": 5e-4})
    model = build("electra")
    state = TrainState(model, Adam(config.optimizer, model.trainable_variables),
                       LossScale(enabled=False))
    return TrainStep(config=config, objective=GoldenObjective(config, CONTEXT), state=state,
                     compile_with_xla=False, schedule=Schedule.of(config.optimizer, 10))


def test_five_losses_and_the_weights_after_four_steps_equal_the_references():
    step, batch = official_step(), masked_batch()[0].original
    compiled = tf.function(lambda: step(batch)["loss"].sum)
    losses = [float(compiled()) for _ in range(4)]
    weights = named_arrays.of(step.state.model.trainable_variables)
    golden = golden_files.load("electra_after_4_steps")
    np.testing.assert_allclose([*losses, float(compiled())], LOSSES, rtol=1e-5)
    named_arrays.assert_close({name: weights[name] for name in golden}, golden, atol=2e-6)
