"""The command line of all comparisons: their shared flags, their processes, their files."""

import dataclasses
import functools
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import flags

from benchmarks.harness import host
from benchmarks.harness.process import Worker
from benchmarks.harness.turns import Asked, Measurement, System, Turns
from electra_tf.platform import atomic_file
from electra_tf.platform.errors import UserError
from electra_tf.reporting.json_file import write_json

ROOT = pathlib.Path(__file__).parents[2]


def define_flags(*, rounds: int | None = None, systems: Sequence[System] = (),
                 peers_python: str = ".venv-peers/bin/python") -> None:
    """Defines the flags that comparisons share.

    Args:
        rounds: default of `--rounds`; None for a comparison without rounds.
        systems: to choose from by `--systems`; without any, the flag isn't defined.
        peers_python: default of `--peers_python`; "" for the Python that runs the comparison.
    """
    if rounds is not None:
        flags.DEFINE_integer("rounds", rounds, "Turns of every system.", lower_bound=1)
    if systems:
        names = ", ".join(system.name for system in systems if not system.always)
        flags.DEFINE_list(
            "systems", [], f"Systems, or beginnings of their names; all if empty: {names}.")
    flags.DEFINE_float("timeout", 1200, "Seconds to wait for one answer; the first includes "
                       "compiling.", lower_bound=1)
    flags.DEFINE_string("output_dir", "benchmarks/results", "Directory for the results.")
    flags.DEFINE_string("peers_python", peers_python, "Python of the environment with PyTorch"
                        f"{'' if peers_python else '; this one if empty'}.")


def require(*names: str) -> None:
    """Raises `UserError` for a flag that has no value."""
    for name in names:
        if not flags.FLAGS[name].value:
            raise UserError(f"--{name} is needed: {flags.FLAGS[name].help}")


def chosen(systems: Sequence[System], beginnings: Sequence[str]) -> list[System]:
    """Returns the systems whose names begin as asked; all without any beginning.

    Raises:
        UserError: a beginning that fits no system.
    """
    names = [system.name for system in systems if not system.always]
    for beginning in beginnings:
        if not any(name.startswith(beginning) for name in names):
            raise UserError(f"--systems: no system's name begins with {beginning!r}. "
                            f"There are: {', '.join(names)}")
    return [system for system in systems if system.always or not beginnings
            or system.name.startswith(tuple(beginnings))]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bench:
    """One run of a comparison: the systems, and where processes and results go."""

    systems: list[System]
    peers_python: pathlib.Path
    output: pathlib.Path
    timeout: float
    machine: Mapping[str, Any]
    notes: Sequence[str] = ()

    @classmethod
    def of_flags(cls, systems: Sequence[System]) -> "Bench":
        """Chooses systems and creates the directory of results.

        Raises:
            UserError: an unknown system, a --peers_python that doesn't exist and that a chosen
                system needs, or a directory that can't be created.
        """
        values = flags.FLAGS
        python = pathlib.Path(values.peers_python or sys.executable)
        output = pathlib.Path(values.output_dir)
        found, notes = chosen(systems, getattr(values, "systems", [])), []
        if not python.exists() and any(system.in_peers_environment for system in found):
            if values["peers_python"].present:
                raise UserError(f"--peers_python: there is no {python}; `make peers` builds it.")
            notes = [f"There is no {python}: systems in PyTorch are left out; `make peers` "
                     "builds it."]
            found = [system for system in found if not system.in_peers_environment]
        machine = host.describe()
        atomic_file.make_directory(output)
        print("".join(f"{note}\n" for note in notes), end="", flush=True)
        return cls(systems=found, peers_python=python, output=output, timeout=values.timeout,
                   machine=machine, notes=notes)

    def measure(self, name: str, case: Mapping[str, Any], turns: Mapping[str, Mapping[str, Any]], *,
                warm_up: Sequence[Mapping[str, Any]], rounds: int, alone: bool = False,
                threads: int = 0, check: Callable[[Sequence[Measurement]], None] | None = None,
                group: Callable[[Callable[[], Worker]], Asked] = lambda start: start(),
                ) -> list[Measurement]:
        """Measures all systems in one case.

        Args:
            name: of the case, for progress on stderr.
            case: fields of every worker's first request.
            turns: name -> request, as `Turns` has them.
            warm_up: requests before the rounds.
            rounds: turns of every system.
            alone: whether every turn is a new process that runs alone.
            threads: CPU cores of a process; 0 for all.
            check: as `Turns` has it.
            group: starts a system's worker, or a group of them that answers as one.
        """
        with tempfile.TemporaryDirectory() as caches:
            protocol = Turns(
                case=case, turns=turns, warm_up=warm_up, rounds=rounds,
                launch=lambda system: group(
                    functools.partial(self.start, system, pathlib.Path(caches), threads)),
                say=functools.partial(print, f"{name}:", file=sys.stderr, flush=True),
                check=check or (lambda _measured: None))
            return (protocol.measure_alone if alone else protocol.measure)(self.systems)

    def start(self, system: System, caches: pathlib.Path, threads: int = 0) -> Worker:
        """Starts a system's process.

        Args:
            system: to start.
            caches: directory for what compilers keep: empty at first, so that a first start is one.
            threads: CPU cores to use; 0 for all.
        """
        python = self.peers_python if system.in_peers_environment else sys.executable
        count, cache = str(threads or host.available_cores()), str(caches / system.name)
        variables = os.environ | {
            "CUDA_VISIBLE_DEVICES": "-1", "HF_HUB_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "2",
            "OMP_NUM_THREADS": count, "TF_NUM_INTEROP_THREADS": count,
            "TF_NUM_INTRAOP_THREADS": count, "TORCHINDUCTOR_CACHE_DIR": cache,
            "JAX_COMPILATION_CACHE_DIR": cache, **system.variables}
        return Worker([str(pathlib.Path(python).absolute()), "-m", system.module],
                      directory=ROOT, environment=variables, timeout=self.timeout)

    def save(self, name: str, page: str, content: Mapping[str, Any]) -> None:
        """Writes a page of Markdown, and everything that was measured as JSON."""
        atomic_file.write_atomically(self.output / f"{name}.md", page.encode())
        write_json(self.output / f"{name}.json",
                   {"machine": self.machine, "notes": self.notes, **content})


def plain(measured: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Returns every reply of every system, for JSON."""
    return [dataclasses.asdict(one) for one in measured]

