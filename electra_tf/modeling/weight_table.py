"""Path and shape of every weight of the networks of pre-training.

Layers take their shapes from this table, converters their names, and the counts of parameters and
FLOPs both. The paths are the reference implementation's.
"""

import dataclasses
import math
from collections.abc import Iterable

from electra_tf.config.model import EncoderConfig, ModelConfig, Tying

Shapes = dict[str, tuple[int, ...]]
ENCODER, GENERATOR = "electra", "generator"
"""First parts of the paths of the encoder that is fine-tuned, and of the generator."""


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


def size(shapes: Shapes) -> int:
    """Returns the number of values of all weights together."""
    return sum(map(math.prod, shapes.values()))


def trained(networks: Iterable[NetworkSpec]) -> int:
    """Returns the number of trained values; shared weights count once."""
    shapes: Shapes = {}
    for network in networks:
        shapes |= network.weights if network.trained else {}
    return size(shapes)


def dense(path: str, inputs: int, outputs: int) -> Shapes:
    """Returns a dense layer's kernel and bias."""
    return {f"{path}/kernel": (inputs, outputs), f"{path}/bias": (outputs,)}


def norm(path: str, width: int) -> Shapes:
    """Returns a layer norm's gamma and beta."""
    return {f"{path}/gamma": (width,), f"{path}/beta": (width,)}


def embeddings(path: str, config: EncoderConfig) -> Shapes:
    """Returns the tables below an encoder, and their layer norm."""
    width = config.embedding_size
    return {f"{path}/word_embeddings": (config.vocab_size, width),
            f"{path}/token_type_embeddings": (config.type_vocab_size, width),
            f"{path}/position_embeddings": (config.max_position_embeddings, width),
            **norm(f"{path}/LayerNorm", width)}


def layer(path: str, config: EncoderConfig) -> Shapes:
    """Returns the weights of the Transformer layer at `path`."""
    hidden, wide = config.hidden_size, config.intermediate_size
    return {**dense(f"{path}/attention/self/query", hidden, hidden),
            **dense(f"{path}/attention/self/key", hidden, hidden),
            **dense(f"{path}/attention/self/value", hidden, hidden),
            **dense(f"{path}/attention/output/dense", hidden, hidden),
            **norm(f"{path}/attention/output/LayerNorm", hidden),
            **dense(f"{path}/intermediate/dense", hidden, wide),
            **dense(f"{path}/output/dense", wide, hidden),
            **norm(f"{path}/output/LayerNorm", hidden)}


def encoder(path: str, config: EncoderConfig) -> Shapes:
    """Returns the projection of the embeddings, unless E = H, and all layers."""
    shapes = ({} if config.embedding_size == config.hidden_size else dense(
        f"{path}/embeddings_project", config.embedding_size, config.hidden_size))
    for index in range(config.num_layers):
        shapes |= layer(f"{path}/encoder/layer_{index}", config)
    return shapes


def vocabulary_head(path: str, config: EncoderConfig) -> Shapes:
    """Returns the head that scores the vocabulary by the word table: dense, layer norm, bias."""
    return {**dense(f"{path}/dense", config.hidden_size, config.embedding_size),
            **norm(f"{path}/LayerNorm", config.embedding_size),
            f"{path}/output_bias": (config.vocab_size,)}


def binary_head(path: str, config: EncoderConfig) -> Shapes:
    """Returns the head that gives one logit per position."""
    return {**dense(f"{path}/dense", config.hidden_size, config.hidden_size),
            **dense(f"{path}/dense_1", config.hidden_size, 1)}


def full_encoder(config: EncoderConfig, path: str = ENCODER) -> Shapes:
    """Returns an encoder with embeddings of its own; by default the one that is fine-tuned."""
    return embeddings(f"{path}/embeddings", config) | encoder(path, config)


def generator_embeddings(model: ModelConfig) -> Shapes:
    """Returns the generator's embeddings (section 3.2); shared ones have the encoder's path."""
    if model.tying in (Tying.ALL_EMBEDDINGS, Tying.EVERYTHING):
        return embeddings(f"{ENCODER}/embeddings", model.generator)
    shapes = embeddings(f"{GENERATOR}/embeddings", model.generator)
    if model.tying is Tying.TOKEN_EMBEDDINGS:
        words = "/embeddings/word_embeddings"
        shapes[ENCODER + words] = shapes.pop(GENERATOR + words)
    return shapes


def discriminator(config: EncoderConfig) -> NetworkSpec:
    """Returns the network that detects replaced tokens."""
    return NetworkSpec(
        name="discriminator", encoder=config, body=full_encoder(config), heads=(Head(
            weights=binary_head("discriminator_predictions", config), scores_vocabulary=False),))


def generator(model: ModelConfig) -> NetworkSpec:
    """Returns ELECTRA's masked language model, including the weights that it shares."""
    config = model.generator
    path = ENCODER if model.tying is Tying.EVERYTHING else GENERATOR
    return language_model("generator", config, generator_embeddings(model) | encoder(path, config))


def language_model(name: str, config: EncoderConfig, body: Shapes, *,
                   head: str = "generator_predictions",
                   fraction: float | None = None) -> NetworkSpec:
    """Returns a network that predicts tokens, with the weights `body` below its head."""
    return NetworkSpec(name=name, encoder=config, body=body, heads=(Head(
        weights=vocabulary_head(head, config), scores_vocabulary=True, fraction=fraction),))


def own_generator(model: ModelConfig) -> Shapes:
    """Returns the generator's weights without those that it shares with the discriminator."""
    shared = discriminator(model.discriminator).weights
    return {path: shape for path, shape in generator(model).weights.items() if path not in shared}
