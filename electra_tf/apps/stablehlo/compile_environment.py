"""The environment with JAX and libtpu that `make compile-env` builds: questions and answers.

TensorFlow's environment asks; `ahead_of_time` answers there with a `Cores` or a `Report`. Numbers
are those of one core or card.
"""

import dataclasses
import os
import pathlib
import signal
import subprocess
from typing import TypeVar

from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError

ROOT = pathlib.Path(__file__).parents[3]
VARIABLE = "COMPILE_PYTHON"
_AHEAD_OF_TIME = "electra_tf.apps.stablehlo.ahead_of_time"

Answer = TypeVar("Answer")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cores:
    """The cores of a topology: each device runs one program."""

    __pydantic_config__ = strict_json.STRICT

    topology: str
    kind: str
    """Name in the driver, for example "TPU v5 lite"."""
    count: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes of HBM that a step takes on a core."""

    __pydantic_config__ = strict_json.STRICT

    arguments: int
    """The state and the core's part of the batch."""
    outputs: int
    shared: int
    """Part of the outputs that replaces arguments: the state."""
    temporary: int
    """Activations, gradients."""
    code: int

    @property
    def total(self) -> int:
        """Returns the bytes that a core needs."""
        return self.arguments + self.outputs - self.shared + self.temporary + self.code


@dataclasses.dataclass(frozen=True, kw_only=True)
class Collective:
    """Exchanges of one kind between cores."""

    __pydantic_config__ = strict_json.STRICT

    kind: str
    count: int
    bytes: int
    """Size of their results on a core."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """How a step compiles for a topology."""

    __pydantic_config__ = strict_json.STRICT

    cores: Cores
    seconds: float
    """Duration of the compilation."""
    problem: str | None = None
    """Why it does not compile, on one line; the fields below are empty then."""
    flops: float | None = None
    """FLOPs that XLA counts in a step of a core, with two rounds of accumulation at most. None for
    GPUs, whose matmuls are calls of libraries that XLA does not count."""
    bytes_accessed: float | None = None
    """Bytes of memory traffic that XLA counts, without caches."""
    memory: Memory | None = None
    collectives: tuple[Collective, ...] = ()


def python() -> pathlib.Path:
    """Returns its interpreter, which need not be there."""
    return pathlib.Path(os.environ.get(VARIABLE, ROOT / ".venv-compile" / "bin" / "python"))


def ask(form: type[Answer], *flags: str) -> Answer:
    """Runs `ahead_of_time` there and returns what it prints.

    Args:
        form: dataclass of its JSON.
        flags: for it.

    Raises:
        UserError: there is no such environment, or the message that the command ended with.
    """
    if not python().exists():
        raise UserError(f"there is no {python()}: run `make compile-env`, or set {VARIABLE} to a "
                        "Python with the packages of requirements/compile.txt.")
    ended = subprocess.run(
        [str(python().absolute()), "-m", _AHEAD_OF_TIME, *flags], cwd=ROOT, capture_output=True,
        text=True, errors="replace", check=False)
    if ended.returncode == -signal.SIGKILL:
        raise UserError("the compiler was killed, most likely for want of memory: ELECTRA-Large "
                        "takes 5 GB and more.")
    if ended.returncode:
        *_, reason = ended.stderr.strip().splitlines() or [f"status {ended.returncode}"]
        raise UserError(reason.removeprefix("error: "))
    return strict_json.loads(ended.stdout.strip().splitlines()[-1].encode(), form)


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
