"""Draws how good networks get by how many tokens: measured runs, and curves through them.

    python -m benchmarks.budgets --output=docs/images/budgets.png

Trains nothing: the runs stand in electra_tf/apps/planning/learning_curves.py, their commands in
docs/budgets.md.
"""

import numpy as np
from absl import flags

from electra_tf.apps.planning.learning_curves import NETWORKS
from electra_tf.platform import atomic_file, command_line, storage

_OUTPUT = flags.DEFINE_string("output", "benchmarks/results/budgets.png", "The PNG to write.")
_COLOURS = ("#2a9d6f", "#1f5fa8", "#d1495b", "#8b949e")
_INK, _GRID = "#333333", "#e3e6ea"
_TOKENS = (1e6, 16.4e9)
"""From a minute of two cores to the paper's ELECTRA-Small: 1,000,000 steps of 128 x 128."""


def main() -> None:
    """Draws the picture and says where."""
    path = storage.path(_OUTPUT.value)
    atomic_file.make_directory(path.parent)
    draw(path)
    print(f"wrote {path}")


def draw(path: storage.Path) -> None:
    """Draws runs as dots, curves as lines: solid where measured, dotted beyond.

    Raises:
        UserError: the file cannot be written.
    """
    from matplotlib.figure import Figure  # Not for --help.

    figure = Figure(figsize=(8, 4.6), dpi=130, layout="constrained")
    axes = figure.subplots()
    for network, colour in zip(NETWORKS, _COLOURS, strict=False):
        tokens, aucs = zip(*network.measured, strict=True)
        axes.plot(tokens, aucs, color=colour, linestyle="", marker="o", markersize=6)
        for low, high, line in ((tokens[0], tokens[-1], "-"), (tokens[-1], _TOKENS[1], ":")):
            span = np.geomspace(low, high, 100)
            axes.plot(span, [network.auc(count) for count in span], color=colour, linestyle=line,
                      linewidth=1.8, label=network.name if line == "-" else None)
    axes.plot([], [], color=_INK, linestyle=":", label="extrapolated")
    axes.set_xscale("log")
    axes.set_xlim(*_TOKENS)
    axes.set_xlabel("tokens", color=_INK)
    axes.set_ylabel("AUC on replacements that are equal for all", color=_INK)
    axes.grid(color=_GRID, linewidth=0.8)
    axes.legend(frameon=False, fontsize=9, title="layers x width", loc="lower right")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    with atomic_file.replacing(path) as temporary:
        figure.savefig(temporary, format="png", facecolor="white")


if __name__ == "__main__":
    command_line.run(main, summary=__doc__, groups={"Output": ["output"]})
