"""The networks of pre-training objectives: their weights, and how often they run."""

import dataclasses
from collections.abc import Iterable

from electra_tf.config.model import EncoderConfig, ModelConfig, Tying
from electra_tf.modeling import parameter_shapes
from electra_tf.modeling.parameter_shapes import ENCODER, GENERATOR, Shapes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Head:
    """The output layers above an encoder."""

    weights: Shapes
    scores_vocabulary: bool  # True if its last matmul is with the word table.
    fraction: float | None = 1.0
    """Fraction of positions at which it runs; None for the masked ones."""

    def positions(self, masked: float) -> float:
        """Returns the fraction of positions at which it runs, given the masked fraction."""
        return masked if self.fraction is None else self.fraction


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkSpec:
    """A network of an objective: its weights and how often it runs."""

    name: str
    encoder: EncoderConfig  # Configuration of every tower.
    body: Shapes  # The weights below the heads.
    heads: tuple[Head, ...]
    towers: int = 1  # Encoders side by side.
    trained: bool = True  # False if it only runs forward.
    share: float = 1.0  # Fraction of the run's steps in which it runs.

    @property
    def weights(self) -> Shapes:
        """All weights, including those shared with another network."""
        shapes = dict(self.body)
        for head in self.heads:
            shapes |= head.weights
        return shapes


def trained(networks: Iterable[NetworkSpec]) -> int:
    """Returns the number of trained values; shared weights count once."""
    shapes: Shapes = {}
    for network in networks:
        shapes |= network.weights if network.trained else {}
    return parameter_shapes.size(shapes)


def discriminator(config: EncoderConfig) -> NetworkSpec:
    """Returns the network that detects replaced tokens."""
    head = Head(weights=parameter_shapes.binary_head("discriminator_predictions", config),
                scores_vocabulary=False)
    return NetworkSpec(name="discriminator", encoder=config, heads=(head,),
                       body=parameter_shapes.full_encoder(config))


def generator(model: ModelConfig) -> NetworkSpec:
    """Returns ELECTRA's masked language model, including the weights that it shares."""
    config = model.generator
    path = ENCODER if model.tying is Tying.EVERYTHING else GENERATOR
    return language_model("generator", config, parameter_shapes.generator_embeddings(model)
                          | parameter_shapes.encoder(path, config))


def language_model(name: str, config: EncoderConfig, body: Shapes, *,
                   head: str = "generator_predictions",
                   fraction: float | None = None) -> NetworkSpec:
    """Returns a network that predicts tokens, with the weights `body` below its head."""
    return NetworkSpec(name=name, encoder=config, body=body, heads=(Head(
        weights=parameter_shapes.vocabulary_head(head, config), scores_vocabulary=True,
        fraction=fraction),))


def own_generator(model: ModelConfig) -> Shapes:
    """Returns the generator's weights without those that it shares with the discriminator."""
    shared = discriminator(model.discriminator).weights
    return {path: shape for path, shape in generator(model).weights.items() if path not in shared}
