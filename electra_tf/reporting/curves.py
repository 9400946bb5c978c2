"""Draws `loss_curves.png` from the records of `metrics.jsonl`."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from electra_tf.config.objectives import measures, panels
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.reporting import plot_style
from electra_tf.reporting.metrics_log import Record
from electra_tf.reporting.plot_style import COLOURS, INK


def draw_curves(runs: Mapping[str, Sequence[Record]], path: str | Path) -> None:
    """Draws training curves, faint as measured and strong as smoothed, with evaluations as dots.

    `runs` has records of metrics.jsonl by name; several are drawn over each other, with a legend.

    Raises:
        UserError: nothing to draw, or the file cannot be written.
    """
    filled = {label: shown for label, names in panels().items()
              if (shown := [name for name in names if any(
                  _points(records, name, kind)[0] for records in runs.values()
                  for kind in ("train", "eval"))])}
    if not filled:
        raise UserError(f"no training records to draw into {path}; train for an interval first.")
    figure, grid = _figure(len(filled))
    for axes, (label, names) in zip(grid, filled.items(), strict=False):
        _draw_panel(axes, label, names, runs)
    limits = [axes.get_xlim() for axes in grid[:len(filled)]]
    for axes in grid[:len(filled)]:  # A panel with a single point shows the whole run too.
        axes.set_xlim(min(low for low, _ in limits), max(high for _, high in limits))
    for axes in grid[len(filled):]:
        axes.set_visible(False)
    _key(figure, list(runs), evaluated=any(
        record.get("kind") == "eval" for records in runs.values() for record in records))
    plot_style.save(figure, storage.path(path))


def smooth(values: Sequence[float]) -> list[float]:
    """Returns the running mean over a thirtieth of the points to either side.

    At the start of the curve the window is narrower on both sides, so that the first steep descent
    keeps its shape; at its end only on the right, so that noise does not bend the last points.

    Example:
        >>> smooth([3.0, 1.0])
        [3.0, 1.0]
    """
    reach = len(values) // 30
    means = []
    for index in range(len(values)):
        near = min(reach, index)
        window = values[index - near:index + near + 1]
        means.append(sum(window) / len(window))
    return means


def _figure(count: int) -> tuple[Any, list[Any]]:
    columns = 2 if count == 4 else min(count, 3)
    rows = -(-count // columns)
    figure, grid = plot_style.figure(rows, columns, (4.6 * columns, 3.1 * rows))
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    return figure, grid


def _draw_panel(axes: Any, label: str, shown: Sequence[str],
                runs: Mapping[str, Sequence[Record]]) -> None:
    known = measures()
    for run_index, records in enumerate(runs.values()):
        for key_index, key in enumerate(shown):
            style = _style(run_index, key_index, len(runs))
            training = _points(records, key, "train")
            _draw_training(axes, *training, style, known[key].noisy)
            # Dots on a curve of training need no line between them; on their own they do.
            line = "" if training[0] else style["linestyle"]
            _draw_evaluations(axes, *_points(records, key, "eval"), style, line)
    if len(shown) > 1:
        styles = [_style(None, index, len(runs)) for index in range(len(shown))]
        _legend(axes, [known[key].curve for key in shown], styles)
    _dress(axes, label)


def _style(run: int | None, key: int, run_count: int) -> dict[str, str]:
    """Colours tell curves apart in a single run; among several, runs, and dashes the curves.

    `run` is None in the legend of the curves, which is of no run's colour.
    """
    if run_count == 1:
        return {"color": COLOURS[key % len(COLOURS)], "linestyle": "-", "marker": "o"}
    colour = INK if run is None else COLOURS[run % len(COLOURS)]
    return {"color": colour, "linestyle": ("-", "--", ":")[key % 3], "marker": "osD"[key % 3]}


def _draw_training(
    axes: Any, steps: Sequence[int], values: Sequence[float], style: Mapping[str, str], noisy: bool
) -> None:
    if noisy and len(steps) >= 60:
        axes.plot(steps, values, color=style["color"], alpha=0.25, linewidth=0.9)
        values = smooth(values)
    # A few points are shown as points, or a single one would be invisible.
    axes.plot(steps, values, color=style["color"], linestyle=style["linestyle"],
              linewidth=1.7, marker="." if len(steps) <= 10 else "")


def _draw_evaluations(
    axes: Any, steps: Sequence[int], values: Sequence[float], style: Mapping[str, str], line: str
) -> None:
    axes.plot(steps, values, color=style["color"], linestyle=line, linewidth=1.2,
              marker=style["marker"], markersize=6, markeredgecolor="white", markeredgewidth=1,
              zorder=3)


def _legend(axes: Any, names: Sequence[str], styles: Sequence[Mapping[str, str]]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], linewidth=1.7, markersize=5, **style) for style in styles]
    axes.legend(handles, names, frameon=False, fontsize=8, labelcolor=INK)


def _dress(axes: Any, label: str) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    plot_style.style_axes(axes, x="step", y=label)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    if label == "learning rate":
        axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        axes.yaxis.offsetText.set_fontsize(plot_style.TICK_SIZE)
        axes.set_ylim(bottom=0)


def _key(figure: Any, names: Sequence[str], *, evaluated: bool) -> None:
    """Names the runs, if there are several, and what dots are, if there are any."""
    from matplotlib.lines import Line2D

    entries = {}
    if len(names) > 1:
        entries = {name: Line2D([], [], color=COLOURS[index % len(COLOURS)], linewidth=2)
                   for index, name in enumerate(names)}
    if evaluated:
        if not entries:
            entries["training"] = Line2D([], [], color=INK, linewidth=1.7)
        entries["held out"] = Line2D([], [], color=INK, linestyle="", marker="o", markersize=5)
    if entries:
        figure.legend(list(entries.values()), list(entries), loc="outside upper right",
                      ncols=min(len(entries), 5), frameon=False, fontsize=9, labelcolor=INK)


def _points(
    records: Sequence[Record], key: str, kind: str
) -> tuple[list[int], list[float]]:
    """Returns the steps and the finite values of one key.

    Means over training intervals shorter than half the median are left out: a checkpoint or the
    end of a run cuts intervals short, and means over few steps are noise.
    """
    chosen = [record for record in records if record.get("kind") == kind]
    if kind == "train" and len(chosen) > 2:
        ends = [record["step"] for record in chosen]
        lengths = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
        chosen = [record for record, length in zip(chosen, lengths, strict=True)
                  if 2 * length >= statistics.median(lengths)]
    pairs = [(record["step"], record[key]) for record in chosen if _is_finite(record.get(key))]
    return [step for step, _ in pairs], [value for _, value in pairs]


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < float("inf")
