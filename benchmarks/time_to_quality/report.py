"""Learning curves against the clock, and their page and picture."""

import dataclasses
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.harness import tables
from electra_tf.reporting import plot_style

_COLOURS = {"short": "#1f5fa8", "paper": "#2a9d6f", "hf": "#8b949e"}
MEASURES = {
    "auc": "AUC against the run's own generator",
    "unigram_auc": "AUC on replacements that are the same for all, by frequency",
    "bigram_auc": "AUC on replacements that are the same for all, by the word before",
}
"""Field of `Point` -> heading."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Point:
    """One evaluation on held-out text."""

    step: int
    seconds: float
    """Duration of training so far, without start, evaluations and checkpoints."""
    tokens: int
    auc: float
    """AUC of the discriminator against the run's own generator."""
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
    """Number of steps of its schedule."""
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


def page(curves: Sequence[Curve], goals: Sequence[float]) -> list[str]:
    """Returns Markdown: for each measure seconds and tokens to every goal, and where runs ended."""
    parts = []
    for measure, heading in MEASURES.items():
        lines = [["system", *(f"{goal:.2f}" for goal in goals)]]
        lines += [[curve.title, *(_reached(curve, goal, measure) for goal in goals)]
                  for curve in curves]
        parts += [f"**{heading}**", "", *tables.table(lines), "",
                  *_ratios(curves, goals, measure), ""]
    return [*parts, *(f"- {curve.title}: {_end(curve)}" for curve in curves)]


def _reached(curve: Curve, goal: float, measure: str) -> str:
    found = curve.reaches(goal, measure)
    if found is None:
        return f"not in {curve.points[-1].seconds:,.0f} s" if curve.points else "-"
    return f"{found[0]:,.0f} s ({found[1] / 1e6:.2f}M tokens)"


def _end(curve: Curve) -> str:
    if not curve.points:
        return f"failed: {curve.failure}"
    last = curve.points[-1]
    return (f"{curve.steps:,} steps, {last.seconds:,.0f} s, {last.tokens / 1e6:.1f}M tokens; in "
            f"the end AUC {last.auc:.3f}, recall {last.recall:.1%}, "
            f"unigram {last.unigram_auc:.3f}, bigram {last.bigram_auc:.3f}, "
            f"generator {last.generator_loss:.2f} nats"
            + (f"; then it failed: {curve.failure}" if curve.failure else ""))


def _ratios(curves: Sequence[Curve], goals: Sequence[float], measure: str) -> list[str]:
    """Returns a line for every goal that the recipe `short` reached."""
    ours = next((curve for curve in curves if curve.name == "short"), None)
    others = [curve for curve in curves if curve.name != "short" and curve.points]
    lines = []
    for goal in goals if ours and others else ():
        reached = ours.reaches(goal, measure)
        if reached is None:
            continue
        theirs = [found[0] for curve in others if (found := curve.reaches(goal, measure))]
        longest = max(curve.points[-1].seconds for curve in others)
        lines.append(f"- {goal:.2f}: " + (
            f"{min(theirs) / reached[0]:.1f} times fewer seconds" if theirs else
            f"more than {longest / reached[0]:.1f} times fewer: no other reached it"))
    return lines


def draw(curves: Sequence[Curve], goals: Sequence[float], path: pathlib.Path) -> None:
    """Draws AUC against seconds of training; dashed, on the unigram corruptions."""
    made, (axes,) = plot_style.figure(1, 1, (8, 4.6))
    for goal in goals:
        axes.axhline(goal, color="#e3e6ea", linewidth=0.9, zorder=0)
    for curve in curves:
        for measure, style, label in (("auc", "o-", curve.title), ("unigram_auc", "--", None)):
            axes.plot([point.seconds for point in curve.points],
                      [getattr(point, measure) for point in curve.points], style, markersize=3,
                      color=_COLOURS[curve.name], label=label)
    axes.plot([], [], "--", color="#333333", label="on replacements that are the same for all")
    axes.set_xscale("log")
    plot_style.style_axes(axes, x="seconds of training", y="AUC of the discriminator, held out")
    made.legend(frameon=False, fontsize=8, loc="outside upper left", ncols=2)
    plot_style.save(made, path)
