"""Learning curves of the discriminator by training tokens, fitted to measured runs.

The measure is `unigram_auc`, the AUC on replacements that are the same for every run. The AUC
against a run's own generator falls when the generator learns, so it cannot compare runs.
"""

import dataclasses

import numpy as np

from electra_tf.config.model import MODEL_SIZES, EncoderConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasuredNetwork:
    """A network with the results of measured runs."""

    size: str  # Model size.
    measured: tuple[tuple[float, float], ...]  # Tokens and final AUC of whole runs.
    limit: float  # Asymptotic AUC, assumed.

    def auc(self, tokens: float) -> float:
        """Returns the expected final AUC: 0.5 or more, limit - scale x tokens^-exponent."""
        # A line through ln(limit - AUC) over ln(tokens): limit - AUC is a power of the tokens.
        counts, aucs = np.array(self.measured).T
        slope, intercept = np.polyfit(np.log(counts), np.log(self.limit - aucs), 1)
        return max(0.5, self.limit - float(np.exp(intercept)) * tokens**float(slope))


NETWORKS = (
    MeasuredNetwork(size="modern-tiny", limit=0.92, measured=((2.05e6, 0.850), (8.19e6, 0.883))),
    MeasuredNetwork(size="modern-mini", limit=0.95, measured=((6.14e6, 0.889), (24.6e6, 0.911))),
)
"""Smallest first. Runs on Wikipedia and books in 8,192 pieces, 16 x 128 tokens a step, recipe
`short`; docs/how_to/size_and_recipe.md has the commands and all results."""


FEWEST_TOKENS = 2e6
"""Shorter runs are not compared: those of 1.0 million tokens ended 0.02 to 0.07 below the fit
(experiments/recorded.jsonl, sweep `compute`, "ELECTRA, share 0.25")."""


def compare_with_measured(auc: float, tokens: float, shape: EncoderConfig) -> str:
    """Returns a sentence that compares a run with the measured network of the nearest size."""
    # The nearest measured network by parameters of its layers, about 12 x layers x hidden size^2.
    def size_of(shape: EncoderConfig) -> float:
        return np.log(shape.num_layers * shape.hidden_size**2)

    nearest = min(NETWORKS, key=lambda network: abs(
        size_of(MODEL_SIZES[network.size]) - size_of(shape)))
    expected, millions = nearest.auc(tokens), tokens / 1e6
    sentence = f"On random replacements the discriminator's AUC is {auc:.2f}; chance is 0.5."
    if tokens < FEWEST_TOKENS:
        return sentence
    return (f"{sentence} For comparison: {nearest.size} with --recipe=short on Wikipedia and books "
            f"reaches {expected:.2f} with {millions:,.1f} million tokens; other layers and texts "
            "reach other values.")
