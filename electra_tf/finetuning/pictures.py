"""Pictures of a fine-tuning run: learning curves, and which label is taken for which."""

import collections
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from electra_tf.finetuning.results import Results
from electra_tf.platform.atomic_file import write_atomically
from electra_tf.platform.storage import Path

MAX_LABELS = 24
"""Shown in a confusion matrix; rarer ones are added up as "others"."""
OTHERS = "others"
_BLUE, _RED, _INK, _GRID = "#1f5fa8", "#d1495b", "#333333", "#e3e6ea"


def draw_learning_curves(results: Results, path: Path) -> None:
    """Draws the training loss, and the main score after every epoch, a line per trial."""
    from matplotlib.ticker import MaxNLocator

    metric = results.metrics[0]
    split = next(iter(results.trials[0].scores))
    figure, (left, right) = _figure(1, 2, (8.4, 3.4))
    for trial in results.trials:
        best = trial is results.best
        style = {"alpha": 1.0 if best else 0.45, "linewidth": 2.0 if best else 1.2}
        scores = [epoch.scores[split][metric] for epoch in trial.epochs]
        left.plot(*zip(*trial.losses, strict=True), ".-", color=_BLUE, **style)
        right.plot([epoch.step for epoch in trial.epochs],
                   [np.nan if score is None else score for score in scores], "o-", color=_RED,
                   **style)
    for axes, label in ((left, "training loss"),
                        (right, f"{metric} on {split}, after every epoch")):
        axes.set(xlabel="step", ylabel=label)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.set_xlim(left=0)
        axes.grid(color=_GRID)
        axes.spines[["top", "right"]].set_visible(False)
    count = len(results.trials)
    trials = f"{count} trials, the best one strong" if count > 1 else "1 trial"
    figure.suptitle(f"{results.task}, {trials}", fontsize=10, color=_INK)
    _save(figure, path)


def draw_confusion(truth: Sequence[str], found: Sequence[str], labels: Sequence[str], title: str,
                   path: Path) -> None:
    """Draws how often every true label is predicted as which; arguments as below."""
    shown, table = confusion_table(truth, found, labels)
    size = 2.6 + 0.42 * len(shown)
    figure, (axes,) = _figure(1, 1, (size + 0.8, size))
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    for row, column in zip(*np.nonzero(table), strict=True):
        axes.text(column, row, f"{table[row, column]:,}", ha="center", va="center", fontsize=7,
                  color="white" if shares[row, column] > 0.55 else _INK)
    turned = {"rotation": 60, "ha": "right"} if max(map(len, shown)) > 3 else {}
    axes.set_xticks(range(len(shown)), shown, fontsize=8, **turned)
    axes.set_yticks(range(len(shown)), shown, fontsize=8)
    axes.set(xlabel="predicted", ylabel="true")
    axes.set_title(f"{title}; shade: fraction of the true label", fontsize=9, color=_INK)
    _save(figure, path)


def confusion_table(truth: Sequence[str], found: Sequence[str],
                    labels: Sequence[str], most: int = MAX_LABELS) -> tuple[list[str], np.ndarray]:
    """Returns the labels that are shown and how often each (row) is predicted as each (column).

    Args:
        truth: true labels.
        found: predicted ones, of the same length.
        labels: the label set, in order.
        most: so many of the most frequent true ones are shown, and the others as one.

    >>> confusion_table(["a", "a", "b"], ["a", "b", "b"], ["a", "b"])
    (['a', 'b'], array([[1, 1],
           [0, 1]]))
    """
    from sklearn.metrics import confusion_matrix

    shown = list(labels)
    if len(labels) > most:
        frequent = {label for label, _ in collections.Counter(truth).most_common(most)}
        shown = [label for label in labels if label in frequent] + [OTHERS]
    columns = [[label if label in shown else OTHERS for label in column]
               for column in (truth, found)]
    return shown, confusion_matrix(*columns, labels=shown)


def _figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, list[Any]]:
    # Imported here: what draws nothing does not wait for it. `Figure` by itself is Agg.
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=130, layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def _save(figure, path: Path) -> None:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", facecolor="white")
    write_atomically(path, picture.getvalue())
