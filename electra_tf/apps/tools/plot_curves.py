"""Draws the loss curves of one run, or of several runs in the same panels.

    python -m electra_tf.apps.tools.plot_curves --model_dir=runs/small
    python -m electra_tf.apps.tools.plot_curves --model_dir=runs/a,runs/b --output=compared.png
"""

import functools

from absl import flags

from electra_tf.checkpoints.run_directory import METRICS_FILE
from electra_tf.core import command_line, storage
from electra_tf.reporting.loss_curves import draw_curves
from electra_tf.reporting.metrics_log import read_metrics


def main() -> None:
    """Reads the records of every run, draws them and prints the file's name."""
    values = flags.FLAGS
    directories = [storage.path(name) for name in values.model_dir]
    runs = {str(path): read_metrics(path / METRICS_FILE) for path in directories}
    directory = directories[0] if len(directories) == 1 else storage.path(".")
    output = storage.path(values.output) if values.output else directory / "loss_curves.png"
    draw_curves(runs, output)
    print(f"wrote {output}")


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_list("model_dir", None, "Directory of a run with metrics.jsonl, or several "
                      "directories separated by commas.", required=True)
    flags.DEFINE_string("output", None, "PNG file to write. Default: loss_curves.png in the run's "
                        "directory; for several runs in the current directory.")


run = functools.partial(command_line.run, main, define, summary=__doc__)

if __name__ == "__main__":
    run()
