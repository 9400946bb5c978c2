r"""Writes training steps that are measured on a machine with an accelerator, or compiled for TPUs.

    python -m benchmarks.accelerator.export --output_dir=steps
    python -m benchmarks.accelerator.export --cases=large-2048x512-recompute --output_dir=others \
        --set runtime.gradient_accumulation_steps=8

A case has two files of 1 to 2 MB together, without weights: the benchmark makes new ones. --set and
--config change any setting of a run; such a step, CASE-changed, is compiled but not measured.
Tracing takes half a minute of one core, and 10 GB of memory for ELECTRA-Large.
benchmarks/README.md describes the measurement.
"""

import concurrent.futures
import multiprocessing
import pathlib

from absl import flags

from benchmarks.accelerator import lifted_step
from benchmarks.pretraining import cases
from benchmarks.pretraining.workload import StepOptions
from electra_tf.config import overrides
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import SIZES, PretrainingConfig
from electra_tf.platform import command_line, native_libraries
from electra_tf.platform.errors import UserError

DEFAULT_CASES = tuple(f"{size}-{batch}x128" for size in ("small", "base", "large")
                      for batch in (128, 256, 512, 1024))


def main() -> None:
    """Writes one step after the other, each in a process whose end frees up to 10 GB."""
    changes = overrides.given_settings({})
    directory, suffix = pathlib.Path(flags.FLAGS.output_dir), "-changed" if changes else ""
    configs = {
        directory / f"{name}{suffix}{lifted_step.SUFFIX}":
            override(cases.case_of(name).config(StepOptions(precision="bfloat16")), changes)
        for name in flags.FLAGS.cases}
    with concurrent.futures.ProcessPoolExecutor(
            1, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1) as process:
        for path, config in configs.items():
            try:
                process.submit(write, config, path).result()
            except concurrent.futures.process.BrokenProcessPool as error:
                raise UserError("the process that traces the step was killed, most likely because "
                                "memory ran out: ELECTRA-Large takes 10 GB.") from error
            print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


def write(config: PretrainingConfig, path: pathlib.Path) -> None:
    """Writes the step of a run's settings."""
    native_libraries.configure()
    from benchmarks.accelerator.lift import lift_without_records

    lifted_step.write(lift_without_records(config), path)


if __name__ == "__main__":
    flags.DEFINE_list("cases", list(DEFAULT_CASES), f"Cases: toy, or {cases.OTHER_CASES}.")
    flags.DEFINE_string("output_dir", "steps", "Directory to write the steps to.")
    overrides.define_setting_flags({}, SIZES)
    command_line.run(main, summary=__doc__, groups={
        "What": ["cases", "output_dir"], "Any other setting": overrides.ANY_SETTING})
