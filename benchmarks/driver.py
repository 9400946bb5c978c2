"""Measures systems in interleaved rounds (A B C, then B C A), and writes their medians.

A slow quarter of an hour of the machine then affects all systems. In each round every system is a
new process, which has the machine to itself and prints a line of JSON (`system.py`). The lines go
to stderr, and tables of medians to stdout.
"""

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from absl import flags

from electra_tf.core import command_line, machine
from electra_tf.core.errors import UserError

ROOT = pathlib.Path(__file__).parents[1]
OURS, BASELINE, LIMIT = "ours", "baseline", "limit"
Line = Mapping[str, Any]


@dataclasses.dataclass(kw_only=True)
class System:
    """One setting of one implementation, and what it printed."""

    name: str
    module: str
    """Module that calls `system.run`."""
    role: str = BASELINE
    """OURS, BASELINE, or LIMIT, which --systems does not leave out."""
    settings: Mapping[str, Any]
    pytorch: bool = False
    """True if it runs in the environment with PyTorch."""
    lines: list[Line] = dataclasses.field(default_factory=list)
    """A line per round, with "label" and "versions", or with "failure"."""

    @property
    def label(self) -> str:
        """Name in tables."""
        return self.lines[0].get("label", self.name)

    @property
    def failure(self) -> str:
        """Why the last round failed, on one line; no other round follows it."""
        return self.lines[-1].get("failure", "") if self.lines else ""

    def values(self, field: str) -> list[Any]:
        """Returns a field of every line; [] if the system failed."""
        return [] if self.failure else [line[field] for line in self.lines]


def measure(case: str, systems: Iterable[System], settings: Mapping[str, Any], *, rounds: int,
            threads: int = 0) -> list[System]:
    """Returns copies of the systems with their lines; `threads` 0 stands for all cores."""
    measured = [dataclasses.replace(system, lines=[]) for system in systems]
    with tempfile.TemporaryDirectory() as caches:  # Compilers' caches are empty in round 1.
        for number in range(rounds):
            start = number % len(measured)
            for system in [*measured[start:], *measured[:start]]:
                if system.failure:
                    continue
                line = run_round(system, settings, threads or machine.usable_cores(), caches)
                print(json.dumps({"case": case, "system": system.name, **line}), file=sys.stderr,
                      flush=True)
                system.lines.append(line)
    return measured


def run_round(system: System, settings: Mapping[str, Any], threads: int, caches: str) -> Line:
    """Runs a system's process; returns the line that it printed, or why there is none."""
    python, cores = flags.FLAGS.peers_python if system.pytorch else sys.executable, str(threads)
    settings = {"begin": time.time(), **settings, **system.settings}
    with tempfile.TemporaryFile() as errors:
        # In a group of its own, signals also reach its children, and Ctrl-C the driver alone.
        process = subprocess.Popen(
            [os.path.abspath(python), "-m", system.module, json.dumps(settings, default=vars)],
            cwd=ROOT, text=True, process_group=0, stdout=subprocess.PIPE, stderr=errors,
            env=os.environ | {
                "CUDA_VISIBLE_DEVICES": "-1", "HF_HUB_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "2",
                "OMP_NUM_THREADS": cores, "TF_NUM_INTEROP_THREADS": cores,
                "TF_NUM_INTRAOP_THREADS": cores,
                "TORCHINDUCTOR_CACHE_DIR": f"{caches}/{system.name}"})
        try:
            output, _ = process.communicate(timeout=flags.FLAGS.timeout)
        except subprocess.TimeoutExpired:
            return {"failure": f"no line within {flags.FLAGS.timeout:g} s"}
        finally:  # Also after Ctrl-C.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        line = next((text for text in output.splitlines() if text.startswith("{")), None)
        if process.returncode or line is None:
            errors.seek(0)
            return {"failure": reason_of_death(
                process.returncode, errors.read().decode(errors="replace"))}
    loss = json.loads(line).get("loss", 0.0)
    return json.loads(line) if math.isfinite(loss) else {"failure": f"the loss is {loss}"}


def reason_of_death(status: int, errors: str) -> str:
    """Returns a signal's name, stderr's last error with the line after it, or its last line."""
    if status < 0:
        name = signal.Signals(-status).name
        return f"killed by {name}" + " (out of memory?)" * (name == "SIGKILL")
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    for index in reversed(range(len(lines))):
        if error := re.match(r"(?:\w+\.)*(\w+(?:Error|Exception)\b.*)", lines[index]):
            return " ".join([error[1], *lines[index + 1:index + 2]])[:240]
    return lines[-1][:240] if lines else f"ended with status {status} and no line"


