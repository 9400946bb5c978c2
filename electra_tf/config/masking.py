"""What the generator predicts, and how its samples are drawn (ELECTRA, section 3.1)."""

import dataclasses
import enum

import numpy as np

from electra_tf.config.checks import require


class PositionDraw(enum.StrEnum):
    """How the masked positions of an example are drawn."""

    WITHOUT_REPLACEMENT = "without_replacement"
    WITH_REPLACEMENT = "with_replacement"
    """The reference implementation's draw: 7 to 12 % of the positions are duplicates, and the
    tokens that fall on one position are averaged. Its author calls it a flaw."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskingConfig:
    """Which tokens the generator has to guess (ELECTRA, section 3.1; appendix A)."""

    rate: float = 0.15
    """Fraction of an example's tokens selected, in (0, 1)."""
    mask_token_rate: float = 0.85
    """Fraction of the selected positions that read [MASK]. BERT's is 0.8."""
    random_token_rate: float = 0.0
    """Fraction of the selected positions that read a random token; those left keep theirs. BERT's
    is 0.1 (Devlin et al., 2019, table 8 compares others)."""
    whole_words: bool = False
    """Select all pieces of a word or none: whole-word masking, as in BERT's later models. Words
    that don't fit into an example's share of positions any more are passed over."""
    position_draw: PositionDraw = PositionDraw.WITHOUT_REPLACEMENT
    """Whether an example's positions are distinct, or drawn as the reference draws them."""

    def __post_init__(self):
        require(0.0 < self.rate < 1.0, "masking.rate", "in (0, 1)", self.rate)
        for name in ("mask_token_rate", "random_token_rate"):
            value = getattr(self, name)
            require(0.0 <= value <= 1.0, f"masking.{name}", "in [0, 1]", value)
        require(self.mask_token_rate + self.random_token_rate <= 1.0 + 1e-9,
                "masking.random_token_rate",
                f"at most 1 with masking.mask_token_rate={self.mask_token_rate}",
                self.random_token_rate)
        require(not (self.whole_words and self.position_draw is PositionDraw.WITH_REPLACEMENT),
                "masking.whole_words", "false with masking.position_draw=with_replacement",
                self.whole_words)

    def max_predictions(self, max_seq_length: int) -> int:
        """Returns N, the static number of prediction slots of an example of L positions."""
        return max(1, int((self.rate + 0.005) * max_seq_length))

    def predictions_by_length(self, max_seq_length: int) -> np.ndarray:
        """Returns int32 [L + 1]: predictions for an example of 0, 1, ... L tokens.

        round(rate * tokens) with halves to even in float32, as the reference computes it, at
        least 1 (0 without tokens) and at most N.
        """
        tokens = np.arange(max_seq_length + 1, dtype=np.float32)
        rounded = np.round(tokens * np.float32(self.rate)).astype(np.int32)
        predictions = np.clip(rounded, 1, self.max_predictions(max_seq_length))
        predictions[0] = 0
        return predictions


@dataclasses.dataclass(frozen=True, kw_only=True)
class SamplingConfig:
    """How the generator's distributions become tokens (ELECTRA, section 3.1)."""

    temperature: float = 1.0
    """What its logits are divided by before a token is drawn: above 1 likelier to be a mistake that
    is easy to see, towards 0 the most likely token. The generator's loss knows nothing of it."""
    initial_temperature: float = 0.0
    """Temperature at the first step, from which it falls to `sampling.temperature`; 0 for no
    change. For a generator that is good from the start (Fast-ELECTRA, Dong et al., 2024: 2)."""
    cooling_time: float = 0.1
    """Part of the run in which the difference between the two falls to 1/e."""
    disallow_correct: bool = False
    """Never draw the token that stood there, so that every selected token is replaced."""

    def __post_init__(self):
        require(0.01 <= self.temperature <= 100.0, "sampling.temperature", "0.01 to 100",
                self.temperature)
        require(self.initial_temperature == 0.0 or 0.01 <= self.initial_temperature <= 100.0,
                "sampling.initial_temperature", "0, or 0.01 to 100", self.initial_temperature)
        require(0.0 < self.cooling_time <= 100.0, "sampling.cooling_time", "in (0, 100]",
                self.cooling_time)
