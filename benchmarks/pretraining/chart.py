"""Draws the table as horizontal bars, one panel per case."""

import pathlib
from collections.abc import Sequence
from typing import Any

from benchmarks.pretraining.summary import CaseSummary, Row
from electra_tf.platform import atomic_file

_OURS, _PEER, _INK, _LIMIT = "#1f5fa8", "#a9b1bb", "#333333", "#d1495b"


def draw_bars(cases: Sequence[CaseSummary], path: pathlib.Path) -> None:
    """Draws tokens/s with its range, and the machine's limit as a line.

    Args:
        cases: at least one; systems that failed are left out.
        path: of the PNG, replaced as a whole.

    Raises:
        UserError: the file can't be written.
    """
    # Imported here, as everything heavy is. `Figure` by itself is Agg.
    from matplotlib.figure import Figure

    shown = [[row for row in case.rows if row.tokens_per_second] for case in cases]
    heights = [0.9 + 0.34 * len(rows) for rows in shown]
    figure = Figure(figsize=(9, sum(heights)), dpi=130, layout="constrained")
    grid = figure.subplots(len(cases), 1, squeeze=False, height_ratios=heights).flat
    for axes, case, rows in zip(grid, cases, shown, strict=True):
        _draw_case(axes, case, rows)
    with atomic_file.replacing(path) as temporary:
        figure.savefig(temporary, format="png", facecolor="white")


def _draw_case(axes: Any, case: CaseSummary, rows: Sequence[Row]) -> None:
    speeds = [row.tokens_per_second for row in rows]
    medians = [speed.median for speed in speeds]
    errors = [[speed.median - speed.low for speed in speeds],
              [speed.high - speed.median for speed in speeds]]
    axes.barh(range(len(rows)), medians, height=0.66, xerr=errors,
              color=[_OURS if row.ours else _PEER for row in rows],
              error_kw={"ecolor": _INK, "elinewidth": 0.9, "capsize": 2})
    for place, row in enumerate(rows):
        axes.annotate(_caption(row), (row.tokens_per_second.high, place), xytext=(6, 0),
                      textcoords="offset points", va="center", fontsize=8, color=_INK,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.invert_yaxis()
    _draw_limit(axes, case)
    _dress(axes, case)


def _caption(row: Row) -> str:
    ratio = "" if row.ratio is None or not row.ours else f"   {row.ratio:.2f} x the fastest peer"
    return f"{row.tokens_per_second.median:,.0f}{ratio}"


def _draw_limit(axes: Any, case: CaseSummary) -> None:
    if case.machine_rate is None:
        return
    limit = case.machine_rate / case.products_flops_per_token
    axes.axvline(limit, color=_LIMIT, linestyle="--", linewidth=1.2)
    axes.annotate("every product at\nthe machine's rate", (limit, 0.03),
                  xycoords=("data", "axes fraction"), xytext=(-5, 0), textcoords="offset points",
                  ha="right", va="bottom", fontsize=8, color=_LIMIT)


def _dress(axes: Any, case: CaseSummary) -> None:
    work = case.workload
    axes.set_title(f"{work.case}: batch {work.batch}, {work.length} tokens, {work.threads} cores",
                   fontsize=10, color=_INK, loc="left")
    axes.set_xlabel("tokens/s", fontsize=9, color=_INK)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.tick_params(labelsize=8, colors=_INK, length=0)
    axes.grid(axis="x", color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#b5bac1")
