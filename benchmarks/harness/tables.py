"""Medians with their ranges, ratios within one run, and tables as padded Markdown."""

import dataclasses
import statistics
from collections.abc import Callable, Iterable, Sequence

from benchmarks.harness.turns import Measurement, Role

Numbers = Callable[[Measurement], Sequence[float]]
"""Maps a system to a number per round; none if it failed."""


@dataclasses.dataclass(frozen=True)
class Column:
    """A number of every system, and its ratio to the fastest peer; above 1 means faster."""

    heading: str
    numbers: Numbers
    form: str = ",.0f"
    less_is_better: bool = False

    def cells(self, measured: Sequence[Measurement]) -> list[list[str]]:
        """Returns two columns, each with its heading first."""
        best = fastest_peer(measured, self.numbers, less_is_better=self.less_is_better)
        medians = [median(self.numbers(one)) for one in measured]
        return [[self.heading, *(ranged(self.numbers(one), self.form) for one in measured)],
                ["x fastest peer", *(ratio(best, middle) if self.less_is_better else
                                     ratio(middle, best) for middle in medians)]]


def compared(measured: Sequence[Measurement], columns: Iterable[Column]) -> list[str]:
    """Returns a table with a line for every system."""
    systems = ["system", *(one.label for one in measured)]
    found = [cells for column in columns for cells in column.cells(measured)]
    return table(list(zip(systems, *found, strict=True)))


def median(values: Sequence[float]) -> float | None:
    """Returns the median over the rounds; None without any."""
    return statistics.median(values) if values else None


def fastest_peer(measured: Iterable[Measurement], numbers: Numbers, *,
                 less_is_better: bool = False) -> float | None:
    """Returns the best median of any peer; None if no peer was measured."""
    medians = [median(numbers(one)) for one in measured if one.system.role is Role.PEER]
    return (min if less_is_better else max)(filter(None, medians), default=None)


def ranged(values: Sequence[float], form: str = ",.0f") -> str:
    """Returns a cell with the median and the range over the rounds; "-" without values."""
    if not values:
        return "-"
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def number(value: float | None, form: str) -> str:
    """Returns a cell; "-" for None."""
    return "-" if value is None else format(value, form)


def ratio(value: float | None, divisor: float | None, form: str = ".2f") -> str:
    """Returns a cell with a quotient; "-" where either number is missing."""
    return "-" if value is None or divisor is None else format(value / divisor, form)


def table(lines: Sequence[Sequence[str]]) -> list[str]:
    """Returns Markdown that is aligned for the terminal, numbers to the right.

    Args:
        lines: cells, the headings first.
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))) + " |"

    rule = "|" + "|".join("-" * (width + 1) + (":" if column else "-")
                          for column, width in enumerate(widths)) + "|"
    return [row(lines[0]), rule, *map(row, lines[1:])]


def versions_line(measured: Iterable[Measurement]) -> str:
    """Returns the versions of all libraries in one line."""
    found = {library: version for one in measured for library, version in one.versions.items()}
    return ", ".join(f"{library} {version}" for library, version in found.items())


def failures(measured: Iterable[Measurement]) -> list[str]:
    """Returns a line for every system that failed, with the reason."""
    return [f"- {one.label} failed: {one.failure}" for one in measured if one.failure]
