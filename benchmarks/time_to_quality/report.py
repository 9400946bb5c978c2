"""The page, the JSON and the picture."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.time_to_quality.curve import Curve, fastest_peer
from electra_tf.platform import atomic_file

_COLOURS = {"short": "#1f5fa8", "paper": "#2a9d6f", "hf": "#8b949e"}
_INK, _GRID = "#333333", "#e3e6ea"


MEASURES = {
    "auc": "AUC against the run's own generator",
    "unigram_auc": "AUC on replacements that are the same for all, by frequency",
    "bigram_auc": "AUC on replacements that are the same for all, by the word before",
}
"""Field of `Point` -> heading."""


def page(curves: Sequence[Curve], goals: Sequence[float]) -> str:
    """Returns Markdown: for each measure seconds and tokens to every goal, and where runs ended."""
    parts = []
    for measure, heading in MEASURES.items():
        parts += [f"**{heading}**", "", _table(curves, goals, measure), "",
                  *_ratios(curves, goals, measure), ""]
    return "\n".join([*parts, *(f"- {curve.title}: {_end(curve)}" for curve in curves), ""])


def _table(curves: Sequence[Curve], goals: Sequence[float], measure: str) -> str:
    lines = [["system", *(f"{goal:.2f}" for goal in goals)], ["---"] * (len(goals) + 1)]
    lines += [[curve.title, *(_reached(curve, goal, measure) for goal in goals)]
              for curve in curves]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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
            + (f"; failed then: {curve.failure}" if curve.failure else ""))


def _ratios(curves: Sequence[Curve], goals: Sequence[float], measure: str) -> list[str]:
    """One line for every goal that the recipe `short` reached."""
    ours = next((curve for curve in curves if curve.name == "short"), None)
    others = [curve for curve in curves if curve.name != "short" and curve.points]
    lines = []
    for goal in goals if ours and others else ():
        reached = ours.reaches(goal, measure)
        if reached is None:
            continue
        theirs = fastest_peer(curves, goal, measure)
        longest = max(curve.points[-1].seconds for curve in others)
        ratio = (f"{theirs / reached[0]:.1f} times fewer seconds" if theirs is not None else
                 f"more than {longest / reached[0]:.1f} times fewer: no other reached it")
        lines.append(f"- {goal:.2f}: {ratio}")
    return lines


def content(curves: Sequence[Curve], machine: Mapping[str, Any]) -> dict[str, Any]:
    """Returns every evaluation of every system, for JSON."""
    return {"host": dict(machine), "curves": [dataclasses.asdict(curve) for curve in curves]}


def draw(curves: Sequence[Curve], goals: Sequence[float], path: pathlib.Path) -> None:
    """Draws AUC against seconds of training; dashed, on the unigram corruptions."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.6), dpi=130, layout="constrained")
    axes = figure.subplots()
    for goal in goals:
        axes.axhline(goal, color=_GRID, linewidth=0.9, zorder=0)
    for curve in curves:
        seconds = [point.seconds for point in curve.points]
        axes.plot(seconds, [point.auc for point in curve.points], color=_COLOURS[curve.name],
                  linewidth=2, marker="o", markersize=3, label=curve.title)
        axes.plot(seconds, [point.unigram_auc for point in curve.points],
                  color=_COLOURS[curve.name], linewidth=1, linestyle="--")
    axes.plot([], [], color=_INK, linewidth=1, linestyle="--",
              label="the same, on replacements that are equal for all")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("seconds of training", color=_INK)
    axes.set_ylabel("AUC of the discriminator, held-out text", color=_INK)
    figure.legend(frameon=False, fontsize=8, loc="outside upper left", ncols=2)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    with atomic_file.replacing(path) as temporary:
        figure.savefig(temporary, format="png", facecolor="white")
