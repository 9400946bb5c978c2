r"""Measures how time and memory of our pre-training step grow with length and batch.

    python -m benchmarks.pretraining.growth
    python -m benchmarks.pretraining.growth --model_size=base --lengths=512 --batches=8 --recompute

One process per cell of the table, one after the other; a quarter of an hour on two cores. Cells
that would not fit into the memory that is free, going by a smaller batch, are not tried.
"""

import dataclasses
import statistics

from absl import flags

from benchmarks.harness import host
from benchmarks.pretraining import cases
from benchmarks.pretraining.alone import measure_alone
from benchmarks.pretraining.training_flops import product_flops_per_token
from electra_tf.platform import command_line, errors

HEADINGS = ("L", "batch", "layers", "tokens/s", "MFLOPs/token", "GFLOP/s", "peak GB")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
    """One length and batch, measured or given up."""

    case: str
    length: int
    batch: int
    recompute: bool
    tokens_per_second: float | None = None
    peak_bytes: float | None = None
    failure: str = ""

    def row(self) -> tuple[str, ...]:
        """Returns the table's cells; of FLOPs, those of matrix products, none counted twice."""
        flops = product_flops_per_token(cases.workload_of(self.case, threads=1))
        layers = "recomputed" if self.recompute else "kept"
        beginning = (str(self.length), str(self.batch), layers)
        if self.tokens_per_second is None:
            return (*beginning, "-", f"{flops / 1e6:.0f}", "-", self.failure)
        return (*beginning, f"{self.tokens_per_second:,.0f}", f"{flops / 1e6:.0f}",
                f"{self.tokens_per_second * flops / 1e9:.0f}", f"{self.peak_bytes / 1e9:.1f}")


def main() -> None:
    """Fills the table, printing every row as soon as it is known.

    Raises:
        UserError: a length or batch that isn't a positive whole number.
    """
    values = flags.FLAGS
    lengths, batches = _whole("lengths", values.lengths), _whole("batches", values.batches)
    print(f"| {' | '.join(HEADINGS)} |\n|{' ---: |' * len(HEADINGS)}", flush=True)
    for recompute in [False, True] if values.recompute else [False]:
        for length in lengths:
            done: list[Cell] = []
            for batch in batches:
                name = f"{values.model_size}-{batch}x{length}{'-recompute' if recompute else ''}"
                cell = Cell(case=name, length=length, batch=batch, recompute=recompute)
                done.append(measure(cell, done, values.precision, values.rounds))
                print(f"| {' | '.join(done[-1].row())} |", flush=True)


def measure(cell: Cell, smaller: list[Cell], precision: str, rounds: int) -> Cell:
    """Fills a cell in, or says why it is left empty.

    Args:
        cell: what to measure.
        smaller: cells of the same length with smaller batches, for a prediction of the memory.
        precision: "bfloat16" or "float32".
        rounds: steps to time.
    """
    needed = predicted_bytes(
        [(one.batch, one.peak_bytes) for one in smaller if one.peak_bytes], cell.batch)
    if needed is not None and not host.fits(needed):
        return dataclasses.replace(cell, failure=f"about {needed / 1e9:.0f}, not tried")
    measured = measure_alone(cell.case, precision=precision, rounds=rounds)
    if measured.failure:
        return dataclasses.replace(cell, failure=measured.failure)
    return dataclasses.replace(
        cell, peak_bytes=measured.peak_bytes,
        tokens_per_second=cell.batch * cell.length / statistics.median(measured.seconds))


def predicted_bytes(measured: list[tuple[int, float]], batch: int) -> float | None:
    """Extends the line through the two largest batches; one alone counts as proportional.

    >>> predicted_bytes([(8, 2e9), (32, 5e9)], 128)
    17000000000.0
    """
    if not measured:
        return None
    (first, low), (last, high) = ([(0, 0.0), *measured])[-2:]
    return high + (high - low) / (last - first) * (batch - last)


def _whole(name: str, values: list[str]) -> list[int]:
    if not values or not all(value.isdecimal() and int(value) > 0 for value in values):
        raise errors.UserError(f"--{name} must be whole numbers above 0, separated by "
                                     f"commas. Received: {','.join(values)!r}")
    return sorted({int(value) for value in values})


def _define_flags() -> None:
    flags.DEFINE_enum("model_size", "small", ["tiny", "small", "base", "large"], "Which networks.")
    flags.DEFINE_list("lengths", ["128", "256", "512", "1024"], "Tokens per example.")
    flags.DEFINE_list("batches", ["8", "32", "128"], "Examples per step.")
    flags.DEFINE_bool("recompute", False, "Once more with gradient checkpointing.")
    flags.DEFINE_enum("precision", "bfloat16", ["bfloat16", "float32"], "Number type.")
    flags.DEFINE_integer("rounds", 3, "Steps to time in every cell.", lower_bound=1)


if __name__ == "__main__":
    _define_flags()
    command_line.run(main, summary=__doc__, groups={
        "What": ["model_size", "lengths", "batches", "recompute", "precision", "rounds"]})
