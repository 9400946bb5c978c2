"""Draws `loss_curves.png` from the records of `metrics.jsonl`."""

import math
import os
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from electra_tf.config.objectives import panels
from electra_tf.core import storage
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path
from electra_tf.reporting import plots
from electra_tf.reporting.metrics_log import Record


def draw_curves(runs: Mapping[str, Sequence[Record]], path: str | Path) -> None:
    """Draws training curves, faint as measured and strong as smoothed, with evaluations as dots.

    `runs` has records of metrics.jsonl by name; several are drawn over each other, with a legend.
    Raises `UserError` if there are no records, or the file can't be written.
    """
    # Panels that have points, in up to three columns.
    drawn = {label: present for label, names in panels().items()
             if (present := [name for name in names if any(
                 _points(records, name, kind)[0] for records in runs.values()
                 for kind in ("train", "eval"))])}
    if not drawn:
        raise UserError(f"no training records to draw into {path}; train for an interval first.")
    columns = 2 if len(drawn) == 4 else min(len(drawn), 3)
    rows = -(-len(drawn) // columns)
    drawing, grid = plots.figure(rows, columns, (4.6 * columns, 3.1 * rows))
    drawing.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    for axes, (label, names) in zip(grid, drawn.items(), strict=False):
        axes.sharex(grid[0])  # A panel with a single point shows the whole run too.
        _draw_panel(axes, label, names, runs)
    for axes in grid[len(drawn):]:
        axes.set_visible(False)
    # A legend of the runs, if there are several, and of the dots, if there are any.
    legend = {name: _line(color=plots.COLORS[index % len(plots.COLORS)])
              for index, name in enumerate(runs)} if len(runs) > 1 else {}
    if any(record.get("kind") == "eval" for records in runs.values() for record in records):
        legend = legend or {"training": _line(color=plots.INK)}
        legend["held out"] = _line(color=plots.INK, linestyle="", marker="o")
    if legend:
        drawing.legend(list(legend.values()), list(legend), loc="outside upper right",
                       ncols=min(len(legend), 5), frameon=False, fontsize=9, labelcolor=plots.INK)
    plots.save(drawing, storage.path(path))


def smooth(values: Sequence[float]) -> list[float]:
    """Returns the running mean over a thirtieth of the points to either side.

    At the start of the curve the window is narrower on both sides, so that the first steep descent
    keeps its shape; at its end only on the right, so that noise does not bend the last points.
    """
    reach = len(values) // 30
    windows = [values[index - min(reach, index):index + min(reach, index) + 1]
               for index in range(len(values))]
    return [sum(window) / len(window) for window in windows]


def _draw_panel(axes: Any, label: str, names: Sequence[str],
                runs: Mapping[str, Sequence[Record]]) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for run_index, records in enumerate(runs.values()):
        for key_index, key in enumerate(names):
            style = _style(run_index, key_index, len(runs))
            # The curve of training, with the smoothed one over it if it has enough points.
            steps, values = _points(records, key, "train")
            if key != "learning_rate" and len(steps) >= 60:
                axes.plot(steps, values, color=style["color"], alpha=0.25, linewidth=0.9)
                values = smooth(values)
            # A few points are shown as points, or a single one would be invisible.
            axes.plot(steps, values, color=style["color"], linestyle=style["linestyle"],
                      linewidth=1.7, marker="." if len(steps) <= 10 else "")
            # Dots on a curve of training need no line between them; on their own they do.
            dots = style | {"linestyle": ""} if steps else style
            axes.plot(*_points(records, key, "eval"), **dots, linewidth=1.2, markersize=6,
                      markeredgecolor="white", markeredgewidth=1, zorder=3)
    # A legend of the panel's metrics, without the words that all of them share.
    if len(names) > 1:
        prefix = os.path.commonprefix(names).rpartition("_")[0]  # The axes' label has it.
        axes.legend(
            [_line(**_style(None, index, len(runs))) for index in range(len(names))],
            [key.removeprefix(f"{prefix}_").replace("_", " ").replace("auc", "AUC")
             for key in names], frameon=False, fontsize=8, labelcolor=plots.INK, loc="lower left",
            bbox_to_anchor=(0, 1), ncols=len(names), borderaxespad=0.2)
    # Few and whole steps on the x axis; small rates with a common exponent.
    plots.style_axes(axes, x="step", y=label)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    if label == "learning rate":
        axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        axes.yaxis.offsetText.set_fontsize(plots.TICK_SIZE)
        axes.set_ylim(bottom=0)


def _style(run: int | None, key: int, run_count: int) -> dict[str, str]:
    """Returns a curve's style: of several runs, the color marks the run and dashes the curve.

    `run` is None in the legend of the curves.
    """
    if run_count == 1:
        return {"color": plots.COLORS[key % len(plots.COLORS)], "linestyle": "-", "marker": "o"}
    color = plots.INK if run is None else plots.COLORS[run % len(plots.COLORS)]
    return {"color": color, "linestyle": ("-", "--", ":")[key % 3], "marker": "osD"[key % 3]}


def _line(**style: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], linewidth=1.7, markersize=5, **style)


def _points(records: Sequence[Record], key: str, kind: str) -> tuple[list[int], list[float]]:
    """Returns the steps and the finite values of one key.

    Means over training intervals shorter than half the median are left out: a checkpoint or the
    end of a run cuts intervals short, and means over few steps are noise.
    """
    points = [record for record in records if record.get("kind") == kind]
    if kind == "train" and len(points) > 2:
        ends = [record["step"] for record in points]
        lengths = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
        points = [record for record, length in zip(points, lengths, strict=True)
                  if 2 * length >= statistics.median(lengths)]
    pairs = [(record["step"], record[key]) for record in points
             if math.isfinite(record.get(key, math.nan))]
    return [step for step, _ in pairs], [value for _, value in pairs]
