"""The tables: one per case, every system a line, ratios to the fastest peer."""

import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from benchmarks.serving.turns import Measurement, difference

_HEADINGS = ("system", "1 text: p50, ms", "x fastest peer", "p99, ms", "x fastest peer",
             "32 texts: examples/s", "x fastest peer")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Column:
    """A number that every turn gives."""

    batch: int
    of_turn: Callable[[Sequence[float]], float]
    """Maps the seconds of every call to the number."""
    form: str
    more_is_better: bool


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the smallest value that so large a share of them doesn't exceed."""
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def page(measured: Sequence[Measurement], tokens: Mapping[str, Sequence[int]], *,
         machine: Mapping[str, str | float], model_size: str, rounds: int) -> str:
    """Returns everything as Markdown.

    Args:
        measured: of the systems.
        tokens: case -> number of tokens of every text.
        machine: as `host.describe` says.
        model_size: its name.
        rounds: turns of every system.
    """
    versions = {library: version for one in measured for library, version in one.versions.items()}
    lines = [
        f"ELECTRA-{model_size.title()}, two classes, strings in and answers out: "
        f"{rounds} rounds over {len(next(iter(tokens.values())))} texts; medians over the rounds "
        "(lowest to highest).", "",
        f"{machine['processor']}, {machine['cores']} cores, load before the start "
        f"{machine['load_before']}; "
        + ", ".join(f"{library} {version}" for library, version in versions.items()) + ".", ""]
    for case, lengths in tokens.items():
        lines += [f"## {_title(case, lengths)}", "", *_table(measured, case, len(lengths)), ""]
    return "\n".join([*lines, "## Answers", "", *_answers(measured), ""])


def _title(case: str, lengths: Sequence[int]) -> str:
    if case.isdigit():
        return f"{case} tokens"
    return (f"Sentences of SST-2, in the file's order: {statistics.mean(lengths):.1f} tokens on "
            f"average, {min(lengths)} to {max(lengths)}")


def _table(measured: Sequence[Measurement], case: str, texts: int) -> list[str]:
    columns = (
        _Column(batch=1, of_turn=lambda calls: 1e3 * percentile(calls, 0.5), form=",.2f",
                more_is_better=False),
        _Column(batch=1, of_turn=lambda calls: 1e3 * percentile(calls, 0.99), form=",.2f",
                more_is_better=False),
        _Column(batch=32, of_turn=lambda calls: texts / sum(calls), form=",.0f",
                more_is_better=True))
    rows = [[f"{one.label} (failed: {one.failure})" if one.failure else one.label]
            for one in measured]
    for column in columns:
        for row, cells in zip(rows, _cells(measured, case, column), strict=True):
            row += cells
    return ["| " + " | ".join(_HEADINGS) + " |", "|---" * len(_HEADINGS) + "|",
            *("| " + " | ".join(row) + " |" for row in rows)]


def _cells(measured: Sequence[Measurement], case: str, column: _Column) -> list[tuple[str, str]]:
    turns = [[column.of_turn(calls) for calls in one.seconds.get(case, {}).get(column.batch, [])]
             for one in measured]
    medians = [statistics.median(values) if values else None for values in turns]
    peers = [median for one, median in zip(measured, medians, strict=True)
             if median and not one.system.ours]
    best = (max if column.more_is_better else min)(peers, default=None)

    def ratio(median: float) -> str:
        if best is None:
            return ""
        return f"{median / best if column.more_is_better else best / median:.2f}"

    def shown(value: float) -> str:
        return format(value, column.form)

    return [("-", "") if median is None else
            (f"{shown(median)} ({shown(min(values))} to {shown(max(values))})", ratio(median))
            for values, median in zip(turns, medians, strict=True)]


def _answers(measured: Sequence[Measurement]) -> list[str]:
    exact = [one for one in measured if one.system.precision == "float32" and not one.failure]
    if not exact:
        return ["Nothing computes in float32 here; answers weren't compared."]
    shares = [share for case in exact[0].probabilities.values() for share in case]
    lines = [f"Largest difference of a probability from {exact[0].label}, whose probabilities of "
             f"the first class are {min(shares):.3f} to {max(shares):.3f}:", ""]
    return lines + [f"- {one.label}: {difference(one, exact[0]):.1e}" for one in measured
                    if one is not exact[0] and not one.failure]


def to_json(measured: Sequence[Measurement]) -> list[dict]:
    """Returns every call's seconds, and the answers."""
    return [dataclasses.asdict(one) for one in measured]
