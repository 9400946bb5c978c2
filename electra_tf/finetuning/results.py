"""Results of a fine-tuning run: scores of every trial, their summary, and the file of both."""

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from electra_tf.checkpoints.run_directory import CHECKPOINT_KEY, MOST_RESULT_BYTES, RESULTS_FILE
from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
from electra_tf.reporting.json_file import write_json

THRESHOLD = "threshold"
"""Key among the scores of extractive QA: the logit above which no answer is given."""

Scores = Mapping[str, Mapping[str, float | None]]
"""Split -> metric -> value; None for a value that is not finite."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Epoch:
    """One pass over the training examples."""

    __pydantic_config__ = strict_json.STRICT

    epoch: int
    """From 1."""
    step: int
    loss: float
    """Mean training loss over the epoch's steps."""
    scores: Scores


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trial:
    """One training, from initial weights to scores."""

    __pydantic_config__ = strict_json.STRICT

    seed: int
    losses: tuple[tuple[int, float], ...]
    """Step and mean training loss of every interval."""
    epochs: tuple[Epoch, ...]
    kept_epoch: int
    """The epoch whose weights and scores are kept."""
    seconds: float
    """Seconds of training and evaluation."""
    examples_per_second: float
    """Training throughput, including compilation, without evaluation."""

    def __post_init__(self):
        if not 1 <= self.kept_epoch <= len(self.epochs):
            raise ValueError(f"epoch {self.kept_epoch} of {len(self.epochs)} is kept")
        shapes = {tuple((split, *scores) for split, scores in epoch.scores.items())
                  for epoch in self.epochs}
        if len(shapes) > 1 or shapes == {()}:
            raise ValueError("its epochs have different splits or metrics")

    @property
    def scores(self) -> Scores:
        """Returns the scores of the epoch that was kept."""
        return self.epochs[self.kept_epoch - 1].scores


@dataclasses.dataclass(frozen=True, kw_only=True)
class Results:
    """All trials of a run so far."""

    task: str
    metrics: tuple[str, ...]
    """The first is the main one."""
    initial: str
    """Source of the encoder."""
    trials: tuple[Trial, ...] = ()

    @property
    def best(self) -> Trial:
        """Returns the trial with the best main score on the first split; the first of equals."""
        return max(self.trials, key=self.main_score)

    @property
    def checkpoint(self) -> int:
        """Returns the number of the best trial's checkpoint, from 1."""
        return self.trials.index(self.best) + 1

    def main_score(self, trial: Trial) -> float:
        """Returns the score by which trials are compared; higher is better."""
        return main_score(next(iter(trial.scores.values())), self.metrics[0])

    def save(self, model_dir: Path) -> None:
        """Writes results.json, with a readable summary."""
        write_json(model_dir / RESULTS_FILE, dataclasses.asdict(self) | {
            "best_seed": self.best.seed, CHECKPOINT_KEY: self.checkpoint,
            "summary": self.summary()})

    @classmethod
    def load(cls, model_dir: Path) -> "Results | None":
        """Returns what `save` wrote; None if the file does not exist.

        Raises:
            UserError: the file is damaged, or its values contradict each other.
        """
        path = model_dir / RESULTS_FILE
        if not path.exists():
            return None
        fix = "remove it, and the trials run again."
        found = strict_json.read(path, _File, most=MOST_RESULT_BYTES, fix=fix)
        results = cls(task=found.task, metrics=found.metrics, initial=found.initial,
                      trials=found.trials)
        problem = _contradiction(found, results)
        if problem:
            raise UserError(f"{path} is damaged: {problem}; {fix}")
        return results

    def summary(self) -> dict[str, dict[str, dict[str, float]]]:
        """Returns split -> metric -> mean, median, standard deviation and best over the trials."""
        return {split: {metric: _summary([trial.scores[split][metric] for trial in self.trials],
                                         metric) for metric in scores}
                for split, scores in self.trials[0].scores.items()}

    def table(self) -> str:
        """Returns a table of the summary, scores in per cent."""
        several = len(self.trials) > 1
        count = f"{len(self.trials)} trials" if several else "1 trial"
        lines = []
        for split, metrics in self.summary().items():
            heads = ("mean", "median", "std", "best") if several else ("score",)
            lines.append(f"{f'{self.task}, {split}: {count}':<34}"
                         + "".join(f"{head:>9}" for head in heads)
                         + ("   each trial" if several else ""))
            for metric, values in metrics.items():
                shown = [values[head] for head in heads] if several else [values["mean"]]
                each = "  ".join(shown_score(metric, trial.scores[split][metric])
                                 for trial in self.trials)
                lines.append(f"  {metric:<32}" + "".join(
                    f"{shown_score(metric, value):>9}" for value in shown)
                    + (f"   {each}" if several else ""))
        return "\n".join(lines)


