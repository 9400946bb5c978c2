r"""Compares the pre-training step with Hugging Face and the machine's limit.

    make bench
    python -m benchmarks.pretraining --cases=small-128 --systems=ours,hf-bfloat16 --rounds=5

Prints a table per case. On two CPU cores the three cases take about an hour; stop other programs
first. benchmarks/README.md describes the measurement.
"""

import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from absl import flags

from benchmarks.pretraining.cases import CASES, OTHER_CASES, workload_of
from benchmarks.pretraining.matmuls import step_flops
from benchmarks.pretraining.system import Workload
from electra_tf.core import command_line, machine
from electra_tf.core.errors import UserError

ROOT = pathlib.Path(__file__).parents[2]
OURS, BASELINE, LIMIT = "ours", "hugging_face", "matmuls"
"""Modules of this package whose processes are measured; the last is the machine's limit."""
Lines = Sequence[Mapping[str, Any]]
"""A line of every round of a system, or of the rounds until it failed, the last with "failure"."""


class System(NamedTuple):
    """One setting of one implementation."""

    module: str
    settings: Mapping[str, Any]


SYSTEMS = {
    **{f"{name}-{precision}": System(module, {"precision": precision})
       for name, module in (("ours", OURS), ("matmuls", LIMIT))
       for precision in ("bfloat16", "float32")},
    **{f"hf-{precision}{'-compiled' * compiled}": System(
        BASELINE, {"precision": precision, "compiled": compiled})
       for precision in ("bfloat16", "float32") for compiled in (False, True)}}


def select(prefixes: Sequence[str], python: str) -> list[str]:
    """Returns the names of the systems that --systems selects and this machine can run.

    Raises `UserError` for a prefix of no name, or if no system remains beside the limit.
    """
    if unknown := [prefix for prefix in prefixes
                   if not any(name.startswith(prefix) for name in SYSTEMS)]:
        raise UserError(f"--systems: no system's name begins with {unknown[0]!r}. "
                        f"There are: {', '.join(SYSTEMS)}")
    selected = [name for name, system in SYSTEMS.items() if system.module == LIMIT
                or not prefixes or name.startswith(tuple(prefixes))]
    # Without bfloat16 units a step takes minutes; a complete name runs it nevertheless.
    slow = [] if machine.cpu_multiplies_bfloat16() else [
        name for name in selected if SYSTEMS[name].settings["precision"] == "bfloat16"
        and name not in prefixes]
    missing = [] if os.path.exists(python) else [
        name for name in selected if SYSTEMS[name].module != OURS]
    for reason, left_out in (("this CPU has no bfloat16 units", slow),
                             (f"there is no {python}, which `make peers` builds", missing)):
        if left_out:
            print(f"{reason}; left out: {', '.join(left_out)}")
    remaining = [name for name in selected if name not in slow + missing]
    if all(SYSTEMS[name].module == LIMIT for name in remaining):
        raise UserError("--systems: this machine can run none of these systems.")
    return remaining


def measure(names: Sequence[str], work: Workload) -> dict[str, Lines]:
    """Returns each system's lines of all rounds: A B C, then B C A.

    A slow quarter of an hour of the machine then affects all systems.
    """
    lines: dict[str, list] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as caches:  # Compilers' caches are empty in round 1.
        for number in range(flags.FLAGS.rounds):
            start = number % len(names)
            for name in [*names[start:], *names[:start]]:
                if lines[name] and "failure" in lines[name][-1]:
                    continue
                lines[name].append(run_round(SYSTEMS[name], work, f"{caches}/{name}"))
                print(json.dumps({"case": work.case, "system": name, **lines[name][-1]}),
                      file=sys.stderr, flush=True)
    return lines


def run_round(system: System, work: Workload, cache: str) -> Mapping[str, Any]:
    """Returns the line that a system's process printed, or one with the reason of its failure."""
    values, cores = flags.FLAGS, str(work.threads)
    python = sys.executable if system.module == OURS else os.path.abspath(values.peers_python)
    settings = {"begin": time.time(), "work": vars(work), "warm_up": 2, "repeat": values.steps,
                **system.settings}
    try:
        done = subprocess.run(
            [python, "-m", f"benchmarks.pretraining.{system.module}",
             json.dumps(settings, default=vars)],
            cwd=ROOT, text=True, stdout=subprocess.PIPE, timeout=values.timeout, check=False,
            env=os.environ | {
                "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2",
                "OMP_NUM_THREADS": cores, "TF_NUM_INTEROP_THREADS": cores,
                "TF_NUM_INTRAOP_THREADS": cores, "TORCHINDUCTOR_CACHE_DIR": cache})
    except subprocess.TimeoutExpired:
        return {"failure": f"no line within {values.timeout:g} s"}
    line = next((text for text in done.stdout.splitlines() if text.startswith("{")), None)
    if done.returncode or line is None:  # Its messages are on stderr.
        return {"failure": f"ended with status {done.returncode}"}
    loss = json.loads(line).get("loss", 0.0)
    return json.loads(line) if math.isfinite(loss) else {"failure": f"the loss is {loss}"}


