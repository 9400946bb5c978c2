"""Formats medians with ranges, ratios within one run, and tables as padded Markdown."""

import statistics
from collections.abc import Callable, Iterable, Sequence

from benchmarks.harness.turns import Measurement, Role

Numbers = Callable[[Measurement], Sequence[float]]
"""Maps a system to one number per round; to an empty list if it failed."""


def compared(measured: Sequence[Measurement], heading: str, numbers: Numbers, form: str = ",.0f", *,
             less_is_better: bool = False) -> list[list[str]]:
    """Returns two columns: a number's median and range over the rounds, and its ratio.

    The ratio is to the fastest baseline; above 1 is faster. Cells without numbers are "-".
    """
    values = [numbers(result) for result in measured]
    medians = [median(rounds) for rounds in values]
    best = (min if less_is_better else max)(
        (middle for result, middle in zip(measured, medians, strict=True)
         if result.system.role is Role.BASELINE and middle is not None), default=None)
    return [[heading, *(
                f"{median(rounds):{form}} ({min(rounds):{form}} to {max(rounds):{form}})"
                if rounds else "-" for rounds in values)],
            ["x fastest baseline", *(ratio(best, middle) if less_is_better else ratio(middle, best)
                                     for middle in medians)]]


def median(values: Sequence[float]) -> float | None:
    """Returns the median over the rounds; None without any."""
    return statistics.median(values) if values else None


def ratio(value: float | None, divisor: float | None, form: str = ".2f") -> str:
    """Returns a cell with a quotient; "-" where either number is missing."""
    return "-" if value is None or divisor is None else format(value / divisor, form)


def table(measured: Sequence[Measurement], columns: Iterable[Sequence[str]]) -> list[str]:
    """Returns Markdown that is aligned for the terminal, with a row for each system.

    A column is a heading and a cell for each system; it is aligned to the right.
    """
    cells = [["system", *(result.label for result in measured)], *columns]
    widths = [max(map(len, column)) for column in cells]
    rows = ["| " + " | ".join(
        cell.rjust(width) if index else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(row, widths, strict=True))) + " |"
        for row in zip(*cells, strict=True)]
    rule = "|" + "|".join("-" * (width + 1) + (":" if index else "-")
                          for index, width in enumerate(widths)) + "|"
    return [rows[0], rule, *rows[1:]]


def versions_line(measured: Iterable[Measurement]) -> str:
    """Returns the versions of all libraries in one line."""
    versions = {library: version for result in measured
                for library, version in result.versions.items()}
    return ", ".join(f"{library} {version}" for library, version in versions.items())


def failures(measured: Iterable[Measurement]) -> list[str]:
    """Returns a line for every system that failed, with the reason."""
    return [f"- {result.label} failed: {result.failure}" for result in measured if result.failure]
