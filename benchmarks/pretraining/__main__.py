r"""Compares the pre-training step with Hugging Face, Model Garden and the machine's limit.

    make bench
    python -m benchmarks.pretraining --cases=small-128 --systems=ours,hf-bfloat16 --rounds=3

Prints a table per case and writes results.md and results.json. On two CPU cores the three cases
take about an hour; stop other programs first. benchmarks/README.md describes the measurement.
"""

import dataclasses

from absl import flags

from benchmarks.harness import command
from benchmarks.harness.turns import System, system
from benchmarks.pretraining import cases, report
from benchmarks.pretraining.workload import StepOptions


def _system(name: str, module: str, precision: str, compiler: str = "off",
            **settings: str) -> System:
    return system(name, f"pretraining.{module}", always=module == "matmuls", options=(
        dataclasses.asdict(StepOptions(precision=precision, compiler=compiler))), **settings)


SYSTEMS = (
    _system("ours-bfloat16", "ours", "bfloat16", "auto"),
    _system("ours-float32", "ours", "float32", "auto"),
    *(_system(f"matmuls-{library.lower()}-{precision}", "matmuls", precision, library=library)
      for library in ("TensorFlow", "PyTorch") for precision in ("bfloat16", "float32")),
    _system("hf-bfloat16", "hugging_face", "bfloat16"),
    _system("hf-bfloat16-compiled", "hugging_face", "bfloat16", "on"),
    _system("hf-float32", "hugging_face", "float32"),
    _system("hf-float32-compiled", "hugging_face", "float32", "on"),
    _system("mg-float32", "model_garden", "float32"),
    _system("mg-float32-xla", "model_garden", "float32", "on"),
)


def main() -> None:
    """Measures the cases; `UserError` for an unknown case or an unknown system."""
    values = flags.FLAGS
    workloads = [cases.workload_of(name) for name in values.cases]
    report.measure(command.Bench(SYSTEMS), workloads, steps=values.steps, rounds=values.rounds,
                   warm_up=(1, 2))


if __name__ == "__main__":
    flags.DEFINE_list("cases", list(cases.DEFAULT_CASES),
                      f"Cases to measure: {', '.join(cases.CASES)}; or {cases.OTHER_CASES}.")
    flags.DEFINE_integer("steps", 1, "Training steps per turn.", lower_bound=1)
    command.run(main, __doc__, ["cases", "steps"], SYSTEMS, rounds=7)
