r"""Trains with an exported step on whatever JAX runs on: CPU, GPUs, TPUs; needs no TensorFlow.

    .venv-compile/bin/python -m electra_tf.apps.stablehlo.run_step --step=step.stablehlo \
        --data_dir=records --state=trained.npz --last_step=1000

`make compile-env` installs what it needs; step.stablehlo, with step.json and step.npz beside it,
comes from `compile_step --export`. The state is saved to --state on the way, at the end and at
SIGTERM or Ctrl-C, and the same command goes on from it; trained.jsonl gets a record per report.
`compile_step --take_back` makes a checkpoint of the state.
"""

from absl import flags

from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError

GROUPS = {"What": ("step", "data_dir", "state"),
          "How long": ("last_step", "log_every_steps", "save_every_steps")}


def main() -> None:
    """Trains."""
    values = flags.FLAGS
    for name in GROUPS["What"]:
        if not values[name].value:
            raise UserError(f"--{name} is needed: {values[name].help}")
    state = storage.require_local(storage.path(values.state), "--state",
                                  "it is replaced as a whole")
    if state.suffix != ".npz":
        raise UserError(f"--state must end in .npz. Received: {str(state)!r}")
    step = storage.require_local(storage.path(values.step), "--step", "it is read as a whole")
    try:
        from electra_tf.apps.stablehlo import training
    except ModuleNotFoundError as error:
        raise UserError(f"there is no {error.name} here; run this command with the Python of "
                        "`make compile-env`.") from error

    training.train(training.Session(
        step_path=step, data_dir=values.data_dir, state_path=state, last_step=values.last_step,
        log_every_steps=values.log_every_steps, save_every_steps=values.save_every_steps))


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("step", None, "File that compile_step --export wrote.")
    flags.DEFINE_string("data_dir", None, "Records that the step was exported with: a directory, "
                        "or several as run_pretraining.py takes them.")
    flags.DEFINE_string("state", None, "File of the state, ending in .npz: continued from if it is "
                        "there, and written.")
    flags.DEFINE_integer("last_step", 0, "Train up to this step; 0: the run's last.", lower_bound=0)
    flags.DEFINE_integer("log_every_steps", 100, "Steps between reports.", lower_bound=1)
    flags.DEFINE_integer("save_every_steps", 1000, "Steps between states that are saved.",
                         lower_bound=1)


def run() -> None:
    """Runs the command line."""
    define()
    command_line.run(main, summary=__doc__, groups=GROUPS)


if __name__ == "__main__":
    run()
