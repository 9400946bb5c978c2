"""Results of a fine-tuning run: scores of every trial, their summary, and the file of both."""

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from electra_tf.checkpoints.run_directory import CHECKPOINT_KEY, MOST_RESULT_BYTES, RESULTS_FILE
from electra_tf.platform import strict_json
from electra_tf.platform.errors import shown
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
class Baseline:
    """Scores of always giving the same answer, which reads no text."""

    __pydantic_config__ = strict_json.STRICT

    name: str
    """The answer, for example "always positive"."""
    scores: Scores


@dataclasses.dataclass(frozen=True, kw_only=True)
class Results:
    """All trials of a run so far."""

    __pydantic_config__ = strict_json.STRICT

    task: str
    metrics: tuple[str, ...]
    """The first is the main one."""
    initial: str
    """Source of the encoder."""
    trials: tuple[Trial, ...] = ()
    baseline: Baseline | None = None

    def __post_init__(self):
        shapes = {tuple((split, *scores) for split, scores in trial.scores.items())
                  for trial in self.trials}
        if len(shapes) > 1:
            raise ValueError("its trials have different splits or metrics")
        missing = [metric for trial in self.trials for metric in self.metrics or [""]
                   if metric not in next(iter(trial.scores.values()))]
        if missing:
            raise ValueError(f"its trials have no score {shown(missing[0])}")

    @property
    def best(self) -> Trial:
        """Returns the trial with the best main score on the first split; the first of equals."""
        return max(self.trials, key=lambda trial: main_score(
            next(iter(trial.scores.values())), self.metrics[0]))

    @property
    def best_number(self) -> int:
        """Returns the number of the best trial, from 1, which is its checkpoint's."""
        return self.trials.index(self.best) + 1

    def save(self, model_dir: Path) -> None:
        """Writes results.json, with a readable summary."""
        write_json(model_dir / RESULTS_FILE, dataclasses.asdict(self) | {
            "best_seed": self.best.seed, CHECKPOINT_KEY: self.best_number,
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
        found = strict_json.read(path, _File, most=MOST_RESULT_BYTES,
                                 fix="remove it, and the trials run again.")
        return Results(**{field.name: getattr(found, field.name)
                          for field in dataclasses.fields(Results)})

    def summary(self) -> dict[str, dict[str, dict[str, float]]]:
        """Returns split -> metric -> mean, median, standard deviation and best over the trials."""
        return {split: {metric: _summary([trial.scores[split][metric] for trial in self.trials],
                                         metric) for metric in scores}
                for split, scores in self.trials[0].scores.items()}

    def table(self) -> str:
        """Returns a table of the summary beside the baseline, scores in per cent."""
        several = len(self.trials) > 1
        heads = ["mean", "median", "std", "best"] if several else ["mean"]
        constant = self.baseline.scores if self.baseline else {}
        lines = []
        for split, metrics in self.summary().items():
            title = f"{self.task}, {split}: {len(self.trials)} trial{'s' if several else ''}"
            shown_heads = (heads if several else ["score"]) + ["baseline"] * bool(constant)
            lines.append(f"{title:<34}" + "".join(f"{head:>9}" for head in shown_heads)
                         + ("   each trial" if several else ""))
            for metric, values in metrics.items():
                row = [values[head] for head in heads]
                if constant:
                    row.append(constant[split].get(metric))
                each = "  ".join(shown_score(metric, trial.scores[split][metric])
                                 for trial in self.trials)
                lines.append(f"  {metric:<32}" + "".join(
                    f"{shown_score(metric, number):>9}" for number in row)
                    + (f"   {each}" if several else ""))
        if self.baseline:
            lines.append(f"  baseline: {self.baseline.name}")
        return "\n".join(lines)


    def beside(self, scratch: "Results") -> str:
        """Returns a line of the medians of the first split, with those of a run from scratch."""
        (split, ours), (_, theirs) = (
            next(iter(one.summary().items())) for one in (self, scratch))
        return f"{self.task}, {split}: " + "; ".join(
            f"{metric} {shown_score(metric, ours[metric]['median'])}, from scratch "
            f"{shown_score(metric, theirs[metric]['median'])}" for metric in self.metrics)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _File(Results):
    """The content of results.json."""

    best_seed: int
    checkpoint: int
    summary: dict[str, dict[str, dict[str, float | None]]]

    def __post_init__(self):
        super().__post_init__()
        if not self.trials or (self.best.seed, self.best_number) != (
                self.best_seed, self.checkpoint):
            raise ValueError("best_seed or checkpoint isn't the best trial's")


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
