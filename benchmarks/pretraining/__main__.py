r"""Compares the pre-training step with Hugging Face, Model Garden and the machine's limit.

    make bench
    python -m benchmarks.pretraining --cases=small-128 --systems=ours,hf-bfloat16 --rounds=5

Prints a table per case. On two CPU cores the three cases take about an hour; stop other programs
first. benchmarks/README.md describes the measurement.
"""

import statistics
from collections.abc import Sequence
from typing import Any

from absl import flags

from benchmarks import driver
from benchmarks.driver import BASELINE, LIMIT, OURS, System
from benchmarks.pretraining.cases import CASES, OTHER_CASES, config_of, workload_of
from benchmarks.pretraining.matmuls import step_flops
from electra_tf.apps.planning import paper_flops
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.modeling import flops, parameter_shapes, specs

PRECISIONS = ("bfloat16", "float32")


def _system(name: str, module: str, role: str = BASELINE, **settings: Any) -> System:
    return System(name=name, module=f"benchmarks.pretraining.{module}", role=role,
                  settings=settings, pytorch=module in ("hugging_face", "matmuls"))


SYSTEMS = (
    *(_system(f"ours-{name}", "ours", OURS, precision=name) for name in PRECISIONS),
    *(_system(f"matmuls-{name}", "matmuls", LIMIT, precision=name) for name in PRECISIONS),
    *(_system(f"hf-{name}{'-compiled' * compiled}", "hugging_face", precision=name,
              compiled=compiled) for name in PRECISIONS for compiled in (False, True)),
    *(_system(f"mg-float32{'-xla' * compiled}", "model_garden", precision="float32",
              compiled=compiled) for compiled in (False, True)),
)


def flops_per_token(config: PretrainingConfig) -> dict[str, float]:
    """Returns the training FLOPs per token: of all matmuls, and by the paper's count."""
    model, length = config.model, config.data.max_seq_length
    both = specs.discriminator(model.discriminator), specs.language_model(
        "generator", model.generator, parameter_shapes.full_encoder(model.generator, "generator"))
    return {"matmuls": flops.matmul_flops_per_token(
                both, length, config.masking.max_predictions(length)),
            "paper": paper_flops.training_per_token(both, length)}


def section(case: str, systems: Sequence[System]) -> list[str]:
    """Returns the lines of one case: what was run, the machine's limit, the table."""
    work, counts = workload_of(case), flops_per_token(config_of(case))

    def speeds(system: System) -> list[float]:
        return [work.batch * work.length / seconds for seconds in system.values("seconds")]

    # The highest FLOP/s of the dense matmuls alone is the machine's limit.
    limits = {system.label: step_flops(work) / statistics.median(system.values("seconds"))
              for system in systems if system.role == LIMIT and system.values("seconds")}
    # Ours and the baselines, the fastest first; then failures, with those of limits.
    rows = sorted((system for system in systems if system.role != LIMIT or system.failure),
                  key=lambda system: -statistics.median(speeds(system) or [0.0]))
    columns = driver.compare(rows, "tokens/s", speeds)
    for heading, factor, form in (
            ("GFLOP/s", counts["matmuls"] / 1e9, ",.0f"),
            *((name, count / max(limits.values()), ".1%") for name, count in counts.items()
              if limits)):
        columns.append(driver.column(rows, heading, lambda row, factor=factor: [
            speed * factor for speed in speeds(row)], form))
    for heading, field, form in (("start s", "start_seconds", ".0f"), ("peak GB", "peak_gb", ".1f"),
                                 ("loss", "loss", ".1f")):
        columns.append(driver.column(
            rows, heading, lambda row, field=field: row.values(field), form))
    return [
        f"## {case}", "",
        f"- {work.batch} x {work.length} tokens, {work.predictions} of each {work.length} masked, "
        f"{work.threads} cores",
        f"- MFLOPs per token: {counts['matmuls'] / 1e6:,.1f} (matmuls), "
        f"{counts['paper'] / 1e6:,.1f} (paper)",
        "- GFLOP/s of the dense matmuls alone, the highest being the machine's limit: "
        + (", ".join(f"{name} {speed / 1e9:,.0f}" for name, speed in limits.items())
           or "not measured"), "", *driver.table(rows, columns), ""]


def main() -> None:
    """Measures one case after the other."""
    workloads = {case: vars(workload_of(case)) for case in flags.FLAGS.cases}
    systems = driver.select(SYSTEMS)
    for case, work in workloads.items():
        measured = driver.measure(case, systems, {
            "work": work, "warm_up": 2, "repeat": flags.FLAGS.steps}, rounds=flags.FLAGS.rounds)
        driver.print_page("Pre-training speed", section(case, measured), measured)


if __name__ == "__main__":
    flags.DEFINE_list("cases", list(CASES),
                      f"Cases to measure: {', '.join(CASES)}, toy; or {OTHER_CASES}.")
    flags.DEFINE_integer("steps", 5, "Training steps per round.", lower_bound=1)
    driver.run(main, __doc__, ["cases", "steps"], SYSTEMS, rounds=3)
