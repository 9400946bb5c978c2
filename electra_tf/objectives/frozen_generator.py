"""Replaced token detection whose replacements come from a generator that isn't trained.

The fixed generator draws all vocabulary entries equally often, or as often as they occur in the
records. The frozen generator was trained by another run; only its forward pass is computed.

Two-stage training (ELECTRA, section 3.2) first trains a masked language model of the
discriminator's size for `objective.generator_part` of the steps. The second stage initializes the
discriminator with its weights, freezes it as the generator and trains the discriminator alone. Each
stage has a learning-rate schedule of its own. The paper compares this with joint training.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.config.model import EncoderConfig, ModelConfig
from electra_tf.core.errors import UserError
from electra_tf.modeling import network_specs, weight_table
from electra_tf.modeling.corruption import distribution
from electra_tf.modeling.electra import (
    BLOCK,
    IMPOSSIBLE_LOGIT,
    Discriminator,
    Generator,
    Networks,
)
from electra_tf.modeling.encoder import create_encoder
from electra_tf.modeling.layers import Build
from electra_tf.modeling.randomness import Randomness
from electra_tf.objectives.electra import ElectraObjective, detection_scores
from electra_tf.objectives.objective import Outcome, Ratio, count
from electra_tf.objectives.pretraining import (
    Arrays,
    MaskedBatch,
    ObjectiveContext,
    generator_details,
    run_generator,
)

FROZEN = "frozen_generator"  # First part of the paths of a frozen generator.


class DiscriminatorModel(Networks):
    """A discriminator alone, for replacements that no network of the model draws."""

    def _create(self, config: ModelConfig, build: Build) -> None:
        self.discriminator = Discriminator(create_encoder(config.discriminator, build), build)


class FrozenGeneratorModel(DiscriminatorModel):
    """A discriminator, and a generator of any size that isn't trained."""

    def __init__(self, config: ModelConfig, generator: EncoderConfig, *, seed: int,
                 policy: str = "float32", recompute: bool = False):
        """Creates every weight; `generator` is its encoder's shape, the rest as for `Networks`."""
        super().__init__(config, seed=seed, policy=policy, recompute=recompute)
        build = Build(seed=seed, policy=policy)
        self.generator = Generator(create_encoder(generator, build, FROZEN), build, FROZEN)
        self.generator.trainable = False


class FixedGeneratorObjective(ElectraObjective):
    """Replaced token detection, min L_Disc(discriminator), with draws of no network."""

    networks_class = DiscriminatorModel
    losses = ("discriminator_loss",)

    def __init__(self, config: Any, context: ObjectiveContext):
        """Reads the training records if replacements are drawn by frequency."""
        super().__init__(config, context)
        self._logits = replacement_logits(config.objective.replacements, context)

    def compute(self, model: DiscriminatorModel, inputs: MaskedBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Draws tokens and runs the discriminator on them."""
        masked = inputs.masked
        rows = masked.positions.shape.num_elements()
        softmax = distribution(tf.tile(self._logits[tf.newaxis], [rows, 1]))
        sampled = self.sample(softmax, masked, randomness)
        outcome = self.discriminate(model, inputs, sampled, randomness, training=training)
        return outcome._replace(details=outcome.details | generator_details(masked, sampled))

    def scores(self, details: Arrays, means: Mapping[str, float]) -> dict[str, float]:
        """Returns the accuracy of the draws, and the discriminator's scores."""
        valid = details["valid"]
        return {"generator_sampled_accuracy": means["generator_sampled_accuracy"],
                **detection_scores(details["replaced"][valid], details["logits"][valid])}

    def networks(self) -> Sequence[network_specs.NetworkSpec]:
        """Returns the discriminator."""
        return (network_specs.discriminator(self.config.model.discriminator),)


class FrozenGeneratorObjective(ElectraObjective):
    """Replaced token detection, min L_Disc(discriminator), with another run's generator."""

    losses = ("discriminator_loss",)

    def build_model(self, config: ModelConfig, *, seed: int, policy: str,
                    recompute: bool = False) -> FrozenGeneratorModel:
        """Creates the discriminator, and the generator with its weights; `UserError` without it."""
        if self.context.generator is None:
            raise UserError(f"objective.name={self.config.objective.name} has no generator yet: "
                            "train one first, and give its weights.")
        model = FrozenGeneratorModel(config, self.context.generator.encoder, seed=seed,
                                     policy=policy, recompute=recompute)
        values = {FROZEN + name.removeprefix("electra").removeprefix("generator"): value
                  for name, value in self.context.generator.weights.items()}
        for variable in model.generator.variables:
            variable.assign(values[variable.name.split(":")[0]])
        return model

    def compute(self, model: FrozenGeneratorModel, inputs: MaskedBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Samples from the generator, without dropout, and runs the discriminator."""
        masked = inputs.masked
        generated = run_generator(model.generator, inputs, None, training=training)
        sampled = self.sample(generated.softmax, masked, randomness)
        outcome = self.discriminate(model, inputs, sampled, randomness, training=training)
        loss = Ratio(tf.stop_gradient(tf.reduce_sum(generated.losses)), count(masked.valid))
        return Outcome(outcome.loss_sums, dict(outcome.measures) | {"generator_loss": loss},
                       outcome.details | generator_details(masked, generated.best_ids))

    def scores(self, details: Arrays, means: Mapping[str, float]) -> dict[str, float]:
        """Returns ELECTRA's scores, and the generator's loss."""
        return {"generator_loss": means["generator_loss"]} | super().scores(details, means)

    def networks(self) -> Sequence[network_specs.NetworkSpec]:
        """Returns the discriminator and the generator, which only runs forward."""
        if self.context.generator is None:
            return ()
        return self.networks_with(self.context.generator.encoder)

    def networks_with(self, generator: EncoderConfig) -> Sequence[network_specs.NetworkSpec]:
        """Returns the discriminator and a frozen generator of a shape."""
        frozen = network_specs.language_model(
            "frozen generator", generator, weight_table.full_encoder(generator, FROZEN),
            head=f"{FROZEN}_predictions")
        return (network_specs.discriminator(self.config.model.discriminator),
                dataclasses.replace(frozen, trained=False))


class TwoStageObjective(FrozenGeneratorObjective):
    """The second stage, min L_Disc(discriminator); the first is `generator_objective`."""

    generator_objective = "mlm"

    def networks(self) -> Sequence[network_specs.NetworkSpec]:
        """Returns the networks of the second stage, or of both stages without a generator yet."""
        if self.context.generator is not None:
            return super().networks()
        encoder = self.config.model.discriminator
        first = network_specs.language_model(
            "generator", encoder, weight_table.full_encoder(encoder))
        part = self.config.objective.generator_part
        return (*(dataclasses.replace(network, share=1.0 - part)
                  for network in self.networks_with(encoder)),
                dataclasses.replace(first, share=part))


def replacement_logits(replacements: str, context: ObjectiveContext) -> np.ndarray:
    """Returns the logits of every replacement, float32 [V'], for "uniform" or "unigram".

    V' is V rounded up to whole blocks. As in the reference implementation, a uniform draw may be a
    special token.
    """
    size = context.kinds.size
    if replacements == "uniform":
        logits = np.zeros(size, np.float32)
    else:
        counts = context.token_counts()
        with np.errstate(divide="ignore"):
            logits = np.maximum(np.log(counts / counts.sum()), IMPOSSIBLE_LOGIT)
    return np.pad(logits.astype(np.float32), [0, -size % BLOCK],
                  constant_values=IMPOSSIBLE_LOGIT)
