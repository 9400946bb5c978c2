"""Speeds, ratios and shares of what the machine can do: the table and the JSON beside it."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.harness import tables
from benchmarks.harness.command import Bench, plain
from benchmarks.harness.turns import Measurement, Role
from benchmarks.pretraining import products
from benchmarks.pretraining.workload import Workload
from electra_tf.config.model import EncoderConfig
from electra_tf.modeling import flops, paper_flops, weight_table

LEGEND = (
    "tokens/s: median and range over the rounds. x fastest peer: compared with the fastest setting "
    "of any peer, by medians.",
    "products, paper: tokens/s times FLOPs per token, as a share of the machine's rate. products "
    "counts matrix products alone, backward as two forward passes; paper counts as the ELECTRA "
    "paper does: look-ups as products with one-hot vectors, backward as one forward pass.",
    "of peak: the same shares, of the card's dense bfloat16 peak by its maker's data sheet.",
    "start: from starting the process to the end of its first step, with tracing and compiling. "
    "peak GB: resident memory, or of a card what the allocator gave out. loss: of the last step.",
)


def paper_flops_per_token(workload: Workload) -> float:
    """Returns the training FLOPs per token as the paper counts them."""
    return paper_flops.per_token(_networks(workload), workload.length)


def product_flops_per_token(workload: Workload) -> float:
    """Returns the training FLOPs per token of matrix products alone, attention's included."""
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
    """Steps of a turn."""
    measured: Sequence[Measurement]
    peak: float | None = None
    """Dense bfloat16 FLOP/s of the card by its data sheet; None for the CPU, or if unknown."""
    device: str = ""
    """The card in one line; "" for the CPU."""

    @property
    def systems(self) -> list[Measurement]:
        """Ours and the peers, fastest first, failures last. A rate is shown only if it failed."""
        shown = [one for one in self.measured if one.system.role is not Role.RATE or one.failure]
        return sorted(shown, key=lambda one: -(self.speed(one) or 0.0))

    def speeds(self, one: Measurement) -> list[float]:
        """Returns the tokens/s of every round."""
        return [self.workload.tokens * self.steps / seconds for seconds in one.values("steps")]

    def speed(self, one: Measurement) -> float | None:
        """Returns the median tokens/s."""
        return tables.median(self.speeds(one))

    @property
    def rates(self) -> dict[str, float]:
        """Library and number type -> median FLOP/s of the step's dense products alone."""
        work = products.step_flops(self.workload) * self.steps
        return {one.label.removeprefix("rate "): work / tables.median(one.values("steps"))
                for one in self.measured if one.system.role is Role.RATE and one.values("steps")}

    @property
    def machine_rate(self) -> float | None:
        """The best of the rates, in FLOP/s."""
        return max(self.rates.values(), default=None)


def section(result: Result) -> list[str]:
    """Returns the lines of one case: what was run, the machine's rate, the table."""
    work = result.workload
    rates = ", ".join(f"{label} {rate / 1e9:,.0f}" for label, rate in sorted(
        result.rates.items(), key=lambda item: -item[1]))
    rounds = max(len(one.values("steps")) for one in result.measured)
    return [
        f"## {work.case}", "",
        f"- {work.batch} x {work.length} tokens, {work.predictions} of each {work.length} masked, "
        f"{work.threads} cores; {rounds} rounds of {result.steps} steps",
        *([f"- {result.device}"] if result.device else []),
        f"- MFLOPs per token: {product_flops_per_token(work) / 1e6:,.1f} (products), "
        f"{paper_flops_per_token(work) / 1e6:,.1f} (paper)",
        f"- GFLOP/s of the dense products alone, the best being the machine's rate: "
        f"{rates or 'not measured'}",
        f"- {tables.versions_line(result.measured)}", "",
        *tables.table(_lines(result)), "", *tables.failures(result.systems)]


def _lines(result: Result) -> list[list[str]]:
    fastest = tables.fastest_peer(result.measured, result.speeds)
    counts = {"products": product_flops_per_token(result.workload),
              "paper": paper_flops_per_token(result.workload)}
    columns: dict[str, Callable[[Measurement], str]] = {
        "system": lambda one: one.label,
        "tokens/s": lambda one: tables.ranged(result.speeds(one)),
        "x fastest peer": lambda one: tables.ratio(result.speed(one), fastest),
        "GFLOP/s": lambda one: tables.number(
            _times(result.speed(one), counts["products"] / 1e9), ",.0f"),
    }
    for prefix, limit in {"": result.machine_rate, "of peak: ": result.peak}.items():
        for name, count in counts.items():
            if prefix == "" or limit is not None:
                columns[prefix + name] = lambda one, count=count, limit=limit: tables.ratio(
                    _times(result.speed(one), count), limit, ".1%")
    columns |= {
        "start s": lambda one: tables.number(one.start_seconds, ".0f"),
        "peak GB": lambda one: tables.number(one.peak_bytes / 1e9 or None, ".1f"),
        "loss": lambda one: tables.number(
            one.turns["steps"][-1]["loss"] if one.values("steps") else None, ".1f")}
    return [list(columns), *([cell(one) for cell in columns.values()] for one in result.systems)]


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def page(results: Sequence[Result], bench: Bench) -> str:
    """Returns the page with all cases."""
    parts = ["# Pre-training speed", "", tables.host_line(bench.machine), ""]
    for result in results:
        parts += [*section(result), ""]
    return "\n".join([*parts, *(f"- {line}" for line in [*LEGEND, *bench.notes]), ""])


def content(results: Sequence[Result]) -> dict[str, Any]:
    """Returns the cases for JSON: medians, rates, and every turn's seconds."""
    return {"cases": [{
        "workload": dataclasses.asdict(result.workload), "steps": result.steps,
        "machine_rate": result.machine_rate, "rates": result.rates, "peak": result.peak,
        "tokens_per_second": {one.label: result.speed(one) for one in result.systems},
        "measurements": plain(result.measured)} for result in results]}
