"""Runs comparisons from the command line: shared flags, processes and files of results."""

import dataclasses
import os
import pathlib
import platform
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import flags

from benchmarks.harness import tables
from benchmarks.harness.turns import Case, Measurement, System, Turns
from benchmarks.harness.worker import Worker
from electra_tf.platform import atomic_file, command_line
from electra_tf.platform.atomic_file import write_json
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import CPU_INFO, entries, usable_cores


def define_flags(systems: Sequence[System], *, rounds: int | None = None, timeout: float = 1200,
                 peers_python: str = ".venv-peers/bin/python") -> None:
    """Defines the shared flags with a comparison's defaults; `rounds` None: no --rounds."""
    names = ", ".join(system.name for system in systems if not system.always)
    flags.DEFINE_list(
        "systems", [], f"Systems, or prefixes of their names: {names}. Default: all.")
    if rounds is not None:
        flags.DEFINE_integer("rounds", rounds, "Turns of every system.", lower_bound=1)
    flags.DEFINE_float("timeout", timeout, "Seconds to wait for one answer; the first includes "
                       "compiling.", lower_bound=1)
    flags.DEFINE_string("output_dir", "benchmarks/results", "Directory for the results.")
    flags.DEFINE_string("peers_python", peers_python, "Python of the environment with PyTorch"
                        f"{'' if peers_python else '. Default: this one'}.")


def run(main: Callable[[], None], summary: str, what: Sequence[str]) -> None:
    """Parses flags and runs a comparison; `what` names the flags besides the shared ones."""
    shared = ("systems", "rounds", "timeout", "peers_python", "output_dir")
    command_line.run(main, summary=summary, groups={
        "What is measured": what, "How": [name for name in shared if name in flags.FLAGS]})


def chosen(systems: Sequence[System], prefixes: Sequence[str]) -> list[System]:
    """Returns the systems whose names begin with one of `prefixes`; all if there are none.

    Raises:
        UserError: a prefix of no system's name.
    """
    names = [system.name for system in systems if not system.always]
    for prefix in prefixes:
        if not any(name.startswith(prefix) for name in names):
            raise UserError(f"--systems: no system's name begins with {prefix!r}. "
                            f"There are: {', '.join(names)}")
    return [system for system in systems if system.always or not prefixes
            or system.name.startswith(tuple(prefixes))]


class Bench:
    """One run of a comparison: its systems, their processes and the directory of results."""

    def __init__(self, systems: Sequence[System]):
        """Selects systems by the flags and creates the directory of results.

        Raises:
            UserError: an unknown system, or a given --peers_python that doesn't exist.
        """
        values = flags.FLAGS
        self.systems = chosen(systems, values.systems)
        self._python = pathlib.Path(values.peers_python or sys.executable)
        if not self._python.exists() and any(one.in_peers_environment for one in self.systems):
            missing = f"there is no {self._python}; `make peers` builds it."
            if values["peers_python"].present:
                raise UserError(f"--peers_python: {missing}")
            print(f"Systems in PyTorch are left out: {missing}")
            self.systems = [one for one in self.systems if not one.in_peers_environment]
        self._output = pathlib.Path(values.output_dir)
        atomic_file.make_directory(self._output)
        self._load = os.getloadavg()[0]

    def measure(self, case: Case, *, alone: bool = False, threads: int = 0) -> list[Measurement]:
        """Measures all systems in one case.

        Args:
            case: the workload.
            alone: True if every turn is a new process that runs alone.
            threads: number of CPU cores of a process; 0 for all.
        """
        with tempfile.TemporaryDirectory() as caches:
            protocol = Turns(case=case, launch=lambda system: self._start(
                system, pathlib.Path(caches), str(threads or usable_cores())))
            return (protocol.measure_alone if alone else protocol.measure)(self.systems)

    def _start(self, system: System, caches: pathlib.Path, threads: str) -> Worker:
        """Starts a system's process; its compilers' caches are empty at the first start."""
        python = self._python if system.in_peers_environment else pathlib.Path(sys.executable)
        cache = str(caches / system.name)
        variables = os.environ | {
            "CUDA_VISIBLE_DEVICES": "-1", "HF_HUB_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "2",
            "OMP_NUM_THREADS": threads, "TF_NUM_INTEROP_THREADS": threads,
            "TF_NUM_INTRAOP_THREADS": threads, "TORCHINDUCTOR_CACHE_DIR": cache,
            "JAX_COMPILATION_CACHE_DIR": cache, **system.variables}
        return Worker([str(python.absolute()), "-m", system.module],
                      environment=variables, timeout=flags.FLAGS.timeout)

    def save(self, name: str, title: str, measured: Sequence[Measurement], body: Sequence[str],
             content: Mapping[str, Any]) -> pathlib.Path:
        """Prints a page of Markdown, and writes it and every reply of every system as JSON.

        Returns:
            The path of both files and of a picture beside them, without its suffix.
        """
        processor = entries(CPU_INFO).get("model name", platform.processor() or platform.machine())
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
        machine = (f"{processor}, {usable_cores()} cores, {memory:.0f} GB; load before the start "
                   f"{self._load:.2f}.")
        page = "\n".join([f"# {title}", "", machine, tables.versions_line(measured), "", *body, "",
                          *tables.failures(measured), ""])
        print(f"\n{page}")
        atomic_file.write_atomically(self._output / f"{name}.md", page.encode())
        write_json(self._output / f"{name}.json", {
            "machine": machine, **content,
            "systems": [dataclasses.asdict(one) for one in measured]})
        print(f"wrote {self._output}/{name}.md, {name}.json", flush=True)
        return self._output / name
