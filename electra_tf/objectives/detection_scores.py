"""How well replaced tokens are detected: scikit-learn's binary metrics over all tokens."""

import numpy as np
from sklearn import metrics


def detection_scores(replaced: np.ndarray, logits: np.ndarray) -> dict[str, float]:
    """Scores the discriminator.

    Args:
        replaced: bool [T], the truth for every real token.
        logits: float [T]; a token is called replaced where it is positive.

    Returns:
        discriminator_accuracy, _precision, _recall, _auc (NaN if only one class occurs) and
        replaced_fraction, all in [0, 1].
    """
    return {
        "discriminator_accuracy": float(metrics.accuracy_score(replaced, logits > 0.0)),
        **ranking_scores(replaced, logits, "discriminator"),
        "replaced_fraction": float(np.mean(replaced)),
    }


def ranking_scores(replaced: np.ndarray, logits: np.ndarray, name: str) -> dict[str, float]:
    """Returns `name`_precision, _recall and _auc; arguments as for `detection_scores`."""
    flagged = logits > 0.0
    both = replaced.any() and not replaced.all()
    return {
        f"{name}_precision": float(metrics.precision_score(replaced, flagged, zero_division=0.0)),
        f"{name}_recall": float(metrics.recall_score(replaced, flagged, zero_division=0.0)),
        f"{name}_auc": float(metrics.roc_auc_score(replaced, logits)) if both else np.nan,
    }
