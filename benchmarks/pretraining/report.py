"""Speeds, ratios and shares of what the machine can do: the table and the JSON beside it."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.harness import tables
from benchmarks.harness.command import Bench
from benchmarks.harness.turns import Measurement, Role
from benchmarks.pretraining import matmuls
from benchmarks.pretraining.workload import Workload
from electra_tf.config.model import EncoderConfig
from electra_tf.modeling import flops, weight_table


def paper_flops_per_token(workload: Workload) -> float:
    """Returns the training FLOPs per token as the paper counts them."""
    return flops.paper_per_token(_networks(workload), workload.length)


def matmul_flops_per_token(workload: Workload) -> float:
    """Returns the training FLOPs per token of matrix multiplications, attention's included."""
    return flops.products_per_token(
        _networks(workload), workload.length, workload.predictions / workload.length)


def _networks(workload: Workload) -> tuple[weight_table.Network, weight_table.Network]:
    """Returns the discriminator and the generator."""
    discriminator, generator = (EncoderConfig(
        vocab_size=workload.vocab_size, max_position_embeddings=workload.length, type_vocab_size=2,
        hidden_dropout=0.1, attention_dropout=0.1, initializer_range=0.02,
        **dataclasses.asdict(encoder)) for encoder in (workload.discriminator, workload.generator))
    return (weight_table.discriminator(discriminator), weight_table.language_model(
        "generator", generator, weight_table.whole_encoder(generator, "generator")))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """One case: the workload, and the systems' replies."""

    workload: Workload
    steps: int
    """Steps per turn."""
    measured: Sequence[Measurement]
    peak: float | None = None
    """Dense bfloat16 FLOP/s of the card by its data sheet; None for the CPU, or if unknown."""
    device: str = ""
    """The card in one line; "" for the CPU."""

    @property
    def systems(self) -> list[Measurement]:
        """Ours and the peers, fastest first, failures last, with the limits that failed."""
        shown = [one for one in self.measured if one.system.role is not Role.LIMIT or one.failure]
        return sorted(shown, key=lambda one: -(self.speed(one) or 0.0))

    def speeds(self, one: Measurement) -> list[float]:
        """Returns the tokens/s of every round."""
        return [self.workload.tokens * self.steps / seconds for seconds in one.values("steps")]

    def speed(self, one: Measurement) -> float | None:
        """Returns the median tokens/s."""
        return tables.median(self.speeds(one))

    @property
    def limits(self) -> dict[str, float]:
        """Library and number type -> median FLOP/s of the dense matrix multiplications alone."""
        work = matmuls.step_flops(self.workload) * self.steps
        return {one.label.removeprefix("matmuls "): work / tables.median(one.values("steps"))
                for one in self.measured if one.system.role is Role.LIMIT and one.values("steps")}

    @property
    def limit(self) -> float | None:
        """The machine's limit: the highest FLOP/s of the limits."""
        return max(self.limits.values(), default=None)


def section(result: Result) -> list[str]:
    """Returns the lines of one case: what was run, the machine's limit, the table."""
    work = result.workload
    limits = ", ".join(f"{label} {limit / 1e9:,.0f}" for label, limit in sorted(
        result.limits.items(), key=lambda item: -item[1]))
    rounds = max(len(one.values("steps")) for one in result.measured)
    return [
        f"## {work.case}", "",
        f"- {work.batch} x {work.length} tokens, {work.predictions} of each {work.length} masked, "
        f"{work.threads} cores; {rounds} rounds of {result.steps} steps",
        *([f"- {result.device}"] if result.device else []),
        f"- MFLOPs per token: {matmul_flops_per_token(work) / 1e6:,.1f} (matmuls), "
        f"{paper_flops_per_token(work) / 1e6:,.1f} (paper)",
        f"- GFLOP/s of the dense matmuls alone, the highest being the machine's limit: "
        f"{limits or 'not measured'}",
        f"- {tables.versions_line(result.measured)}", "",
        *tables.table(_lines(result)), "", *tables.failures(result.systems)]


def _lines(result: Result) -> list[list[str]]:
    fastest = tables.fastest_peer(result.measured, result.speeds)
    counts = {"matmuls": matmul_flops_per_token(result.workload),
              "paper": paper_flops_per_token(result.workload)}
    columns: dict[str, Callable[[Measurement], str]] = {
        "system": lambda one: one.label,
        "tokens/s": lambda one: tables.ranged(result.speeds(one)),
        "x fastest peer": lambda one: tables.ratio(result.speed(one), fastest),
        "GFLOP/s": lambda one: tables.ratio(result.speed(one), 1e9 / counts["matmuls"], ",.0f")}
    for prefix, limit in {"": result.limit, "of peak: ": result.peak}.items():
        for name, count in counts.items():
            if prefix == "" or limit is not None:
                columns[prefix + name] = lambda one, limit=limit and limit / count: tables.ratio(
                    result.speed(one), limit, ".1%")
    columns |= {
        "start s": lambda one: tables.number(one.start_seconds, ".0f"),
        "peak GB": lambda one: tables.number(one.peak_bytes / 1e9 or None, ".1f"),
        "loss": lambda one: tables.number(
            one.turns["steps"][-1]["loss"] if one.values("steps") else None, ".1f")}
    return [list(columns), *([cell(one) for cell in columns.values()] for one in result.systems)]


def save(bench: Bench, results: Sequence[Result]) -> None:
    """Prints and writes all cases so far: the tables, medians, limits and every turn's seconds."""
    bench.save("results", "Pre-training speed", [], [
        line for result in results for line in (*section(result), "")], content(results))


def content(results: Sequence[Result]) -> dict[str, Any]:
    """Returns the cases for JSON."""
    return {"cases": [{
        "workload": dataclasses.asdict(result.workload), "steps": result.steps,
        "machine_limit": result.limit, "limits": result.limits, "peak": result.peak,
        "tokens_per_second": {one.label: result.speed(one) for one in result.systems},
        "measurements": [dataclasses.asdict(one) for one in result.measured]}
        for result in results]}
