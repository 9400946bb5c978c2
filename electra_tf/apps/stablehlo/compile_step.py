r"""Compiles a training step for TPUs without a TPU, or writes it for other runtimes.

    python -m electra_tf.apps.stablehlo.compile_step --topology=v5e:2x4,v4:2x2x1 --model_size=base
    python -m electra_tf.apps.stablehlo.compile_step --export=step.stablehlo --model_size=small \
        --data_dir=records --model_dir=runs/small
    python -m electra_tf.apps.stablehlo.compile_step --take_back=trained.npz \
        --export=step.stablehlo --model_size=small --data_dir=records --model_dir=runs/small

The first needs what `make compile-env` installs, no records and no TPU; a step of ELECTRA-Base
takes minutes. The second writes what `electra_tf.apps.stablehlo.run_step` trains with. The third
makes a checkpoint of the result; run_pretraining.py with the same flags continues from it.
docs/how_to/accelerators.md lists what compiles where.
"""

import concurrent.futures
import multiprocessing
import os
import pathlib
import signal
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any, TypeVar

from absl import flags

from electra_tf.apps.stablehlo import artefact
from electra_tf.config import overrides, pretraining_flags
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.platform import command_line, native_logging, storage
from electra_tf.platform.errors import UserError

Result = TypeVar("Result")

ROOT = pathlib.Path(__file__).parents[3]
VARIABLE = "COMPILE_PYTHON"
GROUPS = {
    "What to do": ("topology", "export", "take_back"),
    "The run": ("model_size", "recipe", "data_dir", "model_dir", "vocab_file", "init_checkpoint",
                *pretraining_flags.GROUPS["Training"],
                "gradient_accumulation_steps", "gradient_checkpointing"),
    "Any other setting": overrides.ANY_SETTING,
}


def main() -> None:
    """Compiles or exports a step, or imports a trained state, according to the flags."""
    values = flags.FLAGS
    with overrides.naming_flags(pretraining_flags.SETTINGS):
        if not values.topology and not values.export:
            raise UserError("--topology or --export is needed: the TPUs to compile for, or the "
                            "file to write the step to.")
        if values.topology and (values.export or values.take_back):
            raise UserError("--topology excludes --export and --take_back; give one of them.")
        config = pretraining_flags.build_config(
            values.model_size, values.recipe,
            overrides.given_settings(pretraining_flags.SETTINGS))
        if values.topology:
            _compile(config, values.topology)
        else:
            _exchange(config)


def compile_python() -> pathlib.Path:
    """Returns the interpreter of the environment with JAX, which may be missing."""
    return pathlib.Path(os.environ.get(VARIABLE, ROOT / ".venv-compile" / "bin" / "python"))


def _compile(config: PretrainingConfig, topology: str) -> None:
    """Lifts the step once and compiles it for each topology, after checking all of them."""
    _ahead_of_time(f"--topology={topology}", f"--batch_size={config.training.train_batch_size}")
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / f"step{artefact.SUFFIX}"
        in_a_process(_write_lifted, config, path)
        _ahead_of_time(f"--topology={topology}", f"--step={path}")


def _ahead_of_time(*given: str) -> None:
    """Runs `ahead_of_time` in the environment with JAX; ends with its status if that is not 0."""
    python = compile_python()
    if not python.exists():
        raise UserError(f"there is no {python}: run `make compile-env`, or set {VARIABLE} to a "
                        "Python with the packages of requirements/compile.txt.")
    ended = subprocess.run(
        [str(python.absolute()), "-m", "electra_tf.apps.stablehlo.ahead_of_time", *given],
        cwd=ROOT, check=False)
    if ended.returncode == -signal.SIGKILL:
        raise UserError("the compiler was killed, most likely because memory ran out: "
                        "ELECTRA-Large takes 5 GB and more.")
    if ended.returncode:
        raise SystemExit(ended.returncode)  # Its reason is on stderr already.


def in_a_process(function: Callable[..., Result], *args: Any) -> Result:
    """Calls a function in a new process, whose end frees its memory: up to 10 GB."""
    try:
        with concurrent.futures.ProcessPoolExecutor(
                1, mp_context=multiprocessing.get_context("spawn")) as elsewhere:
            return elsewhere.submit(function, *args).result()
    except concurrent.futures.process.BrokenProcessPool as error:
        raise UserError("the process that traces the step was killed, most likely because "
                        "memory ran out: ELECTRA-Large takes 10 GB.") from error


def _write_lifted(config: PretrainingConfig, path: pathlib.Path) -> None:
    native_logging.quiet()
    from electra_tf.apps.stablehlo.lift import lift_without_records

    artefact.write(lift_without_records(config), path)


def _exchange(config: PretrainingConfig) -> None:
    values = flags.FLAGS
    for name in ("data_dir", "model_dir"):
        if not values[name].value:
            raise UserError(f"--{name} is needed: {values[name].help}")
    path = storage.require_local(storage.path(values.export), "--export", "it is a file to carry")
    artefact.require_name(path)

    from electra_tf.apps.stablehlo import lift
    from electra_tf.formats import pretrained
    from electra_tf.pretraining import setup

    initial = (pretrained.read(storage.path(values.init_checkpoint))
               if values.init_checkpoint else None)
    run = setup.prepare(
        lift.for_one_device(config), values.data_dir, storage.path(values.model_dir),
        storage.path(values.vocab_file) if values.vocab_file else None, initial, here=False)
    if values.take_back:
        print(f"saved {lift.take_back(run, path, storage.path(values.take_back))}")
        return
    step = lift.export(run, path)
    print(f"{path}: {len(step.module) / 1e6:,.1f} MB; {path.with_suffix('.json').name}: its "
          f"layout; {path.with_suffix('.npz').name}: {len(step.layout.state):,} tensors of state")


def define() -> None:
    """Defines the flags."""
    pretraining_flags.define()
    flags.DEFINE_string("topology", "", "TPUs to compile for, generation and chips: v2:2x2, "
                        "v3:2x2, v4:2x2x1, v5e:2x4, v5p:2x2x1, v6e:2x4; or several, with commas.")
    flags.DEFINE_string("export", "", "File to write the step to, ending in .stablehlo; layout and "
                        "state go beside it. With --take_back: the step that was exported.")
    flags.DEFINE_string("take_back", "", "State that run_step wrote; it becomes a checkpoint of "
                        "--model_dir.")


def run() -> None:
    """Runs the command line."""
    define()
    command_line.run(main, summary=__doc__, groups=GROUPS)


if __name__ == "__main__":
    run()
