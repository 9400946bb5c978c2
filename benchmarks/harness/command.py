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
from benchmarks.harness.turns import BenchmarkCase, Measurement, System, Turns
from benchmarks.harness.worker import Worker
from electra_tf.platform import atomic_file, command_line
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import CPU_INFO, cpu_multiplies_bfloat16, entries, usable_cores


def run(main: Callable[[], None], summary: str, own_flags: Sequence[str],
        systems: Sequence[System], *, rounds: int | None = None, timeout: float = 1200,
        peers_python: str = ".venv-peers/bin/python") -> None:
    """Defines the shared flags with a comparison's defaults, and runs it.

    `own_flags` are the names of its other flags; `rounds` None: no --rounds.
    """
    names = ", ".join(system.name for system in systems if not system.always)
    flags.DEFINE_list(
        "systems", [], f"Systems to measure, or prefixes of their names: {names}. Default: all.")
    if rounds is not None:
        flags.DEFINE_integer("rounds", rounds, "Number of turns of every system.", lower_bound=1)
    flags.DEFINE_float("timeout", timeout, "Seconds to wait for an answer of a system. The first "
                       "answer includes compilation.", lower_bound=1)
    flags.DEFINE_string("output_dir", "benchmarks/results", "Directory to write results to.")
    flags.DEFINE_string("peers_python", peers_python, "Python interpreter of the environment with "
                        f"PyTorch.{'' if peers_python else ' Default: the current one.'}")
    shared = ["systems", *(["rounds"] if rounds is not None else []), "timeout", "peers_python",
              "output_dir"]
    command_line.run(main, summary=summary,
                     groups={"What is measured": own_flags, "How": shared})


def choose(systems: Sequence[System], prefixes: Sequence[str]) -> list[System]:
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


def without_slow_bfloat16(systems: Sequence[System], names: Sequence[str]) -> list[System]:
    """Returns the systems that the CPU can run; without bfloat16 units, a step takes minutes.

    Systems in bfloat16 whose complete name is in `names` are kept. Prints a line on either.

    Raises:
        UserError: no system that `--systems` can leave out remains.
    """
    slow = [system for system in systems if system.precision == "bfloat16"]
    if not slow or cpu_multiplies_bfloat16():
        return list(systems)
    removed = [system.name for system in slow if system.name not in names]
    kept = [system.name for system in slow if system.name in names]
    remaining = [system for system in systems if system.name not in removed]
    reason = "this CPU has no bfloat16 units"
    if all(system.always for system in remaining):
        raise UserError(f"--systems: {reason}, so {', '.join(removed)} would take minutes per step."
                        " Give systems in float32, or complete names to run these.")
    if removed:
        print(f"{reason}; left out, as a step takes minutes: {', '.join(removed)}")
    if kept:
        print(f"warning: {reason}; a step takes minutes with {', '.join(kept)}")
    return remaining


class Bench:
    """One run of a comparison: its systems, their processes and the directory of results."""

    def __init__(self, systems: Sequence[System], *, on_cpu: bool = True):
        """Selects systems by the flags and creates the directory of results.

        `on_cpu` False: they run on an accelerator.

        Raises:
            UserError: an unknown system, or a given --peers_python that doesn't exist.
        """
        values = flags.FLAGS
        self.systems = choose(systems, values.systems)
        if on_cpu:
            self.systems = without_slow_bfloat16(self.systems, values.systems)
        self._peers_python = pathlib.Path(values.peers_python or sys.executable)
        in_this_environment = [
            system for system in self.systems if not system.in_peers_environment]
        if not self._peers_python.exists() and len(in_this_environment) < len(self.systems):
            problem = f"there is no {self._peers_python}; `make peers` builds it."
            if values["peers_python"].present:
                raise UserError(f"--peers_python: {problem}")
            print(f"Systems in PyTorch are left out: {problem}")
            self.systems = in_this_environment
        self._output = pathlib.Path(values.output_dir)
        atomic_file.make_directory(self._output)
        self._load = os.getloadavg()[0]

    def measure(self, case: BenchmarkCase, *, alone: bool = False,
                threads: int = 0) -> list[Measurement]:
        """Measures all systems in one case, each on `threads` CPU cores (0: all).

        With `alone`, every turn is a new process that runs alone.
        """
        cores = str(threads or usable_cores())
        with tempfile.TemporaryDirectory() as caches:  # They are empty at a system's first start.

            def launch(system: System) -> Worker:
                python = self._peers_python if system.in_peers_environment else sys.executable
                cache = f"{caches}/{system.name}"
                return Worker(
                    [str(pathlib.Path(python).absolute()), "-m", "benchmarks.harness.worker",
                     system.module, str(os.getpid())],
                    timeout=flags.FLAGS.timeout, environment=os.environ | {
                        "CUDA_VISIBLE_DEVICES": "-1", "HF_HUB_OFFLINE": "1",
                        "TF_CPP_MIN_LOG_LEVEL": "2", "OMP_NUM_THREADS": cores,
                        "TF_NUM_INTEROP_THREADS": cores, "TF_NUM_INTRAOP_THREADS": cores,
                        "TORCHINDUCTOR_CACHE_DIR": cache, "JAX_COMPILATION_CACHE_DIR": cache,
                        **system.variables})

            turns = Turns(case=case, launch=launch)
            return (turns.measure_alone if alone else turns.measure)(self.systems)

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
        atomic_file.write_json(self._output / f"{name}.json", {
            "machine": machine, **content,
            "systems": [dataclasses.asdict(result) for result in measured]})
        print(f"wrote {self._output}/{name}.md, {name}.json", flush=True)
        return self._output / name
