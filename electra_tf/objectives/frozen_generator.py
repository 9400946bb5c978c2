"""Replaced token detection with a generator that was trained before and stays as it is.

Its forward pass is all that it costs. Fast-ELECTRA (Dong et al., 2024) trains so, with samples that
are easy at first and become harder: `sampling.initial_temperature=2`.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig, ModelConfig
from electra_tf.modeling import weight_table
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.variants import FrozenGeneratorModel
from electra_tf.modeling.weight_table import FROZEN, Network
from electra_tf.objectives.electra import ElectraObjective
from electra_tf.objectives.masked_tokens import MaskedBatch, count, filled_in, run_generator
from electra_tf.objectives.objective import (
    Arrays,
    GivenGenerator,
    Outcome,
    Ratio,
    count_parameters,
)
from electra_tf.platform.errors import UserError


class FrozenGeneratorObjective(ElectraObjective):
    """min L_Disc(discriminator)."""

    def build_model(self, config: ModelConfig, *, seed: int, policy: str,
                    recompute: bool = False) -> FrozenGeneratorModel:
        """Creates the discriminator, and the generator with its weights.

        Raises:
            UserError: the run that was named has no generator, or one of another shape.
        """
        if self.given.generator is None:
            raise UserError(f"objective.name={self.config.objective.name} has no generator yet.")
        model = FrozenGeneratorModel(config, generator_shape(self.given.generator), seed=seed,
                                     policy=policy, recompute=recompute)
        assign_generator(model.generator, self.given.generator)
        return model

    def compute(self, model: FrozenGeneratorModel, inputs: MaskedBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Samples from the generator, without dropout, and runs the discriminator."""
        predictions = inputs.masked.predictions
        generated = run_generator(model.generator, inputs, None, training=training)
        sampled = self.replacement.sample(
            generated.softmax, predictions, randomness, training=training)
        judged = self.discriminate(model, inputs, sampled, randomness, training=training)
        nats = Ratio(tf.stop_gradient(tf.reduce_sum(generated.losses)), count(predictions.valid))
        return Outcome(judged.loss_sums, dict(judged.measures) | {"generator_loss": nats},
                       judged.details | filled_in(predictions, generated.best_ids))

    @property
    def coefficients(self) -> Mapping[str, float]:
        """One loss, its weight as configured."""
        return {"discriminator_loss": self.config.objective.discriminator_loss_weight}

    def scores(self, details: Arrays, means: Mapping[str, float]) -> dict[str, float]:
        """Returns ELECTRA's scores, and the generator's loss."""
        return {"generator_loss": means["generator_loss"]} | super().scores(details, means)

    def networks(self) -> Sequence[Network]:
        """Returns the discriminator and the generator, which only runs forward."""
        if self.given.generator is None:
            return ()
        return self.networks_with(generator_shape(self.given.generator))

    def networks_with(self, generator: EncoderConfig) -> Sequence[Network]:
        """Returns the networks with a generator of some shape."""
        frozen = weight_table.language_model(
            "frozen generator", generator, weight_table.whole_encoder(generator, FROZEN),
            head=f"{FROZEN}_predictions")
        return (weight_table.discriminator(self.config.model.discriminator),
                dataclasses.replace(frozen, trained=False))

    def describe(self, model: FrozenGeneratorModel) -> str:
        """Returns whose generator it is."""
        values = sum(weight.shape.num_elements() for weight in model.generator.weights)
        return (f"discriminator {count_parameters(model.discriminator):,}; generator {values:,}, "
                f"frozen, of {self.given.generator.source}")


def generator_shape(given: GivenGenerator) -> EncoderConfig:
    """Returns the shape of a run's generator: a network of its own, or the encoder itself."""
    own = any(name.startswith("generator/encoder/") for name in given.weights)
    return given.model.generator if own else given.model.discriminator


def assign_generator(generator: tf_keras.layers.Layer, given: GivenGenerator) -> None:
    """Sets all weights of a frozen generator from another run's.

    What that generator shared with its discriminator stands under the discriminator's name.

    Raises:
        UserError: there is no output layer of a generator, or another shape.
    """
    values = {variable.name: _value(variable.name.split(":")[0].removeprefix(FROZEN), given)
              for variable in generator.variables}
    missing = sorted(name for name, value in values.items() if value is None)
    if missing:
        raise UserError(f"{given.source} has no generator to take: "
                        f"{missing[0].split(':')[0].removeprefix(FROZEN + '_')} is missing. Name a "
                        "run of objective.name=electra or mlm.")
    for variable in generator.variables:
        value = values[variable.name]
        if value.shape != tuple(variable.shape):
            raise UserError(f"{given.source} has a generator of another shape: {variable.name} is "
                            f"{value.shape} there, {tuple(variable.shape)} here.")
        variable.assign(value)


def _value(name: str, given: GivenGenerator) -> np.ndarray | None:
    for prefix in ("generator", "electra"):
        if prefix + name in given.weights:
            return given.weights[prefix + name]
    return None
