"""Scores of tagged sentences: seqeval's, which counts as the CoNLL evaluation script does."""

from collections.abc import Sequence

from seqeval import metrics

Tags = Sequence[Sequence[str]]


def span_scores(tags: Tags, predictions: Tags) -> dict[str, float]:
    """Returns precision, recall and F1 of whole spans over all types, and accuracy per word.

    A span counts as found if its first word, last word and type are right.

    Args:
        tags: the truth, IOB2, one list per sentence.
        predictions: likewise, of the same lengths. An "I-" that continues nothing begins a span.
    """
    true, predicted = [list(one) for one in tags], [list(one) for one in predictions]
    return {
        "f1": float(metrics.f1_score(true, predicted, zero_division=0)),
        "precision": float(metrics.precision_score(true, predicted, zero_division=0)),
        "recall": float(metrics.recall_score(true, predicted, zero_division=0)),
        "accuracy": float(metrics.accuracy_score(true, predicted)),
    }
