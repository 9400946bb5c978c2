"""Shapes of the two networks and what they share."""

import dataclasses
import enum
from typing import Annotated

from annotated_types import Interval

from electra_tf.platform.settings import Probability, Section, require

MOST_PARAMETERS = 20_000_000_000
"""Weights of a network, 60 times ELECTRA-Large's: 320 GB with gradients and optimizer slots."""
Width = Annotated[int, Interval(gt=0, le=1 << 16)]
"""64 times ELECTRA-Large's width."""
Few = Annotated[int, Interval(gt=0, le=1000)]
"""ELECTRA-Large has 24 layers and 16 heads."""
Share = Annotated[float, Interval(gt=0, le=1)]


class Tying(enum.StrEnum):
    """Which weights the generator and the discriminator share (ELECTRA, section 3.2)."""

    NONE = "none"
    """Two separate networks; the generator's embeddings have its own hidden size."""
    TOKEN_EMBEDDINGS = "token_embeddings"
    """The word-embedding table alone."""
    ALL_EMBEDDINGS = "all_embeddings"
    """Word, position and segment embeddings and their layer norm. The published models."""
    EVERYTHING = "everything"
    """One encoder with two output heads."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """Shape of one Transformer encoder."""

    vocab_size: int
    embedding_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int
    hidden_dropout: float
    attention_dropout: float
    initializer_range: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelConfig(Section, prefix="model."):
    """The discriminator's shape, and the generator's as fractions of it.

    Defaults are ELECTRA-Small's (ELECTRA, table 6).
    """

    vocab_size: Annotated[int, Interval(gt=0, le=1 << 24)] = 30522
    """Entries of the WordPiece vocabulary; a run takes it from its records."""
    embedding_size: Width = 128
    """E, size of the word, position and segment vectors."""
    hidden_size: Width = 256
    """H, width of the encoder."""
    num_layers: Few = 12
    """Transformer layers."""
    num_heads: Few = 4
    """A, attention heads; must divide the hidden size."""
    intermediate_size: Annotated[int, Interval(gt=0, le=1 << 18)] = 1024
    """Width of the feed-forward layer."""
    max_position_embeddings: Width = 512
    """Longest example that the model can read, in tokens."""
    type_vocab_size: Few = 2
    """Segments that an example can have."""
    hidden_dropout: Probability = 0.1
    """Dropout rate of embeddings, attention outputs and feed-forward outputs."""
    attention_dropout: Probability = 0.1
    """Dropout rate of attention weights."""
    initializer_range: Annotated[float, Interval(gt=0, le=10)] = 0.02
    """Standard deviation of initial weights. Short runs of narrow encoders need a larger one."""
    generator_width: Share = 0.25
    """Generator's hidden and feed-forward size as a fraction of the discriminator's."""
    generator_depth: Share = 1.0
    """Generator's number of layers as a fraction of the discriminator's."""
    tying: Tying = Tying.ALL_EMBEDDINGS
    """What generator and discriminator share."""

    def __post_init__(self):
        super().__post_init__()
        require(self.hidden_size % self.num_heads == 0, "model.hidden_size",
                f"a multiple of model.num_heads={self.num_heads}", self.hidden_size)
        require(self.parameters <= MOST_PARAMETERS, "the model",
                f"one of at most {MOST_PARAMETERS:,} parameters", self.parameters)

    @property
    def parameters(self) -> int:
        """Weights of the discriminator's embeddings and layers, without heads and biases."""
        tables = self.vocab_size + self.max_position_embeddings + self.type_vocab_size
        layer = self.hidden_size * (4 * self.hidden_size + 2 * self.intermediate_size)
        return (tables * self.embedding_size + self.embedding_size * self.hidden_size
                + self.num_layers * layer)

    @property
    def discriminator(self) -> EncoderConfig:
        """The discriminator's encoder."""
        shared = {field.name: getattr(self, field.name)
                  for field in dataclasses.fields(EncoderConfig)}
        return EncoderConfig(**shared)

    @property
    def generator(self) -> EncoderConfig:
        """The generator's encoder: fewer heads, not narrower ones.

        The feed-forward layer is four times the hidden size and there is one head per 64
        hidden units, as in the reference implementation.
        """
        if self.tying is Tying.EVERYTHING:
            return self.discriminator
        hidden_size = round(self.hidden_size * self.generator_width)
        num_heads = max(1, hidden_size // 64)
        require(hidden_size > 0 and hidden_size % num_heads == 0, "model.generator_width",
                f"a fraction that makes the generator's hidden size a multiple of its {num_heads} "
                "heads", self.generator_width)
        return dataclasses.replace(
            self.discriminator,
            hidden_size=hidden_size,
            num_heads=num_heads,
            num_layers=max(1, round(self.num_layers * self.generator_depth)),
            intermediate_size=4 * hidden_size,
            embedding_size=hidden_size if self.tying is Tying.NONE else self.embedding_size,
        )
