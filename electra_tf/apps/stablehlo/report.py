"""What is known of a step that was compiled for TPUs or GPUs; numbers are of one core or card."""

import dataclasses

from electra_tf.platform import strict_json


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cores:
    """The cores of a topology: devices that a program each runs on."""

    __pydantic_config__ = strict_json.STRICT

    topology: str
    kind: str
    """As its driver names it, for example "TPU v5 lite"."""
    count: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes of HBM that a step takes on a core."""

    __pydantic_config__ = strict_json.STRICT

    arguments: int
    """The state, and the core's part of the batch."""
    outputs: int
    shared: int
    """Of the outputs, what is written where arguments were: the state is."""
    temporary: int
    """Activations, gradients."""
    code: int

    @property
    def total(self) -> int:
        """What has to be there."""
        return self.arguments + self.outputs - self.shared + self.temporary + self.code


@dataclasses.dataclass(frozen=True, kw_only=True)
class Collective:
    """Exchanges of one kind between cores."""

    __pydantic_config__ = strict_json.STRICT

    kind: str
    count: int
    bytes: int
    """Of their results on a core, all together."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """How a step compiles for a topology."""

    __pydantic_config__ = strict_json.STRICT

    cores: Cores
    seconds: float
    """That compiling took."""
    problem: str | None = None
    """Why it doesn't compile, in words; then nothing follows."""
    flops: float | None = None
    """That XLA counts in a step of a core; of rounds of accumulation the first two. None for GPUs,
    whose products are calls of libraries and kernels that it doesn't count."""
    bytes_accessed: float | None = None
    """That XLA counts, caches left out."""
    memory: Memory | None = None
    collectives: tuple[Collective, ...] = ()


HEADING = (f"{'topology':<12}{'cores':>6}  {'HBM a core':>10}{'state':>9}{'temporary':>11}"
           f"{'GFLOPs':>10}{'GB':>8}{'sent GB':>9}{'compiled in':>13}")


def line(report: Report) -> str:
    """Returns a row of the table; `HEADING` is above it."""
    start = f"{report.cores.topology:<12}{report.cores.count:>6}  "
    memory = report.memory
    if memory is None:
        return f"{start}{report.problem}"
    sent = sum(collective.bytes for collective in report.collectives)
    return (f"{start}{memory.total / 1e9:>7.2f} GB{memory.arguments / 1e9:>9.2f}"
            f"{memory.temporary / 1e9:>11.2f}{_giga(report.flops, ',.0f'):>10}"
            f"{_giga(report.bytes_accessed, '.1f'):>8}{sent / 1e9:>9.2f}{report.seconds:>11.0f} s")


def _giga(value: float | None, form: str) -> str:
    return "-" if value is None else format(value / 1e9, form)
