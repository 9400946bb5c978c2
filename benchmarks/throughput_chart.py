"""Draws the chart of recorded training throughputs in the README.

    python -m benchmarks.throughput_chart
"""

import pathlib
from collections.abc import Mapping
from typing import Any

from electra_tf.core import command_line, storage
from electra_tf.reporting import plots

CHART = pathlib.Path(__file__).parents[1] / "docs" / "images" / "throughput.png"
OURS = "electra_tf"
EAGER, COMPILED = "Hugging Face, eager", "Hugging Face, torch.compile"
COLORS = {OURS: plots.COLORS[0], EAGER: plots.SPINE, COMPILED: "#7d8590"}
Results = Mapping[str, Mapping[str, int]]
"""Network and batch -> system -> tokens/s."""
RECORDED: Mapping[str, Results] = {
    # experiments/log/2026-11-24_training_step_speed
    "AVX-512 bfloat16": {
        "ELECTRA-Small\n32 x 128": {OURS: 7825, EAGER: 3648, COMPILED: 3131},
        "ELECTRA-Small\n8 x 512": {OURS: 6361, EAGER: 1158, COMPILED: 1646},
        "ELECTRA-Base\n8 x 128": {OURS: 931, EAGER: 491, COMPILED: 505}},
    # experiments/log/2026-11-26_onednn_with_avx2
    "AVX2 (emulated), float32": {
        "ELECTRA-Small\n32 x 128": {OURS: 2017, EAGER: 1578, COMPILED: 1472}}}
"""Machine and precision -> its results; each group of bars comes from one run."""
_SIZE, _FONT = (1600 / 130, 560 / 130), 14  # Inches at 130 dots; points.


def main() -> None:
    """Writes the chart."""
    from matplotlib.patches import Patch

    figure, panels = plots.figure(1, len(RECORDED), _SIZE)
    counts = [len(results) for results in RECORDED.values()]
    grid = panels[0].get_gridspec()
    grid.set_width_ratios([count + 0.4 for count in counts])
    figure.suptitle("Pre-training on two cores, tokens/s (batch x length; each panel has its own "
                    "scale)", fontsize=_FONT + 2, color=plots.INK)
    for axes, (machine, results) in zip(panels, RECORDED.items(), strict=True):
        _draw(axes, results)
        axes.set_title(machine, fontsize=_FONT, color=plots.INK)
    figure.legend(handles=[Patch(color=color, label=name) for name, color in COLORS.items()],
                  loc="outside lower center", ncols=3, fontsize=_FONT, frameon=False)
    plots.save(figure, storage.path(str(CHART)))
    print(f"wrote {CHART}")


def _draw(axes: Any, results: Results) -> None:
    """Draws a group of bars for each case, and the ratio to the fastest other system."""
    for group, systems in enumerate(results.values()):
        width = 0.84 / len(systems)
        for index, (name, speed) in enumerate(systems.items()):
            position = group + width * (index - (len(systems) - 1) / 2)
            label = f"{speed:,}"
            if name == OURS:
                ratio = speed / max(value for other, value in systems.items() if other != OURS)
                label += f"\n{ratio:.2f} x"
            axes.bar_label(axes.bar(position, speed, 0.94 * width, color=COLORS[name]), [label],
                           padding=3, fontsize=_FONT - 1, color=plots.INK,
                           fontweight="bold" if name == OURS else "normal")
    plots.style_axes(axes)
    axes.margins(y=0.22)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.tick_params(axis="y", labelsize=_FONT - 2)
    axes.set_xticks(range(len(results)), list(results), fontsize=_FONT - 1)
    axes.set_xlim(-0.6, len(results) - 0.4)
    axes.grid(visible=False, axis="x")


if __name__ == "__main__":
    command_line.run(main, summary=__doc__, groups={})