def main_score(scores: Mapping[str, float], metric: str) -> float:
    """Returns a score such that higher is better; a value that is not a number is the worst."""
    value = scores[metric]
    if value is None or math.isnan(value):
        return -math.inf
    return -value if _is_error(metric) else value


def shown_score(metric: str, value: float | None) -> str:
    """Returns a score in per cent; errors and thresholds without conversion.

    >>> shown_score("accuracy", 0.91234), shown_score("mean_squared_error", 0.5)
    ('91.23', '0.5')
    """
    if value is None or math.isnan(value):
        return "-"
    if _is_error(metric) or metric == THRESHOLD:
        return f"{value:.4g}"
    return f"{100 * value:.2f}"


def glue_average(results: Sequence[Results]) -> float | None:
    """Returns the mean over tasks of the paper's metric, None for no task.

    One metric of each task counts, its median over the trials: Matthews correlation for CoLA,
    Spearman's for STS-B, accuracy elsewhere, for MNLI on its matched half (ELECTRA, table 1).
    """
    def score(result: Results) -> float:
        metrics = next(iter(result.summary().values()))
        return metrics[counted_metric(metrics)]["median"]
    return float(np.mean([score(result) for result in results])) if results else None


def counted_metric(metrics: Collection[str]) -> str:
    """Returns which of a GLUE task's metrics the paper counts."""
    return next(name for name in ("mcc", "spearman", "accuracy") if name in metrics)


def _summary(values: Sequence[float | None], metric: str) -> dict[str, float]:
    """Returns NaN where a trial has no number, except for the best score."""
    numbers = np.array([math.nan if value is None else value for value in values])
    known = numbers[np.isfinite(numbers)]
    best = (known.min() if _is_error(metric) else known.max()) if known.size else math.nan
    return {"mean": float(numbers.mean()), "median": float(np.median(numbers)),
            "std": float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0, "best": float(best)}


def _is_error(metric: str) -> bool:
    return metric.endswith("_error")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _File:
    """The content of results.json."""

    __pydantic_config__ = strict_json.STRICT

    task: str
    metrics: tuple[str, ...]
    initial: str
    trials: tuple[Trial, ...]
    best_seed: int
    checkpoint: int
    summary: dict[str, dict[str, dict[str, float | None]]]


def _contradiction(found: _File, results: Results) -> str:
    """Returns the contradiction within a file, in words; "" if there is none."""
    shapes = {tuple((split, *scores) for split, scores in trial.scores.items())
              for trial in results.trials}
    if len(shapes) != 1:
        return "its trials are none, or have different splits or metrics"
    main = next(iter(results.trials[0].scores.values()))
    missing = [metric for metric in results.metrics if metric not in main]
    if missing or not results.metrics:
        return f"its trials have no score {shown(missing)}"
    if found.best_seed != results.best.seed:
        return f"best_seed is {found.best_seed}, but the best trial has {results.best.seed}"
    if found.checkpoint != results.checkpoint:
        return (f"{CHECKPOINT_KEY} is {found.checkpoint}, but the best trial's is "
                f"{results.checkpoint}")
    return ""