def run(main: Callable[[], None], summary: str, names: Sequence[str], systems: Sequence[System],
        *, rounds: int) -> None:
    """Defines the flags that all benchmarks have, and runs one; `names` are its other flags."""
    flags.DEFINE_list("systems", [], "Systems to measure, or prefixes of their names: " + ", ".join(
        system.name for system in systems if system.role != LIMIT) + ". Default: all.")
    flags.DEFINE_integer("rounds", rounds, "Measurements of every system.", lower_bound=1)
    flags.DEFINE_float("timeout", 1200, "Seconds to wait for a round of a system, with its start "
                       "and compilation.", lower_bound=1)
    flags.DEFINE_string("peers_python", ".venv-peers/bin/python",
                        "Python interpreter of the environment with PyTorch.")
    command_line.run(main, summary=summary, groups={
        "What is measured": names,
        "How": ["systems", "rounds", "timeout", "peers_python"]})


def select(systems: Sequence[System]) -> list[System]:
    """Returns the systems of --systems that this machine can run, and prints those left out.

    Raises:
        UserError: a prefix of no system's name, or no system remains.
    """
    prefixes, python = tuple(flags.FLAGS.systems), flags.FLAGS.peers_python
    names = [system.name for system in systems if system.role != LIMIT]
    if unknown := [word for word in prefixes if not any(name.startswith(word) for name in names)]:
        raise UserError(f"--systems: no system's name begins with {unknown[0]!r}. "
                        f"There are: {', '.join(names)}")
    selected = [system for system in systems if system.role == LIMIT or not prefixes
                or system.name.startswith(prefixes)]
    # Without bfloat16 units a step takes minutes; a complete name runs it nevertheless.
    slow = [] if machine.cpu_multiplies_bfloat16() else [
        system for system in selected if system.settings.get("precision") == "bfloat16"
        and system.name not in prefixes]
    missing = [] if os.path.exists(python) else [system for system in selected if system.pytorch]
    for reason, left_out in (("this CPU has no bfloat16 units", slow),
                             (f"there is no {python}, which `make peers` builds", missing)):
        if left_out:
            print(f"{reason}; left out: {', '.join(system.name for system in left_out)}")
    remaining = [system for system in selected if system not in slow + missing]
    if all(system.role == LIMIT for system in remaining):
        raise UserError("--systems: this machine can run none of these systems.")
    return remaining


Column = tuple[str, Sequence[str]]
"""Heading, and a cell for each system."""
Numbers = Callable[[System], Sequence[float]]
"""Maps a system to a number per round; to none if it failed."""


def column(systems: Sequence[System], heading: str, numbers: Numbers, form: str) -> Column:
    """Returns the median over the rounds."""
    return heading, [format(statistics.median(rounds), form) if rounds else "-"
                     for rounds in map(numbers, systems)]


def compare(systems: Sequence[System], heading: str, numbers: Numbers, form: str = ",.0f", *,
            lower_is_better: bool = False) -> list[Column]:
    """Returns two columns: the median and range over the rounds, and the ratio of medians.

    The ratio is to the fastest baseline; above 1 is faster.
    """
    medians = {system.name: statistics.median(rounds) for system in systems
               if (rounds := numbers(system))}
    best = (min if lower_is_better else max)(
        (medians[system.name] for system in systems
         if system.role == BASELINE and system.name in medians), default=None)
    cells, ratios = ["-"] * len(systems), ["-"] * len(systems)
    for index, system in enumerate(systems):
        if middle := medians.get(system.name):
            rounds = numbers(system)
            cells[index] = f"{middle:{form}} ({min(rounds):{form}} to {max(rounds):{form}})"
            ratios[index] = f"{(best / middle if lower_is_better else middle / best):.2f}" if (
                best) else "-"
    return [(heading, cells), ("x fastest baseline", ratios)]


def table(systems: Sequence[System], columns: Iterable[Column]) -> list[str]:
    """Returns Markdown that is aligned for the terminal, and below it the reasons of failures."""
    cells = [["system", "-", *(system.label for system in systems)],
             *([heading, "-", *column] for heading, column in columns)]
    widths = [max(map(len, column)) for column in cells]
    rows = [[cell.rjust(width) if index else cell.ljust(width) for index, (cell, width) in
             enumerate(zip(row, widths, strict=True))] for row in zip(*cells, strict=True)]
    rows[1] = ["-" * (width - 1) + (":" if index else "-") for index, width in enumerate(widths)]
    return [*(f"| {' | '.join(row)} |" for row in rows), "",
            *(f"- {system.label} failed: {system.failure}" for system in systems if system.failure)]


def print_page(title: str, body: Sequence[str], systems: Sequence[System]) -> None:
    """Prints a page of Markdown with the machine and the versions of all libraries."""
    versions = {library: version for system in systems for line in system.lines
                for library, version in line.get("versions", {}).items()}
    processor = machine.entries(machine.CPU_INFO).get("model name", platform.machine())
    print("\n".join([
        f"# {title}", "", f"{processor}, {machine.usable_cores()} cores; "
        + ", ".join(f"{library} {version}" for library, version in versions.items()), "", *body]),
        flush=True)
