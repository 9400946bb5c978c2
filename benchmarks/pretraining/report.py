"""Writes throughputs, ratios and shares of the machine's limit as a table and JSON."""

import dataclasses
from collections.abc import Sequence

from benchmarks.harness import tables
from benchmarks.harness.command import Bench
from benchmarks.harness.turns import BenchmarkCase, Measurement, Role
from benchmarks.pretraining.matmuls import step_flops
from benchmarks.pretraining.workload import Workload
from electra_tf.apps.planning import paper_flops
from electra_tf.config.model import EncoderConfig
from electra_tf.modeling import flops, network_specs, weight_table


def flops_per_token(workload: Workload) -> dict[str, float]:
    """Returns the training FLOPs per token: of all matmuls, and by the paper's count."""
    discriminator, generator = (EncoderConfig(
        vocab_size=workload.vocab_size, max_position_embeddings=workload.length, type_vocab_size=2,
        hidden_dropout=0.1, attention_dropout=0.1, initializer_range=0.02,
        **dataclasses.asdict(sizes)) for sizes in (workload.discriminator, workload.generator))
    both = network_specs.discriminator(discriminator), network_specs.language_model(
        "generator", generator, weight_table.full_encoder(generator, "generator"))
    return {"matmuls": flops.matmul_flops_per_token(both, workload.length, workload.predictions),
            "paper": paper_flops.training_per_token(both, workload.length)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CaseResult:
    """One case: the workload, and the systems' replies."""

    workload: Workload
    steps: int
    """Steps per turn."""
    measured: Sequence[Measurement]

    def throughputs(self, result: Measurement) -> list[float]:
        """Returns the tokens/s of every round."""
        return [self.workload.tokens * self.steps / seconds for seconds in result.values("steps")]

    @property
    def limits(self) -> dict[str, float]:
        """Library and number type -> median FLOP/s of the dense matmuls alone, highest first."""
        work = step_flops(self.workload) * self.steps
        limits = {result.label.removeprefix("matmuls "): work / tables.median(seconds)
                  for result in self.measured
                  if result.system.role is Role.LIMIT and (seconds := result.values("steps"))}
        return dict(sorted(limits.items(), key=lambda item: -item[1]))


def section(result: CaseResult) -> list[str]:
    """Returns the lines of one case: what was run, the machine's limit, the table."""
    work, counts = result.workload, flops_per_token(result.workload)
    # Ours and the baselines, fastest first; then failures, with those of limits.
    systems = sorted((system for system in result.measured
                      if system.system.role is not Role.LIMIT or system.failure),
                     key=lambda system: -(tables.median(result.throughputs(system)) or 0.0))
    medians = [tables.median(result.throughputs(system)) for system in systems]
    columns = tables.compared(systems, "tokens/s", result.throughputs)
    columns.append(["GFLOP/s", *(tables.ratio(speed, 1e9 / counts["matmuls"], ",.0f")
                                 for speed in medians)])
    limits = {"": max(result.limits.values(), default=None)}
    device = next((system.accelerator for system in systems if system.accelerator), "")
    if peak := flops.peak_flops(device, "bfloat16"):
        limits["of peak: "] = peak
    columns += [[prefix + name, *(tables.ratio(speed, limit and limit / count, ".1%")
                                  for speed in medians)]
                for prefix, limit in limits.items() for name, count in counts.items()]
    columns += [
        ["start s", *(tables.ratio(system.start_seconds, 1, ".0f") for system in systems)],
        ["peak GB", *(tables.ratio(system.peak_bytes or None, 1e9, ".1f") for system in systems)],
        ["loss", *(f"{losses[-1]:.1f}" if (losses := system.values("steps", "loss")) else "-"
                   for system in systems)]]
    measured_limits = ", ".join(f"{name} {limit / 1e9:,.0f}"
                                for name, limit in result.limits.items()) or "not measured"
    rounds = max(len(system.values("steps")) for system in result.measured)
    return [
        f"## {work.case}", "",
        f"- {work.batch} x {work.length} tokens, {work.predictions} of each {work.length} masked, "
        f"{work.threads} cores; {rounds} rounds of {result.steps} steps",
        *([f"- {device}: dense bfloat16 peak "
           f"{f'{peak / 1e12:,.1f} TFLOP/s' if peak else 'unknown'}"] if device else []),
        f"- MFLOPs per token: {counts['matmuls'] / 1e6:,.1f} (matmuls), "
        f"{counts['paper'] / 1e6:,.1f} (paper)",
        f"- GFLOP/s of the dense matmuls alone, the highest being the machine's limit: "
        f"{measured_limits}", f"- {tables.versions_line(result.measured)}", "",
        *tables.table(systems, columns), "", *tables.failures(systems), ""]


def measure(bench: Bench, workloads: Sequence[Workload], *, steps: int, rounds: int,
            warm_up: Sequence[int], alone: bool = False) -> list[CaseResult]:
    """Measures the cases one after the other; after each, the files hold the results so far.

    A turn has `steps` training steps, and `warm_up` are the numbers of steps before the turns.
    """
    results = []
    for work in workloads:
        measured = bench.measure(BenchmarkCase(
            name=work.case, fields={"workload": dataclasses.asdict(work)},
            turns={"steps": {"steps": steps}}, warm_up=[{"steps": count} for count in warm_up],
            rounds=rounds), alone=alone)
        results.append(CaseResult(workload=work, steps=steps, measured=measured))
        bench.save("results", "Pre-training speed", [], sum(map(section, results), []), {
            "cases": [dataclasses.asdict(result) for result in results]})
    return results
