"""The style of plots; its functions import matplotlib, so that runs without plots do not."""

import io
from typing import Any

from electra_tf.core import atomic_file
from electra_tf.core.storage import Path

COLORS = ("#1f5fa8", "#d1495b", "#2a9d6f", "#8a5fbf", "#e08e1b", "#4b5563")
INK, SPINE = "#333333", "#b5bac1"
LABEL_SIZE, TICK_SIZE = 9, 8  # Font sizes in points.


def figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, list[Any]]:
    """Returns a figure of `size` inches at 130 dots per inch, and its axes row by row."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=size, dpi=130, layout="constrained")
    return drawing, list(drawing.subplots(rows, columns, squeeze=False).flat)


def style_axes(axes: Any, *, x: str = "", y: str = "") -> None:
    """Labels the axes, draws a light grid behind the data and hides the frame at top and right."""
    axes.set_xlabel(x, fontsize=LABEL_SIZE, color=INK)
    axes.set_ylabel(y, fontsize=LABEL_SIZE, color=INK)
    axes.tick_params(which="both", labelsize=TICK_SIZE, colors=INK, length=0)
    axes.grid(color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(SPINE)


def save(drawing: Any, path: Path) -> None:
    """Writes a figure as a PNG on white, as a whole or not at all."""
    picture = io.BytesIO()
    drawing.savefig(picture, format="png", facecolor="white")
    atomic_file.write_atomically(path, picture.getvalue())
