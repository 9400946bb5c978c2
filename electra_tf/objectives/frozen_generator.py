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
from electra_tf.modeling import parameter_shapes, specs
from electra_tf.modeling.corruption import distribution
from electra_tf.modeling.electra import (
    BLOCK,
    IMPOSSIBLE_LOGIT,
    Discriminator,
    Generator,
    PretrainingModel,
)
from electra_tf.modeling.encoder import create_encoder
from electra_tf.modeling.layers import LayerOptions
from electra_tf.modeling.parameter_shapes import ENCODER, GENERATOR
from electra_tf.modeling.rng import Rng
from electra_tf.objectives.electra import ElectraObjective
from electra_tf.objectives.objective import LossOutput, WeightedMean, count
from electra_tf.objectives.pretraining import (
    Arrays,
    MaskedBatch,
    ObjectiveContext,
    generator_fields,
)

FROZEN = "frozen_generator"  # First part of the paths of a frozen generator.


class DiscriminatorModel(PretrainingModel):
    """A discriminator alone, for replacements that no network of the model draws."""

    def _create(self, config: ModelConfig, options: LayerOptions) -> None:
        self.discriminator = Discriminator(create_encoder(config.discriminator, options), options)


class FrozenGeneratorModel(DiscriminatorModel):
    """A discriminator, and a generator of any size that isn't trained and has no dropout."""

    def __init__(self, config: ModelConfig, generator: EncoderConfig, *, seed: int,
                 policy: str = "float32", recompute: bool = False):
        """Creates every weight; `generator` is its encoder's shape; others as in the base class."""
        super().__init__(config, seed=seed, policy=policy, recompute=recompute)
        options = LayerOptions(seed=seed, policy=policy)
        generator = dataclasses.replace(generator, hidden_dropout=0.0, attention_dropout=0.0)
        self.generator = Generator(create_encoder(generator, options, FROZEN), options, FROZEN)
        self.generator.trainable = False


class FixedGeneratorObjective(ElectraObjective):
    """Replaced token detection, min L_Disc(discriminator), with draws of no network."""

    model_class = DiscriminatorModel
    losses = ("discriminator_loss",)

    def __init__(self, config: Any, context: ObjectiveContext):
        """Reads the training records if replacements are drawn by frequency."""
        super().__init__(config, context)
        self._logits = replacement_logits(config.objective.replacements, context)

    def compute(self, model: DiscriminatorModel, inputs: MaskedBatch, rng: Rng,
                *, training: bool) -> LossOutput:
        """Draws tokens and runs the discriminator on them."""
        # The same distribution at each of the B * N slots.
        masked = inputs.masked
        rows = masked.positions.shape.num_elements()
        softmax = distribution(tf.tile(self._logits[tf.newaxis], [rows, 1]))
        sampled = self.sample(softmax, masked, rng, training=training)
        output = self.discriminate(model, inputs, sampled, rng, training=training)
        return output._replace(per_example=output.per_example | generator_fields(masked, sampled))

    def scores(self, per_example: Arrays, means: Mapping[str, float]) -> dict[str, float]:
        """Returns the accuracy of the draws, and the discriminator's scores."""
        scores = super().scores(per_example, means)
        del scores["generator_accuracy"]  # A draw has no most likely token.
        return scores

    def network_specs(self) -> Sequence[specs.NetworkSpec]:
        """Returns the discriminator."""
        return (specs.discriminator(self.config.model.discriminator),)


class FrozenGeneratorObjective(ElectraObjective):
    """Replaced token detection, min L_Disc(discriminator), with another run's generator."""

    losses = ("discriminator_loss",)

    def build_model(self, config: ModelConfig, *, seed: int, policy: str,
                    recompute: bool = False) -> FrozenGeneratorModel:
        """Creates the discriminator, and the other run's generator with its weights."""
        model = FrozenGeneratorModel(config, self.context.generator.encoder, seed=seed,
                                     policy=policy, recompute=recompute)
        # "electra/..." becomes "frozen_generator/...", and "generator_predictions/..."
        # "frozen_generator_predictions/...".
        values = {FROZEN + name.removeprefix(ENCODER).removeprefix(GENERATOR): value
                  for name, value in self.context.generator.weights.items()}
        for variable in model.generator.variables:
            variable.assign(values[variable.name.split(":")[0]])
        return model

    def compute(self, model: FrozenGeneratorModel, inputs: MaskedBatch, rng: Rng,
                *, training: bool) -> LossOutput:
        """Samples from the generator and runs the discriminator, whose loss alone is minimized."""
        # L_MLM of the generator is a metric, which the total does not contain.
        output = super().compute(model, inputs, rng, training=training)
        losses = dict(output.loss_sums)
        loss = WeightedMean(
            tf.stop_gradient(losses.pop("generator_loss")), count(inputs.masked.filled))
        return output._replace(
            loss_sums=losses, metrics=dict(output.metrics) | {"generator_loss": loss})

    def scores(self, per_example: Arrays, means: Mapping[str, float]) -> dict[str, float]:
        """Returns ELECTRA's scores, and the generator's loss."""
        return {"generator_loss": means["generator_loss"]} | super().scores(per_example, means)

    def network_specs(self) -> Sequence[specs.NetworkSpec]:
        """Returns the discriminator and the generator, which only runs forward."""
        if self.context.generator is None:
            return ()
        return self.networks_with(self.context.generator.encoder)

    def networks_with(self, generator: EncoderConfig) -> Sequence[specs.NetworkSpec]:
        """Returns the discriminator and a frozen generator of a shape."""
        frozen = specs.language_model(
            "frozen generator", generator, parameter_shapes.full_encoder(generator, FROZEN),
            head=f"{FROZEN}_predictions")
        return (specs.discriminator(self.config.model.discriminator),
                dataclasses.replace(frozen, trained=False))


class TwoStageObjective(FrozenGeneratorObjective):
    """The second stage, min L_Disc(discriminator); the first is objective.name=mlm."""

    def network_specs(self) -> Sequence[specs.NetworkSpec]:
        """Returns the networks of the second stage, or of both stages without a generator yet."""
        if self.context.generator is not None:
            return super().network_specs()
        # Stage 1 runs in `generator_part` of the steps, the networks of stage 2 in the others.
        encoder = self.config.model.discriminator
        stage_1 = specs.language_model("generator", encoder, parameter_shapes.full_encoder(encoder))
        part = self.config.objective.generator_part
        return (*(dataclasses.replace(network, share=1.0 - part)
                  for network in self.networks_with(encoder)),
                dataclasses.replace(stage_1, share=part))


def replacement_logits(replacements: str, context: ObjectiveContext) -> np.ndarray:
    """Returns the logits of every replacement, float32 [V'], for "uniform" or "unigram".

    V' is V rounded up to whole blocks. As in the reference implementation, a uniform draw may be a
    special token.
    """
    # Logarithms of relative frequencies: equal ones, or those of the training records, where a
    # token that does not occur is never drawn.
    size = context.vocab.size
    if replacements == "uniform":
        logits = np.zeros(size, np.float32)
    else:
        counts = context.token_counts()
        with np.errstate(divide="ignore"):
            logits = np.maximum(np.log(counts / counts.sum()), IMPOSSIBLE_LOGIT)
    return np.pad(logits.astype(np.float32), [0, -size % BLOCK], constant_values=IMPOSSIBLE_LOGIT)
