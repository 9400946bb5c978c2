"""Scores of classification and regression: scikit-learn's and SciPy's."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy import stats
from sklearn import metrics

Scorer = Callable[[np.ndarray, np.ndarray], float]


def _mcc(labels: np.ndarray, predictions: np.ndarray) -> float:
    """0 where either is constant."""
    return metrics.matthews_corrcoef(labels, predictions)


def _f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Of class 1; 0 where nothing is called so."""
    return metrics.f1_score(labels, predictions, average="binary", zero_division=0.0)


def _correlation(of: Callable) -> Scorer:
    """NaN where either is constant, without SciPy's warning."""
    def correlate(labels: np.ndarray, predictions: np.ndarray) -> float:
        if len(labels) < 2 or np.ptp(labels) == 0.0 or np.ptp(predictions) == 0.0:
            return np.nan
        return of(labels, predictions).statistic
    return correlate


SCORERS: Mapping[str, Scorer] = {
    "accuracy": metrics.accuracy_score,
    "f1": _f1,
    "f1_macro": lambda labels, predictions: metrics.f1_score(
        labels, predictions, average="macro", zero_division=0.0),
    "mcc": _mcc,
    "pearson": _correlation(stats.pearsonr),
    "spearman": _correlation(stats.spearmanr),
    "mean_squared_error": metrics.mean_squared_error,
}
"""Name -> function of labels and predictions, [N] each: classes as whole numbers, or numbers."""


def label_scores(names: Sequence[str], labels: np.ndarray,
                 predictions: np.ndarray) -> dict[str, float]:
    """Returns the named scores of N predictions.

    Args:
        names: keys of `SCORERS`.
        labels: [N], the truth.
        predictions: [N].
    """
    return {name: float(SCORERS[name](labels, predictions)) for name in names}
