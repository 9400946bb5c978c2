r"""Measures our pre-training step beside its peers', and the machine's own limit.

    make bench
    python -m benchmarks.pretraining --cases=small-128 --systems=ours,hf-bfloat16 --rounds=3

Prints a table per case and writes results.md and results.json. On two CPU cores the three cases
take about an hour; stop other programs first. benchmarks/README.md describes the measurement.
"""

import dataclasses

from absl import flags

from benchmarks.harness import command
from benchmarks.harness.turns import Case, Role, System
from benchmarks.pretraining import cases, report
from benchmarks.pretraining.workload import Setting
from electra_tf.platform.machine import usable_cores

WARM_UP = ({"steps": 1}, {"steps": 2})
_GROUPS = {"ours": (Role.OURS, "electra_tf"), "hf": (Role.PEER, "Hugging Face"),
           "mg": (Role.PEER, "Model Garden"), "matmuls": (Role.LIMIT, "matmuls")}


def _system(name: str, module: str, precision: str, compiler: str = "off") -> System:
    role, title = _GROUPS[name.partition("-")[0]]
    return System(
        name=name, title=title, role=role, module=f"benchmarks.pretraining.{module}",
        settings={"setting": dataclasses.asdict(Setting(precision=precision, compiler=compiler))},
        in_peers_environment=module in ("hugging_face", "matmuls_torch"),
        always=role is Role.LIMIT)


SYSTEMS = (
    _system("ours-bfloat16", "ours", "bfloat16", "auto"),
    _system("ours-float32", "ours", "float32", "auto"),
    _system("matmuls-tensorflow-bfloat16", "matmuls_tensorflow", "bfloat16"),
    _system("matmuls-tensorflow-float32", "matmuls_tensorflow", "float32"),
    _system("matmuls-torch-bfloat16", "matmuls_torch", "bfloat16"),
    _system("matmuls-torch-float32", "matmuls_torch", "float32"),
    _system("hf-bfloat16", "hugging_face", "bfloat16"),
    _system("hf-bfloat16-compiled", "hugging_face", "bfloat16", "on"),
    _system("hf-float32", "hugging_face", "float32"),
    _system("hf-float32-compiled", "hugging_face", "float32", "on"),
    _system("mg-float32", "model_garden", "float32"),
    _system("mg-float32-xla", "model_garden", "float32", "on"),
    # Fails in release 2.20; the table shows the reason.
    _system("mg-bfloat16", "model_garden", "bfloat16"),
)


def main() -> None:
    """Runs the cases one after the other; after each, the files hold the results so far.

    Raises:
        UserError: an unknown case or system, or an --output_dir that can't be written.
    """
    values = flags.FLAGS
    threads = values.threads or usable_cores()
    workloads = [cases.workload_of(name, threads) for name in values.cases]
    bench = command.Bench.of_flags(SYSTEMS)
    results: list[report.Result] = []
    for workload in workloads:
        case = Case(name=workload.case, fields={"workload": dataclasses.asdict(workload)},
                    turns={"steps": {"steps": values.steps}}, warm_up=WARM_UP,
                    rounds=values.rounds)
        results.append(report.Result(workload=workload, steps=values.steps,
                                     measured=bench.measure(case, threads=threads)))
        report.save(bench, results)


if __name__ == "__main__":
    flags.DEFINE_list("cases", list(cases.DEFAULT_CASES),
                      f"Some of {', '.join(cases.CASES)}; or {cases.OTHER_CASES}.")
    flags.DEFINE_integer("steps", 1, "Training steps per turn.", lower_bound=1)
    flags.DEFINE_integer("threads", 0, "CPU cores to use; 0 for all.", lower_bound=0)
    command.define_flags(rounds=7, systems=SYSTEMS)
    command.run(main, summary=__doc__, what=["cases"], how=["steps", "threads"])
