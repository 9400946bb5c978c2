"""Formats medians with ranges, ratios within one run, and tables as padded Markdown."""

import statistics
from collections.abc import Callable, Iterable, Sequence

from benchmarks.harness.turns import Measurement, Role

Numbers = Callable[[Measurement], Sequence[float]]
"""Maps a system to one number per round; to an empty list if it failed."""


def compared(measured: Sequence[Measurement], heading: str, numbers: Numbers, form: str = ",.0f", *,
             less_is_better: bool = False) -> list[list[str]]:
    """Returns two columns: a number, and its ratio to the fastest baseline; above 1 is faster."""
    best = (min if less_is_better else max)(
        (median(numbers(one)) for one in measured
         if one.system.role is Role.BASELINE and numbers(one)), default=None)
    medians = [median(numbers(one)) for one in measured]
    return [[heading, *(ranged(numbers(one), form) for one in measured)],
            ["x fastest baseline", *(ratio(best, middle) if less_is_better else ratio(middle, best)
                                 for middle in medians)]]


def median(values: Sequence[float]) -> float | None:
    """Returns the median over the rounds; None without any."""
    return statistics.median(values) if values else None


def ranged(values: Sequence[float], form: str = ",.0f") -> str:
    """Returns a cell with the median and the range over the rounds; "-" without values."""
    if not values:
        return "-"
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def ratio(value: float | None, divisor: float | None, form: str = ".2f") -> str:
    """Returns a cell with a quotient; "-" where either number is missing."""
    return "-" if value is None or divisor is None else format(value / divisor, form)


def table(names: Sequence[str], columns: Iterable[Sequence[str]]) -> list[str]:
    """Returns Markdown that is aligned for the terminal, numbers to the right.

    Args:
        names: the systems, one a row.
        columns: a heading and a cell for each system.
    """
    cells = [["system", *names], *columns]
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
    found = {library: version for one in measured for library, version in one.versions.items()}
    return ", ".join(f"{library} {version}" for library, version in found.items())


def failures(measured: Iterable[Measurement]) -> list[str]:
    """Returns a line for every system that failed, with the reason."""
    return [f"- {one.label} failed: {one.failure}" for one in measured if one.failure]
