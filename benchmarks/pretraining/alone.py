"""Measures our step by itself, in a process of its own."""

import functools
import pathlib
import sys
import tempfile

from benchmarks.harness import host
from benchmarks.pretraining import cases, systems
from benchmarks.pretraining.interleave import Measurement, Turns

TIMEOUT_SECONDS = 1200


def measure_alone(case: str, *, precision: str, rounds: int) -> Measurement:
    """Returns what `rounds` steps of a case took, after the first and two to warm up.

    Args:
        case: a name that `cases.case_of` knows.
        precision: "bfloat16" or "float32".
        rounds: steps to time.
    """
    workload = cases.workload_of(case, host.available_cores())
    ours = next(system for system in systems.SYSTEMS if system.name == f"ours-{precision}")
    with tempfile.TemporaryDirectory() as cache:
        turns = Turns(
            workload=workload, rounds=rounds, steps=1, has_room=lambda _largest: True,
            launch=lambda system: systems.launch(
                system, peers_python=pathlib.Path(sys.executable), threads=workload.threads,
                cache=pathlib.Path(cache), timeout=TIMEOUT_SECONDS),
            say=functools.partial(print, f"{case}:", file=sys.stderr, flush=True))
        (measurement,) = turns.measure([ours])
    return measurement
