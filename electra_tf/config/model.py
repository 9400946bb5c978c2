"""Shapes of the two networks and what they share."""

import dataclasses
import enum

from electra_tf.config.checks import (
    require,
    require_at_most,
    require_positive,
    require_probability,
)

MOST_PARAMETERS = 20_000_000_000
"""Of a network, 60 times ELECTRA-Large's: 320 GB with gradients and the optimizer's slots."""
_MOST = {
    ("vocab_size",): 1 << 24,  # 30 times the largest published WordPiece vocabulary.
    ("embedding_size", "hidden_size", "max_position_embeddings"): 1 << 16,  # 64 times Large's.
    ("intermediate_size",): 1 << 18,  # Four times the widest hidden size.
    ("num_layers", "num_heads", "type_vocab_size"): 1000,  # Large has 24, 16 and 2.
    ("initializer_range",): 10,
}
"""What no encoder has more of."""


class Tying(enum.StrEnum):
    """Which weights the generator and the discriminator share (ELECTRA, section 3.2)."""

    NONE = "none"
    """Two separate networks; the generator's embeddings have its own hidden size."""
    TOKEN_EMBEDDINGS = "token_embeddings"
    """The word-embedding table alone."""
    ALL_EMBEDDINGS = "all_embeddings"
    """Word, position and segment embeddings and their layer norm. The published models."""
    DISENTANGLED = "disentangled"
    """The discriminator's words are the generator's, which its gradient doesn't reach, plus a
    difference of its own that begins at zero (He et al., 2023, DeBERTaV3, section 3.3)."""
    EVERYTHING = "everything"
    """One encoder plays both parts; each keeps its own output head."""


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
class ModelConfig:
    """The discriminator's shape, and the generator's as fractions of it.

    Defaults are ELECTRA-Small's (ELECTRA, table 6).
    """

    vocab_size: int = 30522
    """Entries of the WordPiece vocabulary; a run takes it from its records."""
    embedding_size: int = 128
    """E, of word, position and segment vectors."""
    hidden_size: int = 256
    """H, width of the encoder."""
    num_layers: int = 12
    """Transformer layers."""
    num_heads: int = 4
    """A, attention heads; must divide the hidden size."""
    intermediate_size: int = 1024
    """Width of the feed-forward layer."""
    max_position_embeddings: int = 512
    """Longest example that the model can read, in tokens."""
    type_vocab_size: int = 2
    """Segments that an example can have."""
    hidden_dropout: float = 0.1
    """Of embeddings, attention outputs and feed-forward outputs."""
    attention_dropout: float = 0.1
    """Of attention weights."""
    initializer_range: float = 0.02
    """Standard deviation of initial weights. A narrow encoder that is trained briefly does better
    with more."""
    generator_width: float = 0.25
    """Generator's hidden and feed-forward size as a fraction of the discriminator's."""
    generator_depth: float = 1.0
    """Generator's number of layers as a fraction of the discriminator's."""
    tying: Tying = Tying.ALL_EMBEDDINGS
    """What generator and discriminator share."""

    def __post_init__(self):
        require_positive(
            "model", self, "vocab_size", "embedding_size", "hidden_size", "num_layers",
            "num_heads", "intermediate_size", "max_position_embeddings", "type_vocab_size",
            "initializer_range")
        for names, most in _MOST.items():
            require_at_most("model", self, most, *names)
        require_probability("model", self, "hidden_dropout", "attention_dropout")
        for name in ("generator_width", "generator_depth"):
            value = getattr(self, name)
            require(0.0 < value <= 1.0, f"model.{name}", "in (0, 1]", value)
        require(self.hidden_size % self.num_heads == 0, "model.hidden_size",
                f"a multiple of model.num_heads={self.num_heads}", self.hidden_size)
        require(self.parameters <= MOST_PARAMETERS, "the model",
                f"one of at most {MOST_PARAMETERS:,} parameters", self.parameters)

    @property
    def parameters(self) -> int:
        """Weights of the discriminator's embeddings and layers, heads and biases left out."""
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
        """The generator's encoder: narrower heads' count, not narrower heads.

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
