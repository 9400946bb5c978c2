"""Settings of what passes from the generator to the discriminator: masked tokens and draws."""

from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval

from electra_tf.core.settings import Count, Section, require, setting

Fraction = Annotated[float, Interval(ge=0, le=1)]


class MaskingConfig(Section, prefix="masking."):
    """Tokens that the generator has to predict (ELECTRA, section 3.1; appendix A)."""

    rate: Annotated[float, Interval(gt=0, lt=1)] = setting(0.15, """Fraction of an example's tokens
        that are selected: the generator predicts them.""")
    mask_token_rate: Fraction = setting(0.85, """Fraction of the selected positions where the
        generator reads [MASK]; 0.8 in BERT.""")
    random_token_rate: Fraction = setting(0.0, """Fraction of the selected positions where the
        generator reads a random token; 0.1 in BERT. The remaining selected positions keep the
        original token.""")
    whole_words: bool = setting(False, """Select all pieces of a word or none: whole-word masking,
        as in BERT's later models.""")
    joined_words: Annotated[float, Interval(ge=0, lt=1)] = setting(0.0, """Probability that a word
        is selected together with the next one, as in n-gram masking: spans have 1 / (1 - p) words
        on average. Above 0 only with masking.whole_words=true.""")
    position_draw: Literal["without_replacement", "with_replacement"] = setting(
        "without_replacement", """How positions are drawn. with_replacement, as in Google's code,
        draws 7 % duplicates at a masking rate of 0.15 and 12 % at 0.25, and averages tokens of one
        position.""")

    def __post_init__(self):
        super().__post_init__()
        require(self.mask_token_rate + self.random_token_rate <= 1.0 + 1e-9,
                "masking.random_token_rate",
                f"at most 1 with masking.mask_token_rate={self.mask_token_rate}",
                self.random_token_rate)
        require(not (self.whole_words and self.position_draw == "with_replacement"),
                "masking.whole_words", "false with masking.position_draw=with_replacement",
                self.whole_words)
        require(self.whole_words or not self.joined_words, "masking.joined_words",
                "0 without masking.whole_words=true", self.joined_words)

    def max_predictions(self, max_seq_length: int) -> int:
        """Returns N, the static number of predictions of L positions, as in the reference."""
        return max(1, int((self.rate + 0.005) * max_seq_length))

    def predictions_by_length(self, max_seq_length: int) -> np.ndarray:
        """Returns int32 [L + 1]: predictions for an example of 0, 1, ... L tokens, at most N.

        The reference rounds rate * tokens in float32, halves to even, and so does this function.
        """
        tokens = np.arange(max_seq_length + 1, dtype=np.float32)
        rounded = np.round(tokens * np.float32(self.rate)).astype(np.int32)
        predictions = np.clip(rounded, 1, self.max_predictions(max_seq_length))
        predictions[0] = 0
        return predictions


class SamplingConfig(Section, prefix="sampling."):
    """Draws of tokens from the generator's distributions (ELECTRA, section 3.1)."""

    temperature: Annotated[float, Interval(ge=0.01, le=100)] = setting(
        1.0, """Divisor of the generator's logits before tokens are drawn. Above 1, replacements are
        easier to detect; near 0, the most likely token is drawn.""")
    initial_temperature: Annotated[float, Interval(ge=0.01, le=100)] = setting(
        2.0, """With sampling.temperature_decay_steps, the temperature of the first step. It falls
        or rises exponentially to sampling.temperature, as in Fast-ELECTRA (Dong et al., 2024).""")
    temperature_decay_steps: Count = setting(0, """Steps in which the difference between
        sampling.initial_temperature and sampling.temperature falls to 1 / e, 37 %; 0 for a constant
        temperature. Evaluations draw at sampling.temperature.""")
    disallow_correct: bool = setting(False, """Exclude the original token from the draw, so every
        selected token is replaced.""")
