"""What the generator predicts, and how its samples are drawn (ELECTRA, section 3.1)."""

import dataclasses
import enum
from typing import Annotated

import numpy as np
from annotated_types import Interval

from electra_tf.platform.settings import Section, require

Fraction = Annotated[float, Interval(ge=0, le=1)]
Temperature = Annotated[float, Interval(ge=0.01, le=100)]


class PositionDraw(enum.StrEnum):
    """Draw of the masked positions of an example."""

    WITHOUT_REPLACEMENT = "without_replacement"
    WITH_REPLACEMENT = "with_replacement"
    """The reference implementation's draw: 7 to 12 % of the positions are duplicates, and the
    tokens that fall on one position are averaged. Its author calls it a flaw."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskingConfig(Section, prefix="masking."):
    """Tokens that the generator has to predict (ELECTRA, section 3.1; appendix A)."""

    rate: Annotated[float, Interval(gt=0, lt=1)] = 0.15
    """Fraction of an example's tokens selected."""
    mask_token_rate: Fraction = 0.85
    """Fraction of the selected positions that read [MASK]. BERT's is 0.8."""
    random_token_rate: Fraction = 0.0
    """Fraction of the selected positions that read a random token; the rest keep their token.
    BERT's is 0.1 (Devlin et al., 2019, table 8 compares others)."""
    whole_words: bool = False
    """Select all pieces of a word or none: whole-word masking, as in BERT's later models. Words
    that exceed an example's remaining share of positions are skipped."""
    position_draw: PositionDraw = PositionDraw.WITHOUT_REPLACEMENT
    """Draw distinct positions, or with duplicates as the reference does."""

    def __post_init__(self):
        super().__post_init__()
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
class SamplingConfig(Section, prefix="sampling."):
    """How tokens are drawn from the generator's distributions (ELECTRA, section 3.1)."""

    temperature: Temperature = 1.0
    """Divisor of the logits before a token is drawn: above 1 replacements are easier to detect,
    towards 0 the most likely token is drawn. The generator's loss does not use it."""
    initial_temperature: Annotated[float, Interval(ge=0, le=100)] = 0.0
    """Temperature at the first step, from which it falls to `sampling.temperature`; 0 for no
    change. For a generator that is good from the start (Fast-ELECTRA, Dong et al., 2024: 2)."""
    cooling_time: Annotated[float, Interval(gt=0, le=100)] = 0.1
    """Part of the run in which the difference between the two falls to 1/e."""
    disallow_correct: bool = False
    """Never draw the original token: every selected token is replaced."""

    def __post_init__(self):
        super().__post_init__()
        require(self.initial_temperature == 0 or self.initial_temperature >= 0.01,
                "sampling.initial_temperature", "0, or 0.01 to 100", self.initial_temperature)
