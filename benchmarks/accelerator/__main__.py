r"""Compares the exported training step on an NVIDIA GPU with Hugging Face in PyTorch.

    python -m benchmarks.accelerator --steps=steps
    python -m benchmarks.accelerator --steps=steps --cases=base-256x128 --systems=ours

`python -m benchmarks.accelerator.export` writes the steps in an environment with TensorFlow; this
command needs none. It prints a table per case and writes results.md and results.json. A case takes
minutes, because every system starts in a new process in every round. benchmarks/README.md describes
the measurement. It was tested on CPUs (--device=cpu) and has not run on a GPU.
"""

import dataclasses
import os
import pathlib
from collections.abc import Sequence

from absl import flags

from benchmarks.accelerator import lifted_step
from benchmarks.harness import command
from benchmarks.harness.turns import System, system
from benchmarks.pretraining import cases, report
from benchmarks.pretraining.workload import StepOptions, Workload
from electra_tf.platform.errors import UserError


def systems_on(device: str, steps_dir: pathlib.Path) -> list[System]:
    """Returns all systems on "cpu" or "cuda", for the steps in a directory of `export`."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    variables = {"CUDA_VISIBLE_DEVICES": "-1" if device == "cpu" else visible,
                 "JAX_PLATFORMS": device if device == "cpu" else f"{device},cpu",
                 # Share of the GPU's memory (default 0.75); PyTorch may take all of it.
                 "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.92"}

    def in_bfloat16(name: str, module: str, compiler: str, **settings: str) -> System:
        options = StepOptions(precision="bfloat16", compiler=compiler, device=device)
        return system(name, module, variables=variables, options=dataclasses.asdict(options),
                      **settings)

    return [
        in_bfloat16("ours", "accelerator.ours", "on", steps_dir=str(steps_dir.absolute())),
        in_bfloat16("matmuls", "pretraining.matmuls", "off", library="PyTorch"),
        in_bfloat16("hf-eager", "pretraining.hugging_face", "off"),
        in_bfloat16("hf-compiled", "pretraining.hugging_face", "on"),
        in_bfloat16("hf-graphs", "pretraining.hugging_face", "graphs")]


def workloads_of(steps_dir: pathlib.Path, names: Sequence[str]) -> list[Workload]:
    """Returns these cases, or without names all with steps in a directory, the smallest first.

    Raises:
        UserError: the directory has no step, or not that of a case.
    """
    exported = sorted(path.stem for path in steps_dir.glob(f"*{lifted_step.SUFFIX}"))
    unknown = [name for name in names if name not in exported]
    if unknown or not exported:
        raise UserError(f"--steps={steps_dir} has no step of {', '.join(unknown) or 'any case'}; "
                        f"it has: {', '.join(exported) or 'none'}. Where TensorFlow is, write some "
                        f"by `python -m benchmarks.accelerator.export --output_dir={steps_dir}`.")
    if names:
        return [cases.workload_of(name) for name in names]
    return sorted(map(cases.workload_of, exported), key=lambda work: (
        work.tokens * report.flops_per_token(work)["matmuls"]))


def main() -> None:
    """Measures the cases; `UserError` if no system could be measured."""
    values = flags.FLAGS
    directory = pathlib.Path(values.steps)
    workloads = workloads_of(directory, values.cases)
    results = report.measure(
        command.Bench(systems_on(values.device, directory), on_cpu=False), workloads,
        alone=True, steps=values.steps_per_turn, rounds=values.rounds,
        warm_up=(1, 10))  # A GPU's clocks rise, and CUDA graphs are recorded.
    if not any(system.values("steps") for result in results for system in result.measured):
        raise UserError("no system could be measured; the reasons are above.")


if __name__ == "__main__":
    flags.DEFINE_string("steps", "steps", "Directory that benchmarks.accelerator.export wrote.")
    flags.DEFINE_list("cases", [], "Names of steps in --steps. Default: all, the fastest first.")
    flags.DEFINE_enum("device", "cuda", ["cuda", "cpu"],
                      "Device: cuda, the first GPU of CUDA_VISIBLE_DEVICES, or cpu, to test it.")
    flags.DEFINE_integer("steps_per_turn", 20, "Training steps per turn.", lower_bound=1)
    command.run(main, __doc__, ["steps", "cases", "device", "steps_per_turn"],
                systems_on("cuda", pathlib.Path()), rounds=3, peers_python="")
