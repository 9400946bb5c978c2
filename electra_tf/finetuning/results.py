"""Stores and shows results of a fine-tuning run: scores of every trial, and their summary."""

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from electra_tf.checkpoints.run_directory import MAX_RESULT_BYTES, RESULTS_FILE
from electra_tf.core import strict_json
from electra_tf.core.atomic_file import write_json
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path
from electra_tf.reporting.tables import text_table

THRESHOLD = "threshold"
"""Key among the scores: the logit above which extractive QA gives no answer, or the probability
from which multi-label classification predicts a label."""
ALL_FOLDS = 0
"""Number of a fold: the trial trains on all examples and is not scored."""
Scores = Mapping[str, Mapping[str, float | None]]
"""Split -> metric -> value; None for a value that is not finite."""
_FIX = "remove it, and the trials run again."


class Epoch(strict_json.Object):
    """The result of a pass over the training examples; `loss` is the mean over its steps."""

    epoch: int
    """From 1."""
    step: int
    loss: float
    scores: Scores


class Trial(strict_json.Object):
    """The result of one training, from initial weights to scores."""

    seed: int
    losses: tuple[tuple[int, float], ...]
    """Step and mean training loss of every interval."""
    epochs: tuple[Epoch, ...]
    kept_epoch: int
    """Number of the epoch whose weights and scores are kept."""
    seconds: float
    """Time of training and evaluation."""
    examples_per_second: float
    """Throughput of training, including compilation and excluding evaluation."""
    changes: Mapping[str, str | int | float | bool] = dataclasses.field(default_factory=dict)
    """Settings of a combination of the grid."""
    fold: int | None = None
    """The fold that was scored, from 1, or `ALL_FOLDS`."""
    stopped_early: bool = False
    """The score on dev did not improve."""

    @property
    def scores(self) -> Scores:
        """The scores of the kept epoch."""
        return self.epochs[self.kept_epoch - 1].scores


class Baseline(strict_json.Object):
    """Scores of a constant prediction, and its name, for example "always positive"."""

    name: str
    scores: Scores


class Results(strict_json.OpenObject):  # The file also has a summary.
    """The results of all finished trials of a run."""

    task: str
    metrics: tuple[str, ...]
    """The first is the main one."""
    initial: str
    """Origin of the encoder."""
    trials: tuple[Trial, ...] = ()
    baseline: Baseline | None = None

    def __post_init__(self):
        if not all(1 <= trial.kept_epoch <= len(trial.epochs) for trial in self.trials):
            raise ValueError("kept_epoch must be one of the epochs of its trial")
        # Not all settings of a grid search a threshold.
        shapes = {tuple((split, *sorted(scores.keys() - {THRESHOLD}))
                        for split, scores in epoch.scores.items())
                  for trial in self.scored_trials for epoch in trial.epochs}
        if self.trials and (len(shapes) != 1 or shapes == {()} or not self.metrics or not set(
                self.metrics) <= next(iter(self.scored_trials[0].scores.values())).keys()):
            raise ValueError("all epochs must have the same splits and all metrics of the task")

    @property
    def scored_trials(self) -> list[Trial]:
        """The trials except that on all examples of a cross-validation."""
        return [trial for trial in self.trials if trial.fold != ALL_FOLDS]

    @property
    def best(self) -> Trial:
        """The trial whose model is kept: that on all examples, or the first with the best score."""
        on_all = [trial for trial in self.trials if trial.fold == ALL_FOLDS]
        return on_all[0] if on_all else max(self.trials, key=lambda trial: main_score(
            trial.scores, self.metrics[0]))

    @property
    def best_number(self) -> int:
        """The number of the best trial and of its checkpoint, from 1."""
        return self.trials.index(self.best) + 1

    @property
    def threshold(self) -> float | None:
        """The best model's threshold, or the mean of the folds'; None if none was searched."""
        if self.best.fold == ALL_FOLDS:
            return next(iter(self.summary().values())).get(THRESHOLD, {}).get("mean")
        return next(iter(self.best.scores.values())).get(THRESHOLD)

    @property
    def kept_trials(self) -> list[Trial]:
        """The scored trials with the best trial's settings; all of them without a grid."""
        return [trial for trial in self.scored_trials if trial.changes == self.best.changes]

    def combinations(self) -> list[list[Trial]]:
        """Returns the scored trials by combination of the grid, in order; one without a grid."""
        groups: dict[str, list[Trial]] = {}
        for trial in self.scored_trials:
            groups.setdefault(json.dumps(dict(trial.changes)), []).append(trial)
        return list(groups.values())

    def save(self, model_dir: Path) -> None:
        """Writes results.json, with a readable summary."""
        searched = {} if self.threshold is None else {THRESHOLD: self.threshold}
        write_json(model_dir / RESULTS_FILE, dataclasses.asdict(self) | searched | {
            "best_seed": self.best.seed, "checkpoint": self.best_number,
            "summary": self.summary()})

    @classmethod
    def load(cls, model_dir: Path) -> "Results | None":
        """Returns what `save` wrote, None if there is no file; `UserError` if it is damaged."""
        path = model_dir / RESULTS_FILE
        if not path.exists():
            return None
        results = strict_json.read(path, Results, max_bytes=MAX_RESULT_BYTES, fix=_FIX)
        if not results.trials:
            raise UserError(f"{path} is damaged: it has no trials; {_FIX}")
        return results

    def summary(self, trials: Sequence[Trial] = ()) -> dict[str, dict[str, dict[str, float]]]:
        """Returns split -> metric -> mean, median, deviation and best; by default `kept_trials`."""
        trials = trials or self.kept_trials

        def statistics(split: str, metric: str) -> dict[str, float]:
            numbers = np.array([trial.scores[split][metric] for trial in trials], float)
            finite = numbers[np.isfinite(numbers)]  # Others, also None, make all but the best NaN.
            best_of = np.min if metric.endswith("_error") else np.max
            return {"mean": float(numbers.mean()), "median": float(np.median(numbers)),
                    "std": float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0,
                    "best": float(best_of(finite)) if finite.size else math.nan}

        return {split: {metric: statistics(split, metric) for metric in scores}
                for split, scores in trials[0].scores.items()}

    def table(self) -> str:
        """Returns a table per split: the summary of several trials, each trial, the baseline."""
        # Notes on what was trained and chosen.
        trials, combinations = self.kept_trials, self.combinations()
        heads = ("mean", "median", "std", "best") if len(trials) > 1 else ()
        notes = [f"baseline: {self.baseline.name}"] if self.baseline else []
        if self.best.fold == ALL_FOLDS:
            notes.append("the models of the folds are not kept; the kept model learned from all "
                         "examples")
        if combinations[1:]:
            notes.append(f"with {shown_changes(self.best.changes)}; chosen by these scores, which "
                         "are therefore optimistic")

        # Of every split: a table of the combinations, and one of the kept combination's trials.
        tables = []
        for split, metrics in self.summary().items():
            columns = {head: {metric: values[head] for metric, values in metrics.items()}
                       for head in heads}
            columns |= {
                f"fold {trial.fold}" if trial.fold else f"trial {self.trials.index(trial) + 1}":
                trial.scores[split] for trial in trials}
            columns |= {"baseline": self.baseline.scores[split]} if self.baseline else {}
            if combinations[1:]:
                rows = [(shown_changes(trials[0].changes), *(
                    shown_score(metric, self.summary(trials)[split][metric]["mean"])
                    for metric in self.metrics), str(len(trials))) for trials in combinations]
                tables.append(text_table(
                    f"{self.task}, {split}: mean scores of each combination", rows,
                    ("", *self.metrics, "trials")))
            tables.append(score_table(f"{self.task}, {split}", metrics, columns, notes))
        return "\n".join(tables)


