"""The table, as plain text and as Markdown, and the JSON beside it."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.pretraining.interleave import Measurement
from benchmarks.pretraining.summary import CaseSummary, Row

HEADINGS = ("system", "tokens/s", "min-max", "x fastest peer", "products", "paper", "start s",
            "peak GB", "loss")

LEGEND = (
    "tokens/s: median and range over the rounds. x fastest peer: to the fastest setting of any "
    "peer, by medians.",
    "products, paper: tokens/s times FLOPs per token, as a share of the machine's rate. products "
    "counts matrix products alone, backward as two forward passes; paper counts as the ELECTRA "
    "paper does: look-ups as products with one-hot vectors, backward as one forward pass.",
    "start: from starting the process to the end of its first step, with tracing and compiling. "
    "peak: resident memory. loss: of the last step.",
)


def plain_text(case: CaseSummary) -> str:
    """Returns heading, machine's rate and table."""
    return "\n".join([*_introduction(case), "", *aligned([HEADINGS, *map(_cells, case.rows)]),
                      *failures(case)])


def aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Returns the lines of a table; the first column to the left, numbers to the right.

    Args:
        table: cells, the headings first.
    """
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(cell.ljust(width) if column == 0 else cell.rjust(width)
                       for column, (cell, width) in enumerate(zip(line, widths, strict=True)))
             for line in table]
    return [line.rstrip() for line in (lines[0], "-" * len(lines[0]), *lines[1:])]


def piped(table: Sequence[Sequence[str]]) -> list[str]:
    """Returns the same table in Markdown."""
    rule = ("---", *["---:"] * (len(table[0]) - 1))
    return [f"| {' | '.join(line)} |" for line in (table[0], rule, *table[1:])]


def markdown(cases: Sequence[CaseSummary], host: Mapping[str, Any],
             notes: Sequence[str]) -> str:
    """Returns the page with all cases."""
    parts = ["# Pre-training speed", "", host_line(host), ""]
    for case in cases:
        parts += [f"## {case.workload.case}", "",
                  *(f"- {line}" for line in _introduction(case)), "",
                  *piped([HEADINGS, *map(_cells, case.rows)]), ""]
        parts += [*(f"- {line}" for line in failures(case)), ""] if failures(case) else []
    return "\n".join([*parts, *(f"- {line}" for line in [*LEGEND, *notes]), ""])


def to_json(cases: Sequence[CaseSummary], measurements: Mapping[str, Sequence[Measurement]],
            host: Mapping[str, Any], notes: Sequence[str]) -> str:
    """Returns everything: the table's numbers, every turn's seconds, versions and host."""
    return json.dumps({
        "host": host,
        "notes": list(notes),
        "cases": [dataclasses.asdict(case) | {
            "machine_rate": case.machine_rate,
            "measurements": [dataclasses.asdict(one) for one in measurements[case.workload.case]],
        } for case in cases],
    }, indent=1) + "\n"


def host_line(host: Mapping[str, Any]) -> str:
    """Returns the machine in one line."""
    return (f"{host['processor']}, {host['cores']} cores, {host['memory_gb']:.0f} GB; "
            f"load before the start {host['load_before']:.2f}")


def _introduction(case: CaseSummary) -> list[str]:
    work = case.workload
    rates = ", ".join(f"{label} {rate / 1e9:,.0f}" for label, rate in sorted(
        case.rates.items(), key=lambda item: -item[1]))
    return [
        f"{work.case}: {work.batch} x {work.length} tokens, {work.predictions} of each "
        f"{work.length} masked, {work.threads} cores; {case.rounds} rounds of {case.steps} "
        f"step{'' if case.steps == 1 else 's'}",
        f"MFLOPs per token: {case.products_flops_per_token / 1e6:,.1f} (products), "
        f"{case.paper_flops_per_token / 1e6:,.1f} (paper)",
        f"GFLOP/s of the dense products alone, the best being the machine's rate: "
        f"{rates or 'not measured'}",
        ", ".join(f"{library} {version}" for library, version in case.versions.items()),
    ]


def _cells(row: Row) -> tuple[str, ...]:
    speed = row.tokens_per_second
    return (
        row.label,
        "failed" if speed is None else f"{speed.median:,.0f}",
        "-" if speed is None else f"{speed.low:,.0f}-{speed.high:,.0f}",
        number(row.ratio, ".2f"),
        number(row.products_fraction, ".0%"),
        number(row.paper_fraction, ".0%"),
        number(row.start_seconds, ".0f"),
        number(row.peak_bytes / 1e9 or None, ".1f"),
        number(row.loss, ".1f"),
    )


def number(value: float | None, form: str) -> str:
    """Returns a cell; "-" for None."""
    return "-" if value is None else format(value, form)


def failures(case: CaseSummary) -> list[str]:
    """Returns a line for every system that failed, with the reason."""
    return [f"{row.label} failed: {row.failure}" for row in case.rows if row.failure]
