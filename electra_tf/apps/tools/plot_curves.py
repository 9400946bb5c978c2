"""Draws the loss curves of one run, or of several over each other.

Example:
    python -m electra_tf.apps.tools.plot_curves --model_dir=runs/small
    python -m electra_tf.apps.tools.plot_curves --model_dir=runs/a,runs/b --output=compared.png
"""

from absl import flags

from electra_tf.checkpoints.run_directory import METRICS_FILE
from electra_tf.platform import command_line, errors, storage
from electra_tf.reporting.curves import draw_curves
from electra_tf.reporting.metrics_log import read_metrics

_MODEL_DIR = flags.DEFINE_list(
    "model_dir", None, "Directory of a run, with its metrics.jsonl; several, separated by commas, "
    "are laid over each other.")
_OUTPUT = flags.DEFINE_string(
    "output", None, "The PNG to write. Without it: loss_curves.png in the run's directory, or here "
    "for several runs.")


def main() -> None:
    """Reads every run's records, draws them and says where.

    Raises:
        UserError: no --model_dir, a run without records, or an unwritable --output.
    """
    directories = [storage.path(name) for name in _MODEL_DIR.value or ()]
    if not directories:
        raise errors.UserError("--model_dir is missing; name the directory of a run.")
    runs = {str(path): read_metrics(path / METRICS_FILE) for path in directories}
    home = directories[0] if len(directories) == 1 else storage.path(".")
    output = storage.path(_OUTPUT.value) if _OUTPUT.value else home / "loss_curves.png"
    draw_curves(runs, output)
    print(f"wrote {output}")


if __name__ == "__main__":
    command_line.run(
        main,
        summary=__doc__,
        groups={"Runs": ["model_dir"], "Output": ["output"]},
    )
