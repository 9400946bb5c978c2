"""The two networks: shapes, what they share, and initial weights."""

import dataclasses
import enum
from typing import Annotated, Any, Literal

from annotated_types import Interval

from electra_tf.core.settings import Probability, Section, require, setting, settings_of

MAX_PARAMETERS = 20_000_000_000  # 60 times ELECTRA-Large's, 320 GB with optimizer slots.
RANDOM, COOCCURRENCE = "random", "cooccurrence"
"""Values of `initialization.word_vectors` that are no path."""
Width = Annotated[int, Interval(gt=0, le=1 << 16)]
Few = Annotated[int, Interval(gt=0, le=1000)]
Share = Annotated[float, Interval(gt=0, le=1)]
Gain = Annotated[float, Interval(gt=0, le=1000)]
# Values are the names in lower case.
Tying = enum.StrEnum("Tying", "NONE TOKEN_EMBEDDINGS ALL_EMBEDDINGS EVERYTHING")
Architecture = enum.StrEnum("Architecture", "ELECTRA MODERNBERT")
Positions = enum.StrEnum("Positions", "LEARNED ROTARY")


def heads_of_64_units(hidden_size: int) -> int:
    """Returns a generator's number of heads by the rule of ELECTRA's authors."""
    return max(1, hidden_size // 64)


class EncoderConfig(Section, prefix="model."):
    """Shape of one Transformer encoder (defaults: the discriminator of ELECTRA-Small)."""

    architecture: Architecture = setting(Architecture.ELECTRA, """Layers of the encoders: electra is
        the paper's, BERT's; modernbert is ModernBERT's (Warner et al., 2024): layer norm before
        attention, GeGLU, local attention, no biases, model.positions=rotary and no segments.""")
    vocab_size: Annotated[int, Interval(gt=0, le=1 << 24)] = setting(
        30522, """Tokens of the WordPiece vocabulary. A run takes the size of its records'
        vocabulary.""")
    embedding_size: Width = setting(128, "Size of the word, position and segment embeddings, E.")
    hidden_size: Width = setting(256, "Size of the encoder's hidden vectors, H.")
    num_layers: Few = setting(12, "Number of Transformer layers.")
    num_heads: Few = setting(4, "Number of attention heads, A. It must divide the hidden size.")
    intermediate_size: Annotated[int, Interval(gt=0, le=1 << 18)] = setting(
        1024, "Width of the feed-forward layer.")
    max_position_embeddings: Width = setting(512, "Maximum tokens of an example.")
    positions: Positions = setting(Positions.LEARNED, """Encoding of positions: learned is the
        paper's table of vectors; with rotary, attention rotates queries and keys by angles (Su et
        al., 2021), as in RoFormer.""")
    rotary_base: Annotated[float, Interval(gt=1, le=1e9)] = setting(10_000.0, """Base of rotary
        angles: pair j of a head's D dimensions turns by base^(-2j / D) radians from one token to
        the next. ModernBERT's is 160,000, in layers with global attention.""")
    local_rotary_base: Annotated[float, Interval(gt=1, le=1e9)] = setting(10_000.0, """The same base
        in modernbert's layers with local attention.""")
    attention_window: Annotated[int, Interval(gt=0, le=1 << 16)] = setting(128, """Tokens of
        modernbert's local attention: a token attends to half of this number on each side, and to
        itself.""")
    global_every: Few = setting(3, """Distance of modernbert's layers with global attention: those
        with indices 0, n, 2 n and so on. 1 makes all layers global.""")
    type_vocab_size: Few = setting(2, """Number of segments (token types) that the embeddings
        distinguish.""")
    hidden_dropout: Probability = setting(0.1, """Dropout rate of embeddings, attention outputs and
        feed-forward outputs.""")
    attention_dropout: Probability = setting(0.1, "Dropout rate of attention weights.")
    initializer_range: Annotated[float, Interval(gt=0, le=10)] = setting(
        0.02, """Standard deviation of initial weights. Short runs of narrow encoders need a larger
        value.""")

    def __post_init__(self):
        super().__post_init__()
        require(not self.is_modern or self.positions == Positions.ROTARY, "model.positions",
                f"rotary for model.architecture={self.architecture}", self.positions)
        require(self.attention_window % 2 == 0, "model.attention_window", "even",
                self.attention_window)
        require(self.hidden_size % self.num_heads == 0, "model.hidden_size",
                f"a multiple of model.num_heads={self.num_heads}", self.hidden_size)
        head_size = self.hidden_size // self.num_heads
        require(self.positions == Positions.LEARNED or head_size % 2 == 0,
                "model.hidden_size / model.num_heads", "even for model.positions=rotary", head_size)
        require(self.parameters <= MAX_PARAMETERS, "the model",
                f"one of at most {MAX_PARAMETERS:,} parameters", self.parameters)

    @property
    def is_modern(self) -> bool:
        """True for ModernBERT's layers."""
        return self.architecture == Architecture.MODERNBERT

    @property
    def layer_norm_epsilon(self) -> float:
        """The number that layer norms add to variances."""
        return 1e-5 if self.is_modern else 1e-12

    @property
    def output_initializer_range(self) -> float:
        """Deviation of initial weights before residual sums and vocabulary scores."""
        depth = 2 * self.num_layers if self.is_modern else 1
        return self.initializer_range * depth**-0.5

    def is_local(self, layer: int) -> bool:
        """Returns True if a layer, by its index, has local attention."""
        return self.is_modern and layer % self.global_every > 0

    def attended_tokens(self, length: int) -> int:
        """Returns how many tokens one of `length` attends to in all layers together."""
        return sum(min(length, self.attention_window + 1) if self.is_local(layer) else length
                   for layer in range(self.num_layers))

    @property
    def parameters(self) -> int:
        """Number of weights in embeddings and layers, without heads and biases."""
        tables = self.vocab_size + (0 if self.is_modern else self.type_vocab_size)
        if self.positions == Positions.LEARNED:
            tables += self.max_position_embeddings
        wide = (3 if self.is_modern else 2) * self.intermediate_size  # GeGLU has a gate, too.
        layer = self.hidden_size * (4 * self.hidden_size + wide)
        return (tables * self.embedding_size + self.embedding_size * self.hidden_size
                + self.num_layers * layer)


class ModelConfig(EncoderConfig):
    """The discriminator's shape, and the generator's as fractions of it (defaults: Small)."""

    generator_width: Share = setting(0.25, """Generator's hidden and feed-forward size as a fraction
        of the discriminator's.""")
    generator_depth: Share = setting(1.0, """Generator's number of layers as a fraction of the
        discriminator's.""")
    tying: Tying = setting(Tying.ALL_EMBEDDINGS, """Weights that generator and discriminator share
        (ELECTRA, section 3.2): none; token_embeddings; all_embeddings, those of positions and
        segments and their layer norm too, as in the published models; or everything, one encoder
        with two output heads.""")

    @property
    def discriminator(self) -> EncoderConfig:
        """The discriminator's encoder."""
        return EncoderConfig(**{field.name: getattr(self, field.name)
                                for field in dataclasses.fields(EncoderConfig)})

    @property
    def generator(self) -> EncoderConfig:
        """The generator's encoder: 64 units a head, feed-forward layers four times as wide.

        A generator as wide as the discriminator has its number of heads. With GeGLU, feed-forward
        layers are as wide, relative to the hidden size, as the discriminator's.
        """
        if self.tying is Tying.EVERYTHING:
            return self.discriminator
        hidden_size = round(self.hidden_size * self.generator_width)
        num_heads = (self.num_heads if hidden_size == self.hidden_size
                     else heads_of_64_units(hidden_size))
        require(hidden_size > 0 and hidden_size % num_heads == 0, "model.generator_width",
                f"a fraction that makes the generator's hidden size a multiple of its {num_heads} "
                "heads", self.generator_width)
        return dataclasses.replace(
            self.discriminator, hidden_size=hidden_size, num_heads=num_heads,
            num_layers=max(1, round(self.num_layers * self.generator_depth)),
            intermediate_size=(round(self.intermediate_size * hidden_size / self.hidden_size)
                               if self.is_modern else 4 * hidden_size),
            embedding_size=hidden_size if self.tying is Tying.NONE else self.embedding_size)

    @property
    def duplicate_token_heads_fit(self) -> bool:
        """True if the discriminator is wide enough for duplicate-token heads."""
        return (8 * self.type_vocab_size <= self.embedding_size <= self.hidden_size
                and self.hidden_size >= 8 * self.num_heads)


class InitializationConfig(Section, prefix="initialization."):
    """Initial values beyond `model.initializer_range`.

    All but `word_vectors` belong to the scheme `adjacent`.
    """

    scheme: Literal["normal", "adjacent"] = setting("normal", """Initialization of attention. normal
        is the paper's. adjacent lets heads of the first layer attend to adjacent tokens, as they do
        in trained networks (after Trockman and Kolter, 2023).""")
    word_vectors: str = setting(RANDOM, """Initial word embeddings: random, as in the paper;
        cooccurrence for vectors of the neighbours that tokens have in the records, in pre-training;
        or the path of a NumPy file with a vector for each token, as pre-training writes it.""")
    layers: Few = setting(1, "Number of lowest layers with previous-token and next-token heads.")
    position_share: Annotated[float, Interval(gt=0, le=0.5)] = setting(
        0.25, """Fraction of embedding dimensions for positions only; word embeddings begin with 0
        there. Rotary positions have none.""")
    position_amplitude: Gain = setting(1.0, """Amplitude of the sine waves of position embeddings,
        relative to `model.initializer_range`.""")
    attention_gain: Gain = setting(2.0, """Sharpness of previous-token and next-token heads. They
        give the adjacent token a logit of gain^2 * sqrt(head size) / 2, which is 16 for the gain 2
        and 64 dimensions; with rotary positions, one that exceeds its neighbours' by the gain.""")
    longest_wavelength: Annotated[float, Interval(ge=4, le=1_000_000)] = setting(
        64.0, """Longest wavelength of the position embeddings, in tokens. The shortest is 2.1
        tokens.""")
    duplicate_token_heads: Annotated[int, Interval(ge=0, le=1000)] = setting(
        0, """Number of duplicate-token heads in the discriminator's first layer. They attend to
        other occurrences of the same token, and to [CLS] if there are none.""")

    @staticmethod
    def normal() -> dict[str, Any]:
        """Returns the settings of the paper's initialization, that of the model included."""
        return {"model.initializer_range": EncoderConfig.initializer_range} | {
            setting.name: getattr(InitializationConfig, field)
            for field, setting in settings_of(InitializationConfig).items()}

    def require_width(self, model: ModelConfig) -> None:
        """Raises `UserError` if a model is too narrow for the scheme."""
        if self.scheme == "normal":
            return
        require(not model.is_modern or self.layers == 1, "initialization.layers",
                f"1 for model.architecture={model.architecture}", self.layers)
        scheme = f"for initialization.scheme={self.scheme}"
        for encoder in (model.discriminator, model.generator):
            require(encoder.embedding_size >= 4, "the size of embeddings", f"4 or more {scheme}",
                    encoder.embedding_size)
            require(encoder.hidden_size >= 2 * encoder.num_heads, "the size of an attention head",
                    f"2 or more {scheme}", encoder.hidden_size // encoder.num_heads)
        heads, name = self.duplicate_token_heads, "initialization.duplicate_token_heads"
        require(heads <= model.num_heads, name, f"at most model.num_heads={model.num_heads}", heads)
        require(heads == 0 or model.duplicate_token_heads_fit, name,
                "0 unless 8 * model.type_vocab_size <= model.embedding_size <= model.hidden_size "
                "and a head has 8 units or more", heads)


_MODERN = ModelConfig(  # ModernBERT-Base: 1.5 feed-forward units per hidden one, no dropout.
    architecture=Architecture.MODERNBERT, positions=Positions.ROTARY, rotary_base=160_000.0,
    hidden_dropout=0.0, attention_dropout=0.0, embedding_size=768, hidden_size=768, num_layers=22,
    num_heads=12, intermediate_size=1152, max_position_embeddings=8192,
    # A generator as wide as the discriminator can leave the project, as ModernBertForMaskedLM.
    generator_width=1.0, generator_depth=1 / 3)
MODEL_SIZES = {  # ELECTRA, tables 6 and 7, and a tiny size for tests and demos.
    "tiny": ModelConfig(
        embedding_size=64, hidden_size=128, num_layers=2, num_heads=2, intermediate_size=512,
        max_position_embeddings=128, generator_width=0.5, hidden_dropout=0.0,
        attention_dropout=0.0),
    "small": ModelConfig(),
    "base": ModelConfig(
        embedding_size=768, hidden_size=768, num_heads=12, intermediate_size=3072,
        generator_width=1 / 3),
    "large": ModelConfig(
        embedding_size=1024, hidden_size=1024, num_layers=24, num_heads=16, intermediate_size=4096,
        generator_width=0.25),
    "modern-tiny": dataclasses.replace(
        _MODERN, embedding_size=128, hidden_size=128, num_layers=3, num_heads=4,
        intermediate_size=192, max_position_embeddings=512),
    # The best scores after an hour of a CPU core: few layers with wide feed-forward networks.
    "modern-mini": dataclasses.replace(
        _MODERN, embedding_size=256, hidden_size=256, num_layers=4, num_heads=4,
        intermediate_size=672, max_position_embeddings=2048),
    "modern-small": dataclasses.replace(
        _MODERN, embedding_size=256, hidden_size=256, num_layers=12, num_heads=4,
        intermediate_size=384, max_position_embeddings=2048),
    "modern-base": _MODERN,
}
