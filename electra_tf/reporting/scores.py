"""Draws scores against the FLOPs of training: the literature's models, and the user's runs."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from electra_tf.platform.storage import Path
from electra_tf.reporting import plot_style
from electra_tf.reporting.plot_style import INK

OWN = "your runs"
_STYLES: Mapping[str, tuple[str, str, int]] = {
    "electra": ("ELECTRA", "#1f5fa8", 6), "masked": ("masked language models", "#e08e1b", 6),
    "other": ("others", "#6b7280", 6), OWN: (OWN, "#d1495b", 12)}
"""Kind -> name in the legend, color, size."""
KINDS = tuple(kind for kind in _STYLES if kind != OWN)
_GAP, _RADIUS = 6, 4
"""Distance of a name from its dot, and radius of a dot with some room around it, in points."""
_PLACES = tuple((x, y, ("center", "left", "right")[x], ("center", "bottom", "top")[y])
                for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)))
"""Places of a name: direction from the dot, and the alignment of the text."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Point:
    """A model: what it cost and how good it is."""

    name: str
    kind: str
    """One of `KINDS`, or `OWN`."""
    flops: float
    """FLOPs of its training, as the paper counts them; above 0."""
    score: float
    """A percentage."""


def draw_scores(points: Sequence[Point], path: Path, *, label: str) -> None:
    """Draws every model as a dot with its name, the user's as stars; `label` is the y axis's."""
    figure, (axes,) = plot_style.figure(1, 1, (9, 5.6))
    for kind, (name, colour, size) in _STYLES.items():
        shown = [point for point in points if point.kind == kind]
        if shown:
            axes.plot([point.flops for point in shown], [point.score for point in shown],
                      color=colour, linestyle="", marker="*" if kind == OWN else "o",
                      markersize=size, label=name)
    axes.set_xscale("log")
    axes.margins(x=0.12, y=0.1)
    plot_style.style_axes(axes, x="FLOPs of training, as the paper counts them", y=label)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="lower right")
    figure.canvas.draw()  # The layout decides the places.
    _name(figure.canvas.get_renderer(), axes, points)
    plot_style.save(figure, path)


def _name(renderer: Any, axes: Any, points: Sequence[Point]) -> None:
    """Writes every name where it hides the fewest dots and other names."""
    from matplotlib.transforms import Bbox

    radius = _RADIUS * renderer.points_to_pixels(1.0)
    centres = axes.transData.transform([(point.flops, point.score) for point in points])
    taken = [Bbox([centre - radius, centre + radius]) for centre in centres]
    taken.append(axes.get_legend().get_window_extent(renderer))
    frame = axes.get_window_extent(renderer)
    for point in sorted(points, key=lambda point: (point.kind != OWN, -point.flops)):
        texts = [axes.annotate(
            point.name, (point.flops, point.score), textcoords="offset points",
            xytext=(_GAP * right, _GAP * up), ha=horizontal, va=vertical, fontsize=8,
            color=_STYLES[point.kind][1], parse_math=False)
            for right, up, horizontal, vertical in _PLACES]

        def cost(text: Any) -> int:
            box = text.get_window_extent(renderer)
            outside = not (frame.x0 <= box.x0 and box.x1 <= frame.x1)
            return sum(box.overlaps(other) for other in taken) + 2 * outside

        kept = min(texts, key=cost)
        taken.append(kept.get_window_extent(renderer))
        for text in texts:
            if text is not kept:
                text.remove()
