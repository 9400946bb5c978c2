"""From measured seconds to the numbers of the table."""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

from benchmarks.pretraining.interleave import Measurement
from benchmarks.pretraining.products import step_flops
from benchmarks.pretraining.systems import Role
from benchmarks.pretraining.training_flops import (
    paper_flops_per_token,
    product_flops_per_token,
)
from benchmarks.pretraining.workload import Workload


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spread:
    """Several turns in three numbers."""

    median: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table; numbers that couldn't be measured are None."""

    label: str
    ours: bool
    tokens_per_second: Spread | None
    ratio: float | None
    """To the fastest setting of all peers, by medians."""
    products_fraction: float | None
    """Of the machine's rate, by the count of matrix products."""
    paper_fraction: float | None
    """Of the machine's rate, by the paper's count."""
    start_seconds: float | None
    peak_bytes: int
    loss: float | None
    failure: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class CaseSummary:
    """One case: what was run, what the machine can do, who was how fast."""

    workload: Workload
    rounds: int
    steps: int
    paper_flops_per_token: float
    products_flops_per_token: float
    rates: Mapping[str, float]
    """Library and number type -> median FLOP/s of the dense products."""
    versions: Mapping[str, str]
    """Library -> version."""
    rows: Sequence[Row]
    """Fastest first, failures last."""

    @property
    def machine_rate(self) -> float | None:
        """The best of the rates, in FLOP/s."""
        return max(self.rates.values(), default=None)


def summarise(workload: Workload, measurements: Sequence[Measurement], *, rounds: int,
              steps: int) -> CaseSummary:
    """Returns the numbers of one case."""
    rates = {measurement.label.removeprefix("rate "): _rate(workload, measurement, steps)
             for measurement in measurements
             if measurement.role is Role.RATE and _measured(measurement)}
    speeds = {measurement.name: spread(workload.tokens * steps, measurement.seconds)
              for measurement in measurements
              if measurement.role is not Role.RATE and _measured(measurement)}
    fastest_peer = max((speeds[measurement.name].median for measurement in measurements
                        if measurement.role is Role.PEER and measurement.name in speeds),
                       default=None)
    limit = max(rates.values(), default=None)
    paper, products = paper_flops_per_token(workload), product_flops_per_token(workload)

    def row(measurement: Measurement) -> Row:
        speed = speeds.get(measurement.name)
        median = None if speed is None else speed.median
        return Row(
            label=measurement.label, ours=measurement.role is Role.OURS, tokens_per_second=speed,
            ratio=_quotient(median, 1.0, fastest_peer),
            products_fraction=_quotient(median, products, limit),
            paper_fraction=_quotient(median, paper, limit),
            start_seconds=measurement.start_seconds, peak_bytes=measurement.peak_bytes,
            loss=measurement.loss, failure=measurement.failure)

    # A rate is shown only if it couldn't be measured.
    rows = [row(measurement) for measurement in measurements
            if measurement.role is not Role.RATE or measurement.failure]
    return CaseSummary(
        workload=workload, rounds=rounds, steps=steps, paper_flops_per_token=paper,
        products_flops_per_token=products, rates=rates, rows=sorted(rows, key=_order),
        versions={library: version for measurement in measurements
                  for library, version in measurement.versions.items()})


def spread(amount: float, seconds: Sequence[float]) -> Spread:
    """Returns `amount` per second over several turns."""
    speeds = [amount / value for value in seconds]
    return Spread(median=statistics.median(speeds), low=min(speeds), high=max(speeds))


def _rate(workload: Workload, measurement: Measurement, steps: int) -> float:
    return spread(step_flops(workload) * steps, measurement.seconds).median


def _measured(measurement: Measurement) -> bool:
    return bool(measurement.seconds) and not measurement.failure


def _quotient(value: float | None, factor: float, divisor: float | None) -> float | None:
    return None if value is None or divisor is None else value * factor / divisor


def _order(row: Row) -> tuple[bool, float]:
    speed = row.tokens_per_second
    return (True, 0.0) if speed is None else (False, -speed.median)
