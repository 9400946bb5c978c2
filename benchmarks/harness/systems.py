"""Systems by name, and their processes: ours in this environment, PyTorch's in the peers'."""

import os
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from absl import flags

from benchmarks.harness import host
from benchmarks.harness.process import Worker
from electra_tf.platform.errors import UserError

ROOT = pathlib.Path(__file__).parents[2]


class Named(Protocol):
    """A system."""

    name: str
    """As `--systems` takes it."""


System = TypeVar("System", bound=Named)


def define_flags(rounds: int) -> None:
    """Defines what all benchmarks have: `--rounds`, `--output_dir` and `--peers_python`."""
    flags.DEFINE_integer("rounds", rounds, "Turns of every system.", lower_bound=1)
    define_places()


def define_places() -> None:
    """Defines `--output_dir` and `--peers_python`."""
    flags.DEFINE_string("output_dir", "benchmarks/results", "Where the results go.")
    flags.DEFINE_string(
        "peers_python", ".venv-peers/bin/python", "Python of the environment with PyTorch.")


def chosen(systems: Sequence[System], beginnings: Sequence[str]) -> list[System]:
    """Returns the systems whose names begin as asked; all, if nothing is.

    Raises:
        UserError: a beginning that fits no system.
    """
    names = [system.name for system in systems]
    for beginning in beginnings:
        if not any(name.startswith(beginning) for name in names):
            raise UserError(f"--systems: nothing begins with {beginning!r}. "
                            f"There are: {', '.join(names)}")
    return [system for system in systems
            if not beginnings or system.name.startswith(tuple(beginnings))]


def environment(threads: int) -> dict[str, str]:
    """Returns the variables of a process that computes on so many cores, offline."""
    return os.environ | {
        "CUDA_VISIBLE_DEVICES": "-1", "HF_HUB_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "2",
        "OMP_NUM_THREADS": str(threads)}


def launch(module: str, *, peers_python: pathlib.Path | None = None, timeout: float,
           threads: int = 0, variables: Mapping[str, str] | None = None,
           arguments: Sequence[str] = ()) -> Worker:
    """Starts a worker.

    Args:
        module: with its package.
        peers_python: interpreter of the peers' environment; None for this one.
        timeout: seconds to wait for one answer.
        threads: CPU cores to use; 0 for all.
        variables: of the environment, besides.
        arguments: of its command line.
    """
    python = sys.executable if peers_python is None else str(peers_python.absolute())
    return Worker([python, "-m", module, *arguments], directory=ROOT, timeout=timeout, environment=(
        environment(threads or host.available_cores()) | dict(variables or {})))
