"""The command line of all comparisons: their shared flags, their processes, their files."""

import dataclasses
import functools
import os
import pathlib
import platform
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import flags

from benchmarks.harness import tables
from benchmarks.harness.process import Worker
from benchmarks.harness.turns import Answering, Case, Measurement, System, Turns
from electra_tf.platform import atomic_file, command_line
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import CPU_INFO, table, usable_cores
from electra_tf.reporting.json_file import write_json


def define_flags(*, rounds: int | None = None, systems: Sequence[System] = (),
                 peers_python: str = ".venv-peers/bin/python") -> None:
    """Defines the flags that comparisons share.

    Args:
        rounds: default of `--rounds`; None for a comparison without rounds.
        systems: the choice of `--systems`; without any, the flag isn't defined.
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


def run(main: Callable[[], None], *, summary: str, what: Sequence[str], how: Sequence[str] = (),
        results: Sequence[str] = (), more: Mapping[str, Sequence[str]] | None = None) -> None:
    """Parses flags and runs a comparison.

    Args:
        main: reads the flags.
        summary: for `--help`.
        what: flags that say what is measured, besides the shared ones.
        how: flags that say how.
        results: flags of the results.
        more: further groups of flags.
    """
    groups = {"What": (*what, "systems", "peers_python"), "How": (*how, "rounds", "timeout"),
              **(more or {}), "Results": ("output_dir", *results)}
    command_line.run(main, summary=summary, groups={
        title: [name for name in names if name in flags.FLAGS] for title, names in groups.items()})


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

    @classmethod
    def of_flags(cls, systems: Sequence[System]) -> "Bench":
        """Chooses systems and creates the directory of results.

        Raises:
            UserError: an unknown system, a --peers_python that doesn't exist and that a chosen
                system needs, or a directory that can't be created.
        """
        values = flags.FLAGS
        python = pathlib.Path(values.peers_python or sys.executable)
        found = chosen(systems, getattr(values, "systems", []))
        if not python.exists() and any(system.in_peers_environment for system in found):
            if values["peers_python"].present:
                raise UserError(f"--peers_python: there is no {python}; `make peers` builds it.")
            print(f"There is no {python}: systems in PyTorch are left out; `make peers` builds it.")
            found = [system for system in found if not system.in_peers_environment]
        machine = describe_machine()
        atomic_file.make_directory(pathlib.Path(values.output_dir))
        return cls(systems=found, peers_python=python, output=pathlib.Path(values.output_dir),
                   timeout=values.timeout, machine=machine)

    def measure(self, case: Case, *, alone: bool = False, threads: int = 0,
                team: Callable[[Callable[[], Worker]], Answering] = lambda start: start(),
                ) -> list[Measurement]:
        """Measures all systems in one case.

        Args:
            case: what they compute.
            alone: True if every turn is a new process that runs alone.
            threads: CPU cores of a process; 0 for all.
            team: starts a system's worker, or several that answer as one.
        """
        with tempfile.TemporaryDirectory() as caches:
            protocol = Turns(case=case, launch=lambda system: team(
                functools.partial(self._start, system, pathlib.Path(caches), threads)))
            return (protocol.measure_alone if alone else protocol.measure)(self.systems)

    def _start(self, system: System, caches: pathlib.Path, threads: int) -> Worker:
        """Starts a system's process; its compilers' caches are empty at the first start."""
        python = self.peers_python if system.in_peers_environment else sys.executable
        count, cache = str(threads or usable_cores()), str(caches / system.name)
        variables = os.environ | {
            "CUDA_VISIBLE_DEVICES": "-1", "HF_HUB_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "2",
            "OMP_NUM_THREADS": count, "TF_NUM_INTEROP_THREADS": count,
            "TF_NUM_INTRAOP_THREADS": count, "TORCHINDUCTOR_CACHE_DIR": cache,
            "JAX_COMPILATION_CACHE_DIR": cache, **system.variables}
        return Worker([str(pathlib.Path(python).absolute()), "-m", system.module],
                      environment=variables, timeout=self.timeout)

    def save(self, name: str, title: str, measured: Sequence[Measurement], body: Sequence[str],
             content: Mapping[str, Any]) -> None:
        """Prints a page of Markdown, and writes it and every reply of every system as JSON."""
        page = "\n".join([f"# {title}", "", _machine_line(self.machine), "",
                          tables.versions_line(measured), "", *body, "",
                          *tables.failures(measured), ""])
        print(f"\n{page}")
        atomic_file.write_atomically(self.output / f"{name}.md", page.encode())
        write_json(self.output / f"{name}.json", {
            "machine": self.machine, **content,
            "systems": [dataclasses.asdict(one) for one in measured]})
        print(f"wrote {self.output}/{name}.md, {name}.json", flush=True)


def describe_machine() -> dict[str, str | float]:
    """Returns processor, cores, memory, and the machine's load before the benchmark."""
    return {
        "processor": table(CPU_INFO).get("model name", platform.processor() or platform.machine()),
        "cores": usable_cores(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "load_before": round(os.getloadavg()[0], 2),
    }


def _machine_line(machine: Mapping[str, Any]) -> str:
    return (f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']:.0f} GB; "
            f"load before the start {machine['load_before']:.2f}")
