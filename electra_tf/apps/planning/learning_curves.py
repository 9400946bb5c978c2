"""How good a discriminator gets by how many tokens: measured runs, and curves through them.

The measure is `unigram_auc`, the area under the curve on replacements that are the same for every
run. The AUC against a run's own generator doesn't compare runs: it falls when the generator learns.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np


def fit(points: Sequence[tuple[float, float]], limit: float) -> Callable[[float], float]:
    """Returns tokens -> AUC = limit - scale x tokens^-exponent through runs, at least 0.5.

    The logarithm of limit - AUC is a straight line.

    Args:
        points: tokens and AUC of two runs or more.
        limit: the AUC after endless training, above that of every run.

    >>> law = fit([(1e6, 0.70), (4e6, 0.80), (16e6, 0.85)], limit=0.9)
    >>> f"{law(64e6):.3f} {law(1.0):.1f}"
    '0.875 0.5'
    """
    tokens, aucs = np.array(points, dtype=float).T
    slope, intercept = np.polyfit(np.log(tokens), np.log(limit - aucs), 1)
    return lambda count: max(0.5, limit - float(np.exp(intercept)) * count**float(slope))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Network:
    """A network, and the results of measured runs."""

    name: str
    """Layers x hidden size."""
    flags: tuple[str, ...]
    """Of run_pretraining.py."""
    measured: tuple[tuple[float, float], ...]
    """Tokens and AUC of whole runs, whose learning rate fell to 0; fewest tokens first."""
    limit: float
    """AUC after endless training: where three runs were measured, the one that makes them a
    straight line; assumed for the others. It matters far beyond the measured tokens."""

    @property
    def most_tokens(self) -> float:
        """Returns the most tokens of a measured run; beyond them the AUC is extrapolated."""
        return self.measured[-1][0]

    def auc(self, tokens: float) -> float:
        """Returns the AUC that a run over so many tokens should end with."""
        return fit(self.measured, self.limit)(tokens)


_TINY = ("--model_size=tiny", "--set=model.num_heads=4",
         "--set=model.max_position_embeddings=512")  # 128 by default; records may be longer.
NETWORKS = (
    Network(name="2 x 128", flags=_TINY, limit=0.91,
            measured=((2.05e6, 0.752), (8.19e6, 0.835), (18.4e6, 0.861))),
    Network(name="4 x 128", limit=0.93, measured=((2.05e6, 0.758), (6.14e6, 0.820)), flags=(
        *_TINY, "--set=model.num_layers=4", "--set=model.embedding_size=128")),
    Network(name="4 x 256", flags=("--model_size=small", "--set=model.num_layers=4"), limit=0.95,
            measured=((4.10e6, 0.814), (57.3e6, 0.902))),
)
"""Narrowest first. Runs on Wikipedia and books in 8,156 pieces, 16 x 128 tokens a step, recipe
`short`; docs/budgets.md has the commands and what else came out."""