def section(case: str, lines: Mapping[str, Lines]) -> list[str]:
    """Returns the lines of one case as Markdown: what was run, the limit, the table, failures."""
    work = workload_of(case)
    failures = {name: rounds[-1]["failure"] for name, rounds in lines.items()
                if "failure" in rounds[-1]}

    def median(name: str, field: str) -> float:
        return statistics.median(line[field] for line in lines[name])

    # The highest FLOP/s of the dense matmuls alone is the machine's limit.
    finished = [name for name in lines if name not in failures]
    limits = {name: step_flops(work) / median(name, "seconds") for name in finished
              if SYSTEMS[name].module == LIMIT}
    # Ours and the baselines, the fastest first.
    speeds = {name: [work.batch * work.length / line["seconds"] for line in lines[name]]
              for name in finished if name not in limits}
    medians = {name: statistics.median(rounds) for name, rounds in speeds.items()}
    best = max((medians[name] for name in medians if SYSTEMS[name].module == BASELINE), default=0)
    table = ["| system | tokens/s | x fastest baseline | GFLOP/s | of limit | start s | peak GB "
             "| loss |", "|---" + "|--:" * 7 + "|"]
    for name in sorted(speeds, key=medians.get, reverse=True):
        rounds, speed = speeds[name], medians[name]
        table.append("| " + " | ".join([
            lines[name][0]["label"], f"{speed:,.0f} ({min(rounds):,.0f} to {max(rounds):,.0f})",
            f"{speed / best:.2f}" if best else "-", f"{speed * work.token_flops / 1e9:,.0f}",
            f"{speed * work.token_flops / max(limits.values()):.1%}" if limits else "-",
            f"{median(name, 'start_seconds'):.0f}", f"{median(name, 'peak_gb'):.1f}",
            f"{median(name, 'loss'):.1f}"]) + " |")
    return [
        f"## {case}", "",
        f"- {work.batch} x {work.length} tokens, {work.predictions} of each {work.length} masked, "
        f"{work.threads} cores",
        f"- MFLOPs of matmuls per token: {work.token_flops / 1e6:,.1f}",
        "- GFLOP/s of the dense matmuls alone, the highest being the machine's limit: "
        + (", ".join(f"{name} {speed / 1e9:,.0f}" for name, speed in limits.items())
           or "not measured"), "", *table, "",
        *(f"- {name} failed: {reason}" for name, reason in failures.items())]


def main() -> None:
    """Measures one case after the other, and prints a page of Markdown for each."""
    workloads = {case: workload_of(case) for case in flags.FLAGS.cases}
    names = select(flags.FLAGS.systems, flags.FLAGS.peers_python)
    processor = machine.cpu_info().get("model name", platform.machine())
    for case, work in workloads.items():
        measured = measure(names, work)
        versions = {library: version for lines in measured.values() for line in lines
                    for library, version in line.get("versions", {}).items()}
        print("\n".join([
            "# Pre-training speed", "", f"{processor}, {work.threads} cores; " + ", ".join(
                f"{library} {version}" for library, version in versions.items()), "",
            *section(case, measured)]), flush=True)


if __name__ == "__main__":
    flags.DEFINE_list("cases", list(CASES),
                      f"Cases to measure: {', '.join(CASES)}, toy; or {OTHER_CASES}.")
    flags.DEFINE_list("systems", [], f"Systems to measure, or prefixes of their names: "
                      f"{', '.join(SYSTEMS)}. Default: all.")
    flags.DEFINE_integer("steps", 5, "Training steps per round.", lower_bound=1)
    flags.DEFINE_integer("rounds", 3, "Measurements of every system.", lower_bound=1)
    flags.DEFINE_float("timeout", 1200, "Seconds to wait for a round of a system, with its start "
                       "and compilation.", lower_bound=1)
    flags.DEFINE_string("peers_python", ".venv-peers/bin/python",
                        "Python interpreter of the environment with PyTorch.")
    command_line.run(main, summary=__doc__, groups={
        "What is measured": ["cases", "systems"],
        "How": ["steps", "rounds", "timeout", "peers_python"]})