def score_table(title: str, metrics: Iterable[str], columns: Scores,
                notes: Sequence[str] = ()) -> str:
    """Returns a table with a row for each metric, as `shown_score` writes it."""
    rows = [(metric, *(shown_score(metric, scores.get(metric)) for scores in columns.values()))
            for metric in metrics]
    return text_table(title, rows, ("", *columns), notes)


def median_table(runs: Mapping[str, Results]) -> str:
    """Returns a row for each run of a task: its medians on the first split."""
    results = next(iter(runs.values()))
    split = next(iter(results.summary()))
    rows = [(name, *(shown_score(metric, run.summary()[split][metric]["median"])
                     for metric in results.metrics)) for name, run in runs.items()]
    return text_table(f"{results.task}, {split}, medians", rows, ("", *results.metrics))


def glue_table(results_by_task: Mapping[str, Results]) -> str:
    """Returns GLUE's scores on dev and their averages, also without WNLI as in most papers."""
    rows, medians = [], {}
    for name, results in results_by_task.items():
        summary, rank = results.summary(), ["mcc", "spearman", "accuracy", "pearson", "f1"].index
        metrics = sorted(results.metrics, key=rank)
        rows.append((name, " / ".join(metrics), " / ".join(
            shown_score(metric, split[metric]["median"]) for split in summary.values()
            for metric in metrics), str(len(results.trials))))
        # The first metric on the first split counts, MNLI's matched (ELECTRA, table 1).
        medians[name] = next(iter(summary.values()))[metrics[0]]["median"]
    counted = [median for name, median in medians.items() if name != "wnli"]
    with_wnli = list(medians.values()) if "wnli" in medians else []
    rows += [(name, "", shown_score(name, float(np.mean(part)) if part else None), "")
             for name, part in (("average", counted), ("average with wnli", with_wnli))]
    return text_table(
        "GLUE on dev, medians over the trials in per cent", rows, ("", "metric", "dev", "trials"),
        [f"average over {len(counted)} of 8 tasks; the first score of each task counts"])


def main_score(scores: Scores, metric: str) -> float:
    """Returns the first split's score, of which higher is better; NaN and None become -inf."""
    value = next(iter(scores.values()))[metric]
    if value is None or math.isnan(value):
        return -math.inf
    return -value if metric.endswith("_error") else value


def shown_changes(changes: Mapping[str, str | float]) -> str:
    """Returns the settings of a combination.

    >>> shown_changes({"optimizer.learning_rate": 1e-4, "training.num_train_epochs": 3.0})
    'learning_rate=0.0001, num_train_epochs=3'
    """
    return ", ".join(f"{name.partition('.')[2]}={value:g}" if isinstance(value, float)
                     else f"{name.partition('.')[2]}={value}" for name, value in changes.items())


def shown_score(metric: str, value: float | None) -> str:
    """Returns a score in per cent; errors and thresholds without conversion.

    >>> shown_score("accuracy", 0.91234), shown_score("mean_squared_error", 0.5)
    ('91.23', '0.5')
    """
    if value is None or math.isnan(value):
        return "-"
    plain = metric == THRESHOLD or metric.endswith("_error")
    return f"{value:.4g}" if plain else f"{100 * value:.2f}"
