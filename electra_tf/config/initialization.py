"""How weights begin. It decides whether a short run learns at all, and nothing afterwards."""

import dataclasses
import enum

from electra_tf.config.checks import require, require_at_most, require_positive
from electra_tf.config.model import EncoderConfig, ModelConfig


class Scheme(enum.StrEnum):
    """What attention looks at before training."""

    NORMAL = "normal"
    """Everywhere alike: the paper's truncated normal weights and nothing else."""
    NEIGHBOURS = "neighbours"
    """At the tokens next to each position, as trained networks do (after Trockman and Kolter,
    2023), and if asked for at the other places of the same word."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class InitializationConfig:
    """Initial values beyond `model.initializer_range`; all but `scheme` belong to `neighbours`."""

    scheme: Scheme = Scheme.NORMAL
    """What attention looks at before training."""
    layers: int = 1
    """So many layers, from below, have heads that look at neighbours."""
    position_share: float = 0.25
    """Share of the embedding's dimensions that belong to positions; words begin with zeros there,
    positions with zeros elsewhere."""
    position_amplitude: float = 1.0
    """Amplitude of the sines and cosines in the position table, in units of
    `model.initializer_range`, the standard deviation of words."""
    attention_gain: float = 2.0
    """How sharply a head looks at its neighbour: there its logit is half the square of this times
    the square root of the head's size (16 for 64 dimensions)."""
    longest_wavelength: float = 64.0
    """Of the position table's waves, in tokens; the shortest is 2.1."""
    value_gain: float = 1.0
    """Factor of the product of value and output weights in these layers: how much of what a head
    sees is passed on."""

    matching_heads: int = 0
    """So many heads of the first layer, the last ones, look where else their own word stands, and
    at [CLS] if it stands nowhere else; in the encoder that is fine-tuned, not in the generator."""

    def __post_init__(self):
        require_positive("initialization", self, "layers", "position_amplitude", "attention_gain",
                         "value_gain")
        require(self.matching_heads >= 0, "initialization.matching_heads", "0 or more",
                self.matching_heads)
        require_at_most("initialization", self, 1000, "layers", "position_amplitude",
                        "attention_gain", "value_gain")
        require_at_most("initialization", self, 1e6, "longest_wavelength")
        require(0.0 < self.position_share <= 0.5, "initialization.position_share",
                "above 0 and at most 0.5", self.position_share)
        require(self.longest_wavelength >= 4.0, "initialization.longest_wavelength", "4 or more",
                self.longest_wavelength)

    def require_room(self, model: ModelConfig) -> None:
        """Raises `UserError` for a model too narrow for what heads are to read."""
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
