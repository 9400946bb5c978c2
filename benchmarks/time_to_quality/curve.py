"""A learning curve against the clock, and the time at which it reaches a goal for good."""

import dataclasses
from collections.abc import Iterable
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Point:
    """One evaluation on held-out text."""

    step: int
    seconds: float
    """Of training up to here: without start, evaluations and checkpoints."""
    tokens: int
    auc: float
    """Of the discriminator, against the run's own generator."""
    recall: float
    unigram_auc: float
    """On replacements that are the same for every run."""
    bigram_auc: float
    generator_loss: float
    """Nats per masked token."""


@dataclasses.dataclass(kw_only=True)
class Curve:
    """The evaluations of one system."""

    name: str
    title: str
    steps: int
    """Of its schedule."""
    points: list[Point] = dataclasses.field(default_factory=list)
    failure: str = ""
    """Why it ended early, on one line; empty if it didn't."""

    def reaches(self, goal: float, measure: str = "auc") -> tuple[float, float] | None:
        """Returns the seconds and tokens from which on a measure stays at `goal`; None if never.

        In its first steps a generator draws from all words alike, and any discriminator finds
        those: an AUC that falls again hasn't been reached. Between two evaluations it counts as
        a straight line, before the first as one from 0.50.

        Args:
            goal: above 0.5.
            measure: "auc", "unigram_auc" or "bigram_auc".
        """
        values = [(0.0, 0.0, 0.5), *((point.seconds, point.tokens, getattr(point, measure))
                                     for point in self.points)]
        last = max(index for index, value in enumerate(values) if not value[2] >= goal)
        if last + 1 == len(values):
            return None
        before, after = values[last], values[last + 1]
        part = (goal - before[2]) / (after[2] - before[2])
        return (before[0] + part * (after[0] - before[0]),
                before[1] + part * (after[1] - before[1]))


def of_records(records: Iterable[dict[str, Any]], tokens_per_step: int) -> list[Point]:
    """Returns the evaluations of a run of ours, from its metrics.jsonl.

    The rate of an interval says how long its steps took.
    """
    points, seconds, step = [], 0.0, 0
    for record in records:
        if record["kind"] == "train":
            seconds += (record["step"] - step) * tokens_per_step / record["tokens_per_second"]
            step = record["step"]
        elif record["kind"] == "eval" and record["step"] == step:
            points.append(Point(
                step=step, seconds=seconds, tokens=step * tokens_per_step,
                auc=record["discriminator_auc"], recall=record["discriminator_recall"],
                unigram_auc=record["unigram_auc"], bigram_auc=record["bigram_auc"],
                generator_loss=record["generator_loss"]))
    return points
