"""Outputs of a fine-tuned model: scores, predictions, files for a benchmark's server, pictures."""

import collections
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from electra_tf.finetuning.predictor import Predictor
from electra_tf.finetuning.results import THRESHOLD, Results, shown_score
from electra_tf.finetuning.setup import FinetuningRun
from electra_tf.platform.atomic_file import make_directory, write_atomically
from electra_tf.platform.storage import Path
from electra_tf.reporting.json_file import write_json
from electra_tf.tasks import predictions, registry
from electra_tf.tasks.examples import Example
from electra_tf.tasks.kinds.kind import Scored, Split
from electra_tf.tasks.task import Task

SUBMISSION = "submission"
EVALUATION_FILE = "eval_results.json"
MAX_LABELS = 24
"""Shown in a confusion matrix; rarer ones are added up as "others"."""
OTHERS = "others"
_BLUE, _RED, _INK, _GRID = "#1f5fa8", "#d1495b", "#333333", "#e3e6ea"


def scored(predictor: Predictor, split: Split, threshold: float | None) -> Scored:
    """Returns predictions and scores of a split; a threshold of None is searched."""
    return split.score(predictor.predict(split.rows), threshold)


def threshold_of(model_dir: Path) -> float | None:
    """Returns the threshold that was best on dev in training; None if none was searched."""
    results = Results.load(model_dir)
    if results is None or not results.trials:  # The model was converted, not trained here.
        return None
    return next(iter(results.best.scores.values())).get(THRESHOLD)


def evaluate(run: FinetuningRun, dev: Mapping[str, Sequence[Example]]) -> None:
    """Scores the run's model on splits of labelled examples; prints and saves a table."""
    predictor, threshold = Predictor(run.trial, run.trained_model()), threshold_of(run.model_dir)
    scores = {}
    for name, examples in dev.items():
        scores[name] = scored(predictor, run.encode(examples), threshold).scores
        print(f"{run.spec.name}, {name}: {len(examples):,} examples")
        for metric, value in scores[name].items():
            print(f"  {metric:<32}{shown_score(metric, value):>9}", flush=True)
    write_json(run.model_dir / EVALUATION_FILE, scores)
    print(f"results  {run.model_dir / EVALUATION_FILE}")


def predict(run: FinetuningRun, source: Path, output: Path) -> None:
    """Reads examples from a file and writes the model's predictions to another."""
    write = predictions.writer_for(output, run.spec.kind)
    examples = registry.read_file(run.spec, source, labelled=False)
    predictor = Predictor(run.trial, run.trained_model())
    write(scored(predictor, run.encode(examples), threshold_of(run.model_dir)).records)
    print(f"{len(examples):,} predictions  {output}")


def write_outputs(run: FinetuningRun, task: Task, dev: Mapping[str, Split],
                  results: Results) -> None:
    """Writes predictions, the server's files and pictures of the best trial."""
    predictor = Predictor(run.trial, run.trained_model())
    directory, threshold = run.model_dir / "predictions", threshold_of(run.model_dir)
    make_directory(directory)

    def predicted(name: str, split: Split) -> Scored:
        found = scored(predictor, split, threshold)
        predictions.writer_for(directory / f"{name}.jsonl", run.spec.kind)(found.records)
        return found

    on_dev = {name: predicted(name, split) for name, split in dev.items()}
    tests = {name: predicted(name, run.encode(examples)).records
             for name, examples in task.test.items()}
    # SQuAD's server scores the dev file too, as long as it has no answers for test.
    served = tests or ({name: one.records for name, one in on_dev.items()}
                       if run.spec.name in predictions.SCORED_ON_DEV else {})
    predictions.write_submission(run.model_dir / SUBMISSION, run.spec.name, served)
    draw_learning_curves(results, run.model_dir / "learning_curve.png")
    name, examples = next(iter(task.dev.items()))
    truth, found = run.kind.confusion(run.spec, examples, on_dev[name].records)
    if truth:
        draw_confusion(truth, found, run.spec.label_words, f"{run.spec.name}, {name}",
                       run.model_dir / "confusion_matrix.png")


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
                    labels: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Returns the labels that are shown and how often each (row) is predicted as each (column).

    Args:
        truth: true labels.
        found: predicted ones, of the same length.
        labels: the label set, in order; only the most frequent ones are shown.

    >>> confusion_table(["a", "a", "b"], ["a", "b", "b"], ["a", "b"])
    (['a', 'b'], array([[1, 1],
           [0, 1]]))
    """
    from sklearn.metrics import confusion_matrix

    shown = list(labels)
    if len(labels) > MAX_LABELS:
        frequent = {label for label, _ in collections.Counter(truth).most_common(MAX_LABELS)}
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
