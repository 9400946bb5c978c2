r"""Measures our exported training step on an NVIDIA GPU, beside Hugging Face's in PyTorch.

    python -m benchmarks.accelerator --steps=steps
    python -m benchmarks.accelerator --steps=steps --cases=base-256x128 --systems=ours

`python -m benchmarks.accelerator.export` writes the steps in an environment with TensorFlow; this
command needs none. It prints a table per case and writes results.md and results.json. A case takes
minutes: every system starts anew in every round, alone on the card. benchmarks/README.md describes
the method. It was tried on CPUs (--device=cpu) and never ran on a GPU.
"""

import dataclasses
import os
import pathlib

from absl import flags

from benchmarks.accelerator import steps
from benchmarks.harness import command
from benchmarks.harness.turns import Case, Role, System
from benchmarks.pretraining import report
from benchmarks.pretraining.workload import Setting
from electra_tf.modeling.flops import peak_flops
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import usable_cores

WARM_UP = ({"steps": 1}, {"steps": 10})
"""In every turn: a card's clocks rise, and CUDA graphs are recorded."""
_MEMORY_FRACTION = "0.92"
"""Fraction of the card's memory for JAX (default 0.75); PyTorch may take all of it."""


def systems_of(device: str, steps_dir: pathlib.Path) -> list[System]:
    """Returns all systems.

    Args:
        device: "cpu" or "cuda".
        steps_dir: directory that `export` wrote.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    variables = {"CUDA_VISIBLE_DEVICES": "-1" if device == "cpu" else visible,
                 "JAX_PLATFORMS": device if device == "cpu" else f"{device},cpu",
                 "XLA_PYTHON_CLIENT_MEM_FRACTION": _MEMORY_FRACTION}

    def system(name: str, title: str, module: str, role: Role, compiler: str, **more) -> System:
        setting = Setting(precision="bfloat16", compiler=compiler, device=device)
        return System(name=name, title=title, module=f"benchmarks.{module}", role=role,
                      settings={"setting": dataclasses.asdict(setting), **more},
                      variables=variables, in_peers_environment=role is not Role.OURS)

    return [
        system("ours", "electra_tf", "accelerator.ours", Role.OURS, "on",
               steps_dir=str(steps_dir.absolute())),
        system("matmuls", "matmuls", "pretraining.matmuls_torch", Role.LIMIT, "off"),
        *(system(f"hf-{name}", "Hugging Face", "pretraining.hugging_face", Role.PEER, compiler)
          for name, compiler in (("eager", "off"), ("compiled", "on"), ("graphs", "graphs")))]


def main() -> None:
    """Runs the cases one after the other; after each, the files hold the results so far.

    Raises:
        UserError: no steps, an unknown case or system, an --output_dir that can't be written, or
            no system that could be measured.
    """
    values = flags.FLAGS
    directory = pathlib.Path(values.steps)
    workloads = [dataclasses.replace(workload, threads=usable_cores())
                 for workload in steps.found(directory, values.cases)]
    bench = command.Bench.of_flags(systems_of(values.device, directory))
    results: list[report.Result] = []
    for workload in workloads:
        measured = bench.measure(Case(
            name=workload.case, fields={"workload": dataclasses.asdict(workload)},
            turns={"steps": {"steps": values.steps_per_turn}}, warm_up=WARM_UP,
            rounds=values.rounds), alone=True)
        name = next((one.accelerator for one in measured if one.accelerator), "")
        peak = (peak_flops(name, "bfloat16") if values.peak_tflops is None
                else values.peak_tflops * 1e12)
        results.append(report.Result(
            workload=workload, steps=values.steps_per_turn, measured=measured, peak=peak,
            device=device_line(name, peak)))
        report.save(bench, results)
    if not any(one.values("steps") for result in results for one in result.measured):
        raise UserError("no system could be measured; the reasons are above.")


def device_line(name: str, peak: float | None) -> str:
    """Returns the card in one line.

    Args:
        name: as its driver gives it; "" for the CPU.
        peak: dense bfloat16 FLOP/s; None if unknown.
    """
    if peak is not None:
        return f"{name or 'the CPU'}: dense bfloat16 peak {peak / 1e12:,.1f} TFLOP/s"
    if not name:
        return "the CPU, to try the benchmark: no share of a peak"
    return f"{name}: no peak in electra_tf/modeling/flops.py; set --peak_tflops"


if __name__ == "__main__":
    flags.DEFINE_string("steps", "steps", "Directory that benchmarks.accelerator.export wrote.")
    flags.DEFINE_list("cases", [], "Names of steps in it; all if empty, the quickest first.")
    flags.DEFINE_enum("device", "cuda", ["cuda", "cpu"],
                      "cuda: the first card that CUDA_VISIBLE_DEVICES names. cpu: to try it.")
    flags.DEFINE_float("peak_tflops", None, "The card's dense bfloat16 peak in 1e12 FLOP/s, "
                       "instead of electra_tf/modeling/flops.py's.", lower_bound=1e-3)
    flags.DEFINE_integer("steps_per_turn", 20, "Training steps per turn.", lower_bound=1)
    command.define_flags(rounds=3, systems=systems_of("cuda", pathlib.Path()), peers_python="")
    command.run(main, summary=__doc__, what=["steps", "cases", "device", "peak_tflops"],
                how=["steps_per_turn"])
