r"""Writes training steps that are measured on a machine with an accelerator.

    python -m benchmarks.accelerator.export --output_dir=steps
    python -m benchmarks.accelerator.export --cases=base-256x512,large-128x512-recompute \
        --output_dir=steps

A case has two files of 1 to 2 MB together, without weights: the benchmark makes new ones.
Tracing takes half a minute of one core, and 10 GB of memory for ELECTRA-Large.
benchmarks/README.md describes the measurement.
"""

import pathlib

from absl import flags

from benchmarks.pretraining import cases
from benchmarks.pretraining.workload import Setting
from electra_tf.apps.stablehlo import artefact
from electra_tf.apps.stablehlo.compile_step import in_a_process
from electra_tf.config.overrides import override
from electra_tf.platform import command_line, native_logging

DEFAULT_CASES = tuple(f"{size}-{batch}x128" for size in ("small", "base", "large")
                      for batch in (128, 256, 512, 1024))


def main() -> None:
    """Writes one step after the other, each in a process whose end frees its memory."""
    for name in flags.FLAGS.cases:
        cases.case_of(name)  # Refuses unknown cases before the first is written.
    for name in flags.FLAGS.cases:
        path = pathlib.Path(flags.FLAGS.output_dir) / f"{name}{artefact.SUFFIX}"
        in_a_process(write, name, path)
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


def write(name: str, path: pathlib.Path) -> None:
    """Writes the step of a case, in bfloat16."""
    native_logging.quiet()
    from electra_tf.apps.stablehlo.lift import lift_without_records

    case = cases.case_of(name)
    config = override(case.config(Setting(precision="bfloat16")),
                      {"data.max_seq_length": case.length})
    artefact.write(lift_without_records(config), path)


if __name__ == "__main__":
    flags.DEFINE_list("cases", list(DEFAULT_CASES), f"toy, or {cases.OTHER_CASES}.")
    flags.DEFINE_string("output_dir", "steps", "Directory for the steps.")
    command_line.run(main, summary=__doc__, groups={"What": ["cases", "output_dir"]})
