"""The table of an accelerator: speeds as a share of what its maker promises."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.pretraining.report import aligned, failures, host_line, number, piped
from benchmarks.pretraining.summary import CaseSummary, Row
from electra_tf.modeling.device_peaks import peak_flops, peak_fraction

HEADINGS = ("system", "tokens/s", "min-max", "x fastest peer", "peak: products", "peak: paper",
            "of products alone", "start s", "peak GB", "loss")
LEGEND = (
    "tokens/s: median and range over the rounds. x fastest peer: to the fastest setting of any "
    "peer, by medians.",
    "peak: tokens/s times FLOPs per token, as a share of the card's dense bfloat16 peak by its "
    "maker's data sheet. products counts matrix products alone, backward as two forward passes; "
    "paper counts as the ELECTRA paper does: look-ups as products with one-hot vectors, backward "
    "as one forward pass.",
    "of products alone: the same by products, as a share of the rate at which PyTorch runs the "
    "step's dense products and nothing else.",
    "start: from starting the process to the end of its first step, with compiling, nothing kept "
    "from before. peak GB: of the memory that JAX's or PyTorch's allocator gave out; on a CPU of "
    "the process. loss: of the last step.",
)
_OUT_OF_MEMORY = re.compile("out of memory|RESOURCE_EXHAUSTED", re.I)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Card:
    """What everything ran on."""

    name: str
    """As its driver gives it; "" for the CPU."""
    peak: float | None
    """Dense bfloat16 products, FLOP/s."""

    @property
    def line(self) -> str:
        """The card in one line."""
        if not self.name and self.peak is None:
            return "the CPU, to try the benchmark: no share of a peak"
        name = self.name or "the CPU"
        if self.peak is None:
            return f"{name}: no peak in electra_tf/modeling/device_peaks.py; set --peak_tflops"
        return f"{name}: dense bfloat16 peak {self.peak / 1e12:,.1f} TFLOP/s"


def card_of(names: Sequence[str], peak_tflops: float | None) -> Card:
    """Returns the card that workers named.

    Args:
        names: of every system; "" of one that failed or ran on a CPU.
        peak_tflops: 1e12 FLOP/s, instead of the table's; None for the table's.
    """
    name = next(filter(None, names), "")
    return Card(name=name, peak=(
        peak_flops(name, "bfloat16") if peak_tflops is None else peak_tflops * 1e12))


def plain_text(case: CaseSummary, card: Card) -> str:
    """Returns what was run, and the table."""
    return "\n".join([*_introduction(case, card), "", *aligned(_table(case, card)),
                      *failures(case)])


def markdown(cases: Sequence[CaseSummary], card: Card, host: Mapping[str, Any]) -> str:
    """Returns the page with all cases."""
    parts = ["# Pre-training speed on an accelerator", "", host_line(host), ""]
    for case in cases:
        parts += [f"## {case.workload.case}", "",
                  *(f"- {line}" for line in _introduction(case, card)), "",
                  *piped(_table(case, card)), "", *(f"- {line}" for line in failures(case)),
                  *([""] if failures(case) else [])]
    return "\n".join([*parts, *(f"- {line}" for line in LEGEND), ""])


def _introduction(case: CaseSummary, card: Card) -> list[str]:
    work = case.workload
    rate = ("not measured" if case.machine_rate is None
            else f"{case.machine_rate / 1e12:,.2f} TFLOP/s")
    return [
        f"{work.case}: {work.batch} x {work.length} tokens, {work.predictions} of each "
        f"{work.length} masked; {case.rounds} rounds of {case.steps} steps",
        card.line,
        f"MFLOPs per token: {case.products_flops_per_token / 1e6:,.1f} (products), "
        f"{case.paper_flops_per_token / 1e6:,.1f} (paper); dense products alone: {rate}",
        ", ".join(f"{library} {version}" for library, version in case.versions.items()),
    ]


def _table(case: CaseSummary, card: Card) -> list[tuple[str, ...]]:
    return [HEADINGS, *(_cells(row, case, card) for row in case.rows)]


def _cells(row: Row, case: CaseSummary, card: Card) -> tuple[str, ...]:
    speed = row.tokens_per_second
    if speed is None:
        failure = "out of memory" if _OUT_OF_MEMORY.search(row.failure) else "failed"
        return row.label, failure, *["-"] * (len(HEADINGS) - 2)

    def of_peak(flops_per_token: float) -> str:
        return number(peak_fraction(speed.median, flops_per_token, card.peak), ".1%")

    return (
        row.label, f"{speed.median:,.0f}", f"{speed.low:,.0f}-{speed.high:,.0f}",
        number(row.ratio, ".2f"), of_peak(case.products_flops_per_token),
        of_peak(case.paper_flops_per_token), number(row.products_fraction, ".0%"),
        number(row.start_seconds, ".0f"), number(row.peak_bytes / 1e9, ".1f"),
        number(row.loss, ".1f"))
