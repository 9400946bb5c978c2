"""Draws scores against the FLOPs of training: the literature's models, and the user's runs."""

import dataclasses
import io
from collections.abc import Mapping, Sequence
from typing import Any

from electra_tf.platform import atomic_file
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path

OWN = "your runs"
_STYLES: Mapping[str, tuple[str, str, int]] = {
    "electra": ("ELECTRA", "#1f5fa8", 6), "masked": ("masked language models", "#e08e1b", 6),
    "other": ("others", "#6b7280", 6), OWN: (OWN, "#d1495b", 12)}
"""Kind -> what the legend calls it, colour, size."""
KINDS = tuple(kind for kind in _STYLES if kind != OWN)
_INK, _GRID = "#333333", "#e3e6ea"
_GAP = 6
"""Points between a dot and its name."""
_RADIUS = 4
"""Of a dot with some room around it, in points."""
_PLACES = ((1, 0, "left", "center"), (-1, 0, "right", "center"), (0, 1, "center", "bottom"),
           (0, -1, "center", "top"), (1, 1, "left", "bottom"), (-1, 1, "right", "bottom"),
           (1, -1, "left", "top"), (-1, -1, "right", "top"))
"""Where a name can stand: direction from the dot, and which of its sides is there."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Point:
    """A model: what it cost and how good it is."""

    name: str
    kind: str
    """One of `KINDS`, or `OWN`."""
    flops: float
    """Of its training, as the paper counts them; above 0."""
    score: float
    """In per cent."""


def draw_scores(points: Sequence[Point], path: Path, *, label: str) -> None:
    """Draws every model as a dot with its name beside it, the user's as stars.

    Args:
        points: the models.
        path: of the PNG, replaced as a whole.
        label: of the vertical axis.

    Raises:
        UserError: nothing to draw, or the file can't be written.
    """
    # Not for --help.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not points:
        raise UserError(f"no models to draw into {path}.")
    figure = Figure(figsize=(9, 5.6), dpi=130, layout="constrained")
    axes = figure.subplots()
    for kind, (name, colour, size) in _STYLES.items():
        shown = [point for point in points if point.kind == kind]
        if shown:
            axes.plot([point.flops for point in shown], [point.score for point in shown],
                      color=colour, linestyle="", marker="*" if kind == OWN else "o",
                      markersize=size, label=name)
    _dress(axes, label)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # So that places are known.
    _name(canvas.get_renderer(), axes, points)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", facecolor="white")
    atomic_file.write_atomically(path, picture.getvalue())


def _dress(axes: Any, label: str) -> None:
    axes.set_xscale("log")
    axes.margins(x=0.12, y=0.1)
    axes.set_xlabel("FLOPs of training, as the paper counts them", fontsize=9, color=_INK)
    axes.set_ylabel(label, fontsize=9, color=_INK)
    axes.tick_params(which="both", labelsize=8, colors=_INK, length=0)
    axes.grid(color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=9, labelcolor=_INK, loc="lower right")
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#b5bac1")


def _name(renderer: Any, axes: Any, points: Sequence[Point]) -> None:
    """Writes every name where it hides no dot and no name that is there already, if it can."""
    from matplotlib.transforms import Bbox

    radius = _RADIUS * renderer.points_to_pixels(1.0)
    centres = axes.transData.transform([(point.flops, point.score) for point in points])
    taken = [Bbox([centre - radius, centre + radius]) for centre in centres]
    taken.append(axes.get_legend().get_window_extent(renderer))
    frame = axes.get_window_extent(renderer)
    for point in sorted(points, key=lambda point: (point.kind != OWN, -point.flops)):
        candidates = []
        for right, up, horizontal, vertical in _PLACES:
            text = axes.annotate(
                point.name, (point.flops, point.score), textcoords="offset points",
                xytext=(_GAP * right, _GAP * up), ha=horizontal, va=vertical, fontsize=8,
                color=_STYLES[point.kind][1], parse_math=False)
            box = text.get_window_extent(renderer)
            hidden = sum(box.overlaps(other) for other in taken)
            outside = not (frame.x0 <= box.x0 and box.x1 <= frame.x1)
            candidates.append((hidden + 2 * outside, text, box))
        _, text, box = min(candidates, key=lambda candidate: candidate[0])
        for _, other, _ in candidates:
            if other is not text:
                other.remove()
        taken.append(box)
