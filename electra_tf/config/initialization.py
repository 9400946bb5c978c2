"""Initial weights. They decide the outcome of a short run and have no other effect."""

import dataclasses
import enum
from typing import Annotated

from annotated_types import Interval

from electra_tf.config.model import EncoderConfig, Few, ModelConfig
from electra_tf.platform.settings import Section, require

Gain = Annotated[float, Interval(gt=0, le=1000)]


class Scheme(enum.StrEnum):
    """Initialization of attention."""

    NORMAL = "normal"
    """The paper's truncated normal weights: every head attends to all positions alike."""
    NEIGHBOURS = "neighbours"
    """First-layer heads attend to adjacent tokens, as trained networks do (after Trockman and
    Kolter, 2023); `matching_heads` of them are duplicate-token heads."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class InitializationConfig(Section, prefix="initialization."):
    """Initial values beyond `model.initializer_range`; all but `scheme` belong to `neighbours`."""

    scheme: Scheme = Scheme.NORMAL
    """Initialization of attention."""
    layers: Few = 1
    """Lowest layers that have previous-token and next-token heads."""
    position_share: Annotated[float, Interval(gt=0, le=0.5)] = 0.25
    """Share of the embedding's dimensions that belong to positions; word vectors are zero there
    at first, position vectors elsewhere."""
    position_amplitude: Gain = 1.0
    """Amplitude of the sines and cosines in the position table, in units of
    `model.initializer_range`, the standard deviation of words."""
    attention_gain: Gain = 2.0
    """Sharpness of these heads: the logit of the adjacent token is half the square of this times
    the square root of the head size (16 for 64 dimensions)."""
    longest_wavelength: Annotated[float, Interval(ge=4, le=1_000_000)] = 64.0
    """Longest wave of the position table, in tokens; the shortest is 2.1."""
    value_gain: Gain = 1.0
    """Factor of the product of value and output weights in these layers."""

    matching_heads: Annotated[int, Interval(ge=0, le=1000)] = 0
    """Duplicate-token heads of the first layer, the last ones: they attend to other occurrences of
    the same word, and to [CLS] if there are none; in the discriminator only."""

    def require_room(self, model: ModelConfig) -> None:
        """Raises `UserError` for a model that is too narrow for the scheme."""
        if self.scheme is Scheme.NORMAL:
            return
        self._require_room_to_match(model.discriminator)
        scheme = f"for initialization.scheme={self.scheme}"
        for encoder in (model.discriminator, model.generator):
            require(encoder.embedding_size >= 4, "the size of embeddings", f"4 or more {scheme}",
                    encoder.embedding_size)
            require(encoder.hidden_size >= 2 * encoder.num_heads, "the size of a head",
                    f"2 or more {scheme}", encoder.hidden_size // encoder.num_heads)

    def _require_room_to_match(self, encoder: EncoderConfig) -> None:
        if self.matching_heads == 0:
            return
        require(self.matching_heads <= encoder.num_heads, "initialization.matching_heads",
                f"at most model.num_heads, {encoder.num_heads}", self.matching_heads)
        head_size = encoder.hidden_size // encoder.num_heads
        require(head_size >= 8, "the size of a head",
                "8 or more for initialization.matching_heads", head_size)
        least = 8 * encoder.type_vocab_size
        require(encoder.embedding_size >= least, "the size of embeddings",
                f"{least} or more for initialization.matching_heads", encoder.embedding_size)
        require(encoder.embedding_size <= encoder.hidden_size, "the size of embeddings",
                f"at most model.hidden_size, {encoder.hidden_size}, for "
                "initialization.matching_heads", encoder.embedding_size)
