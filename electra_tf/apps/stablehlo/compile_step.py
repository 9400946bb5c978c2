r"""Compiles a training step for TPUs or GPUs that aren't there, or writes it for other runtimes.

    python -m electra_tf.apps.stablehlo.compile_step --topology=v5e:2x4 --model_size=base
    python -m electra_tf.apps.stablehlo.compile_step --topology=v3:2x2,v4:2x2x1 --model_size=large \
        --max_seq_length=128 --train_batch_size=256
    python -m electra_tf.apps.stablehlo.compile_step --export=step.stablehlo --model_size=small \
        --data_dir=records --model_dir=runs/small
    python -m electra_tf.apps.stablehlo.compile_step --take_back=trained.npz \
        --export=step.stablehlo --model_size=small --data_dir=records --model_dir=runs/small

The first two need what `make compile-env` installs, no records and no TPU; a step of ELECTRA-Base
takes minutes. --topology=h100:1, for GPUs, needs `make compile-cuda` besides. The third writes what
`electra_tf.apps.stablehlo.run_step` trains with, the fourth makes a checkpoint of the result, and
run_pretraining.py with the same flags goes on from there. docs/how_to/accelerators.md lists what
compiles where.
"""

import concurrent.futures
import multiprocessing
import pathlib
import sys
import tempfile
from collections.abc import Callable
from typing import Any, TypeVar

from absl import flags

from electra_tf.apps.stablehlo import artefact, compile_environment
from electra_tf.apps.stablehlo.compile_environment import Cores, Report
from electra_tf.config import overrides, pretraining_flags
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.platform import command_line, native_logging, storage
from electra_tf.platform.errors import UserError

Result = TypeVar("Result")

GROUPS = {
    "What to do": ("topology", "export", "take_back"),
    "The run": ("model_size", "recipe", "data_dir", "model_dir", "vocab_file", "init_checkpoint",
                *pretraining_flags.GROUPS["Training"],
                "gradient_accumulation_steps", "gradient_checkpointing"),
    "Any other setting": overrides.ANY_SETTING,
}


def main() -> None:
    """Does what the flags ask for."""
    with overrides.naming_flags(pretraining_flags.SETTINGS):
        _run()


def _run() -> None:
    values = flags.FLAGS
    if not values.topology and not values.export:
        raise UserError("--topology or --export is needed: for which TPUs to compile, or where to "
                        "write the step.")
    if values.topology and (values.export or values.take_back):
        raise UserError("--topology compiles, --export and --take_back don't; give one of them.")
    config = pretraining_flags.build_config(
        values.model_size, values.recipe, overrides.given_settings(pretraining_flags.SETTINGS))
    if values.topology:
        _compile(config, values.topology.split(","))
    else:
        _exchange(config)


def _compile(config: PretrainingConfig, topologies: list[str]) -> None:
    """Lifts the step once and compiles it for each, after all of them are known to be possible."""
    for name in topologies:
        cores = compile_environment.ask(Cores, f"--topology={name}")
        batch = config.training.train_batch_size
        if batch % cores.count:
            raise UserError(
                f"training.train_batch_size={batch} can't be split over the {cores.count} cores of "
                f"{name}. Take a multiple of {cores.count}, for example "
                f"{max(cores.count, batch // cores.count * cores.count)}.")
    problems = 0
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / f"step{artefact.SUFFIX}"
        batch_size, length = in_a_process(_write_lifted, config, path)
        print(f"batch {batch_size}, L = {length}; memory, FLOPs and bytes are of one core and step"
              f"\n{compile_environment.HEADING}", flush=True)
        for name in topologies:
            found = compile_environment.ask(Report, f"--step={path}", f"--topology={name}")
            print(compile_environment.line(found), flush=True)
            problems += found.problem is not None
    if problems:
        print(f"error: {problems} of {len(topologies)} don't compile.", file=sys.stderr)
        raise SystemExit(1)


def in_a_process(function: Callable[..., Result], *args: Any) -> Result:
    """Calls a function in a process, which frees its memory: large networks take 10 GB."""
    try:
        with concurrent.futures.ProcessPoolExecutor(
                1, mp_context=multiprocessing.get_context("spawn")) as elsewhere:
            return elsewhere.submit(function, *args).result()
    except concurrent.futures.process.BrokenProcessPool as error:
        raise UserError("the process that traces the step was killed, most likely for want of "
                        "memory: ELECTRA-Large takes 10 GB.") from error


def _write_lifted(config: PretrainingConfig, path: pathlib.Path) -> tuple[int, int]:
    """Writes a step; returns its batch and its length."""
    native_logging.quiet()
    from electra_tf.apps.stablehlo.lift import lift_without_records

    step = lift_without_records(config)
    artefact.write(step, path)
    return step.layout.batch[0].shape


def _exchange(config: PretrainingConfig) -> None:
    values = flags.FLAGS
    for name in ("data_dir", "model_dir"):
        if not values[name].value:
            raise UserError(f"--{name} is needed: {values[name].help}")
    path = storage.require_local(storage.path(values.export), "--export", "it is a file to carry")
    artefact.require_name(path)

    from electra_tf.apps.stablehlo import exchange
    from electra_tf.apps.stablehlo.lift import for_one_device
    from electra_tf.checkpoints import formats
    from electra_tf.pretraining import setup

    initial = (formats.read(storage.path(values.init_checkpoint))
               if values.init_checkpoint else None)
    run = setup.prepare(
        for_one_device(config), values.data_dir, storage.path(values.model_dir),
        storage.path(values.vocab_file) if values.vocab_file else None, initial, here=False)
    if values.take_back:
        print(f"saved {exchange.take_back(run, path, storage.path(values.take_back))}")
        return
    step = exchange.export(run, path)
    count = sum(1 for _ in step.layout.state)
    print(f"{path}: {len(step.module) / 1e6:,.1f} MB; {path.with_suffix('.json').name}: its "
          f"layout; {path.with_suffix('.npz').name}: {count:,} tensors of state")


def define() -> None:
    """Defines the flags."""
    pretraining_flags.define()
    flags.DEFINE_string("topology", "", "What to compile for: TPUs, generation and chips, v2:2x2, "
                        "v3:2x2, v4:2x2x1, v5e:2x4, v5p:2x2x1, v6e:2x4; GPUs of a machine, a100:8, "
                        "h100:8, h200:8; or several, with commas.")
    flags.DEFINE_string("export", "", "File to write the step to, ending in .stablehlo; layout and "
                        "state go beside it. With --take_back: the step that was exported.")
    flags.DEFINE_string("take_back", "", "State that run_step wrote, to become a checkpoint of "
                        "--model_dir.")


def run() -> None:
    """Runs the command line."""
    define()
    command_line.run(main, summary=__doc__, groups=GROUPS)


if __name__ == "__main__":
    run()
