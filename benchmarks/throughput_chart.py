"""Draws the chart of recorded training throughputs in the README.

    python -m benchmarks.throughput_chart
"""

import pathlib

from electra_tf.platform import command_line, storage
from electra_tf.reporting import plots

CHART = pathlib.Path(__file__).parents[1] / "docs" / "images" / "throughput.png"
OURS = "electra_tf"
RECORDED = {
    "bfloat16, 846 GFLOP/s of matmuls, 2026-11-24": {
        OURS: 7825, "Hugging Face, eager": 3648, "Hugging Face, compiled": 3131},
    "float32, 368 GFLOP/s of matmuls in bfloat16, 2026-11-21": {
        OURS: 2295, "Hugging Face, compiled": 1412, "Hugging Face, eager": 1377,
        "Model Garden": 1202},
}
"""Conditions -> system -> tokens/s of ELECTRA-Small, 32 x 128 tokens, two CPU cores; of the entries
2026-11-24_training_step_speed and 2026-11-21_all_systems of experiments/log."""


def main() -> None:
    """Writes the chart."""
    figure, panels = plots.figure(2, 1, (6.2, 3.6))
    figure.suptitle("Training throughput of ELECTRA-Small on two CPU cores",
                    fontsize=11, color=plots.INK)
    for axes, (conditions, systems) in zip(panels, RECORDED.items(), strict=True):
        names = list(systems)
        bars = axes.barh(names, list(systems.values()), height=0.62, color=[
            plots.COLORS[0] if name == OURS else plots.SPINE for name in names])
        axes.bar_label(bars, labels=[f"{value:,}" for value in systems.values()], padding=4,
                       fontsize=plots.LABEL_SIZE, color=plots.INK)
        axes.set_xlim(0, 9000)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.invert_yaxis()
        plots.style_axes(axes, x="tokens/s" if axes is panels[-1] else "")
        axes.set_title(conditions, fontsize=plots.LABEL_SIZE, color=plots.INK, loc="left")
    plots.save(figure, storage.path(str(CHART)))
    print(f"wrote {CHART}")


if __name__ == "__main__":
    command_line.run(main, summary=__doc__, groups={})
