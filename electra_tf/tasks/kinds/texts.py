"""Shared by classification and regression: texts or pairs with one label, and its scores."""

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy import stats
from sklearn import metrics

from electra_tf.data.buckets import Row
from electra_tf.tasks.encoding import encode_texts
from electra_tf.tasks.examples import TextExample
from electra_tf.tasks.glue import input_names
from electra_tf.tasks.kinds.kind import Record, TaskKind
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.rows import RowEncoder

Scorer = Callable[[np.ndarray, np.ndarray], float]


class TextKind(TaskKind):
    """One or two texts with a label."""

    suffix = ".tsv"

    def texts(self, example: TextExample) -> tuple[str, ...]:
        """The one or two texts."""
        return example.texts

    def written(self, records: Sequence[Record]) -> str:
        """Key and prediction, a line each."""
        lines = ["key\tprediction", *(f"{one['key']}\t{one['prediction']}" for one in records)]
        return "\n".join(lines) + "\n"

    def served_inputs(self, spec: TaskSpec) -> tuple[str, ...]:
        """The task's columns where they can name an input, else text_1 and text_2."""
        names = input_names(spec.name, spec.texts)
        usable = all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) for name in names)
        return names if usable else tuple(f"text_{number + 1}" for number in range(len(names)))


def labelled_rows(examples: Sequence[TextExample], encoder: RowEncoder,
                  labels: Sequence[np.ndarray]) -> list[Row]:
    """Returns one row per example, with the target "label"."""
    tokens = encode_texts([example.texts for example in examples], encoder)
    return [Row(*row, {"label": label}) for row, label in zip(tokens, labels, strict=True)]


def _correlation(of: Callable) -> Scorer:
    """Gives NaN where either is constant, without SciPy's warning."""
    def correlate(labels: np.ndarray, predictions: np.ndarray) -> float:
        if len(labels) < 2 or np.ptp(labels) == 0.0 or np.ptp(predictions) == 0.0:
            return np.nan
        return of(labels, predictions).statistic
    return correlate


def _f1(average: str) -> Scorer:
    """Gives 0 for a class that is never predicted."""
    return lambda labels, predictions: metrics.f1_score(
        labels, predictions, average=average, zero_division=0.0)


SCORERS: Mapping[str, Scorer] = {
    "accuracy": metrics.accuracy_score,
    "f1": _f1("binary"),
    "f1_macro": _f1("macro"),
    "mcc": metrics.matthews_corrcoef,
    "pearson": _correlation(stats.pearsonr),
    "spearman": _correlation(stats.spearmanr),
    "mean_squared_error": metrics.mean_squared_error,
}
"""Name -> function of labels and predictions, [N] each: classes as whole numbers, or numbers."""


def label_scores(names: Sequence[str], labels: np.ndarray,
                 predictions: np.ndarray) -> dict[str, float]:
    """Returns the named scores, keys of `SCORERS`, of N predictions."""
    return {name: float(SCORERS[name](labels, predictions)) for name in names}
