"""A sweep's page: a table of means with standard errors, and a picture of it."""

import collections
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from electra_tf.platform.atomic_file import write_atomically
from electra_tf.reporting import plot_style
from electra_tf.reporting.plot_style import COLOURS, INK
from experiments.budgets import Budget
from experiments.runner import PRETRAINING
from experiments.sweep import Sweep, Variant
from experiments.table import Row, Table

PAGE, PICTURE = "report.md", "report.png"
_MEAN = "mean of tasks"
TASK_NAMES = {"chunk": "chunking", "ner": "named entities", "stsb": "STS-B", "cola": "CoLA",
              "sst2": "SST-2", "mrpc": "MRPC", "blimp": "BLiMP", "squad": "SQuAD 1.1",
              "squad2": "SQuAD 2.0"}
"""As people write them; others in capitals."""


class Spread(NamedTuple):
    """Scores of several seeds, in per cent."""

    mean: float
    error: float
    """Standard error of the mean; NaN for one seed."""
    count: int

    @classmethod
    def of(cls, scores: Sequence[float]) -> "Spread":
        """Returns the mean and error of scores in [0, 1]."""
        values = 100 * np.array(scores, dtype=float)
        error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        return cls(float(values.mean()), float(error), len(values))

    def __str__(self) -> str:
        if not math.isfinite(self.mean):
            return "-"
        return f"{self.mean:.1f}" + (f" ± {self.error:.1f}" if math.isfinite(self.error) else "")


Scores = Mapping[str, Mapping[str, Spread]]
"""Task (and `_MEAN`) -> variant -> its scores."""


def scores_of(tasks: Sequence[str], variants: Sequence[str], rows: Sequence[Row]) -> Scores:
    """Returns what variants scored, by task; `_MEAN` counts seeds that have all tasks."""
    by_run: dict[tuple[str, int], dict[str, float]] = collections.defaultdict(dict)
    for row in rows:
        if row.main and row.task in tasks:
            by_run[row.variant, row.seed][row.task] = (
                math.nan if row.score is None else row.score)
    found: dict[str, dict[str, Spread]] = {task: {} for task in (*tasks, _MEAN)}
    for variant in variants:
        runs = [scores for (name, _), scores in by_run.items() if name == variant]
        for task in tasks:
            if values := [scores[task] for scores in runs if task in scores]:
                found[task][variant] = Spread.of(values)
        whole = [scores for scores in runs if len(scores) == len(tasks)]
        if whole:
            found[_MEAN][variant] = Spread.of(
                [float(np.mean(list(scores.values()))) for scores in whole])
    if len(tasks) == 1:
        del found[_MEAN]
    return found


def write(sweep: Sweep, budget: Budget, table: Table, directory: Path) -> None:
    """Writes the page and, once there is a score, the picture."""
    lines = [f"# {sweep.title}", "", *section(sweep, budget, table, directory, PICTURE), ""]
    write_atomically(directory / PAGE, "\n".join(lines).encode())


def section(sweep: Sweep, budget: Budget, table: Table, directory: Path,
            picture: str) -> list[str]:
    """Returns the comparison as Markdown, and draws its `picture` once there is a score."""
    rows = table.rows(sweep.name, budget.name)
    scores = scores_of(sweep.tasks, [variant.name for variant in sweep.variants], rows)
    lines = [text for text in (sweep.question, f"After: {sweep.source}.", sweep.note) if text]
    lines = [line for text in lines for line in (text, "")]
    lines += [f"Budget `{budget.name}`: {budget.about}. Means over seeds in per cent, ± one "
              "standard error.", ""]
    tasks = [task for task in scores if scores[task]]
    heads = ["", "steps", "tokens, M", *(task_name(task) for task in tasks), "seeds"]
    lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for variant in sweep.variants:
        own = [row for row in rows if row.variant == variant.name]
        cells = [f"{own[0].steps:,}", f"{own[0].tokens / 1e6:.1f}",
                 *(str(scores[task].get(variant.name, "-")) for task in tasks),
                 str(len({row.seed for row in own}))] if own else ["-"] * (len(heads) - 1)
        lines.append(f"| {variant.name} | {' | '.join(cells)} |")
    if tasks:
        draw(sweep, scores, rows, directory / picture)
        lines += ["", f"![{sweep.title}]({picture})"]
    return lines


def task_name(task: str) -> str:
    """Returns what people call a task."""
    return TASK_NAMES.get(task, task if task in (_MEAN, PRETRAINING) else task.upper())


def draw(sweep: Sweep, scores: Scores, rows: Sequence[Row], path: Path) -> None:
    """Draws a panel per task: points with error bars, over the grid's first axis if it has one."""
    panels = [task for task in scores if scores[task]]
    columns = min(len(panels), 3)
    deep = -(-len(panels) // columns)
    tall = 3.2 if sweep.axes else 0.6 + 0.32 * len(sweep.variants)
    figure, cells = plot_style.figure(deep, columns, (0.6 + 4.0 * columns, 0.5 + tall * deep))
    for axes, task in zip(cells, panels, strict=False):
        label = (_lines(axes, sweep, scores[task], rows) if sweep.axes else
                 _points(axes, sweep.variants, scores[task]))
        plot_style.style_axes(axes, x=label)
        axes.set_title(task_name(task), fontsize=10, color=INK, loc="left")
    for axes in cells[len(panels):]:
        axes.set_visible(False)
    if sweep.axes and len({variant.of for variant in sweep.variants}) > 1:
        figure.legend(*cells[0].get_legend_handles_labels(), loc="outside lower center", ncols=4,
                      frameon=False, fontsize=9, labelcolor=INK)
    figure.suptitle(sweep.title, fontsize=11, color=INK)
    plot_style.save(figure, path)


def _points(axes: Any, variants: Sequence[Variant], scores: Mapping[str, Spread]) -> str:
    """Draws a line per variant, the first on top; returns the label of the horizontal axis."""
    names = [variant.name for variant in reversed(variants) if variant.name in scores]
    found = [scores[name] for name in names]
    axes.errorbar([one.mean for one in found], range(len(names)),
                  xerr=np.nan_to_num([one.error for one in found]), fmt="o", color=COLOURS[0],
                  capsize=3)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    return "score, %"


def _lines(axes: Any, sweep: Sweep, scores: Mapping[str, Spread], rows: Sequence[Row]) -> str:
    """Draws a line per variant over the first axis, compute as FLOPs; returns the axis' label."""
    flops = {row.variant: row.flops for row in rows}
    over_compute = sweep.axes[0] == "share"
    drawn = [variant for variant in sweep.variants if variant.name in scores]
    values = list(dict.fromkeys(variant.at[0] for variant in drawn))
    groups: dict[str, list[Variant]] = collections.defaultdict(list)
    for variant in drawn:
        groups[", ".join(filter(None, [variant.of, *variant.at[1:]]))].append(variant)
    for colour, (name, variants) in zip(itertools.cycle(COLOURS), groups.items()):
        found = [scores[variant.name] for variant in variants]
        places = [flops[variant.name] if over_compute else values.index(variant.at[0])
                  for variant in variants]
        axes.errorbar(places, [one.mean for one in found],
                      yerr=np.nan_to_num([one.error for one in found]), marker="o", capsize=3,
                      color=colour, label=name)
    if over_compute:
        axes.set_xscale("log")
        return "training FLOPs, in matrix multiplications"
    axes.set_xticks(range(len(values)), values)
    return sweep.axes[0]
