"""The driver with small real processes: rounds, failures, signals and tables."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from benchmarks import driver
from benchmarks.driver import BASELINE, OURS, System
from tests.support import sources

ROOT = pathlib.Path(__file__).parents[2]
SMALL_SYSTEM = """
import os, time
from benchmarks import system

def prepare(name, log, size, fails=""):
    def work():
        with open(log, "a") as file:
            print(name, os.getpid(), file=file)
        print("half a line", end="")
        if fails == "sleep":
            time.sleep(600)
        if fails == "kill":
            os.kill(os.getpid(), 9)
        if fails == "error":
            raise ValueError("no such shape")
        return {"label": f"{name} of {size.layers} layers", "versions": {"fake": "1"},
                "loss": float("nan") if fails == "nan" else 45.0}
    return work

system.run(prepare)
"""
SMALL_BENCHMARK = """
from absl import flags
from benchmarks import driver
from benchmarks.driver import System

SYSTEMS = [System(name=name, module="small_system", settings={"name": name, "fails": fails},
                  role=role) for name, fails, role in (
    ("a", "", "ours"), ("b", FAILS, "baseline"), ("c", "", "baseline"))]

def main():
    systems = driver.measure("toy", driver.select(SYSTEMS), {
        "log": LOG, "size": {"layers": 3}, "warm_up": 1, "repeat": 2}, rounds=flags.FLAGS.rounds)
    driver.print_page("Toy", driver.table(systems, [driver.column(
        systems, "loss", lambda system: system.values("loss"), ".1f")]), systems)

driver.run(main, "Measures nothing.", [], SYSTEMS, rounds=3)
"""


@pytest.fixture
def start(tmp_path):
    """Starts a benchmark of three systems, the second of which may fail."""
    def start(*arguments, fails=""):
        (tmp_path / "small_system.py").write_text(SMALL_SYSTEM)
        program = SMALL_BENCHMARK.replace("FAILS", repr(fails)).replace(
            "LOG", repr(str(tmp_path / "log.txt")))
        return subprocess.Popen(
            [sys.executable, "-c", program, *arguments], cwd=ROOT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"})

    return start


def test_rounds_are_interleaved_and_every_round_is_a_new_process(start, tmp_path):
    out, err = start().communicate(timeout=120)
    calls = [line.split() for line in (tmp_path / "log.txt").read_text().splitlines()]
    # One call with the start, one to warm up, two that are measured.
    assert [name for name, _ in calls] == [name for name in "abc" "bca" "cab" for _ in range(4)]
    assert len({process for _, process in calls}) == 9
    lines = [json.loads(line) for line in err.splitlines()]
    assert [(line["case"], line["system"]) for line in lines] == [
        ("toy", name) for name in "abc" "bca" "cab"]
    assert all(line["start_seconds"] > line["seconds"] > 0 and line["peak_gb"] > 0.01
               for line in lines)
    assert "| a of 3 layers | 45.0 |" in out and "fake 1" in out


@pytest.mark.parametrize(("fails", "reason"), [
    ("error", "ValueError: no such shape"), ("kill", "killed by SIGKILL (out of memory?)"),
    ("nan", "the loss is nan"),
    pytest.param("sleep", "no line within 3 s", marks=pytest.mark.slow)])
def test_a_system_that_fails_is_a_row_with_its_reason(start, tmp_path, fails, reason):
    out, _ = start("--rounds=2", "--timeout=3", fails=fails).communicate(timeout=120)
    names = [line.split()[0] for line in (tmp_path / "log.txt").read_text().splitlines()]
    assert f"- b failed: {reason}" in out and "| b             |    - |" in out
    assert names.count("a") == names.count("c") == 8 and names.count("b") <= 4


def test_a_signal_ends_the_benchmark_and_its_process(start, tmp_path):
    benchmark, log = start("--systems=b", fails="sleep"), tmp_path / "log.txt"
    wait_until(lambda: log.exists() and log.read_text().endswith("\n"))
    benchmark.send_signal(signal.SIGTERM)
    benchmark.communicate(timeout=60)
    assert benchmark.returncode == 143
    process = int(log.read_text().split()[1])
    wait_until(lambda: not pathlib.Path(f"/proc/{process}").exists())


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_cells_are_medians_with_ranges_and_ratios_to_the_fastest_baseline():
    def measured(name, seconds, role=BASELINE):
        return System(name=name, module="none", role=role, settings={}, lines=[
            {"seconds": value, "label": name} for value in seconds])

    def seconds(system):
        return system.values("seconds")

    dead = measured("dead", [1.0])
    dead.lines.append({"failure": "x"})
    systems = [measured("ours", [1.0], OURS), measured("slow", [8.0, 2.0, 4.0]),
               measured("fast", [3.0]), dead]
    assert driver.compare(systems, "s", seconds, ".1f", lower_is_better=True) == [
        ("s", ["1.0 (1.0 to 1.0)", "4.0 (2.0 to 8.0)", "3.0 (3.0 to 3.0)", "-"]),
        ("x fastest baseline", ["3.00", "0.75", "1.00", "-"])]
    assert driver.compare(systems, "s", seconds)[1][1] == ["0.25", "1.00", "0.75", "-"]
    assert driver.table([systems[0], dead], [("s", ["10", "-"])]) == [
        "| system |  s |", "| ------ | -: |", "| ours   | 10 |", "| dead   |  - |", "",
        "- dead failed: x"]


def test_systems_in_pytorchs_environment_import_nothing_that_it_lacks():
    modules = [name for name in sources.modules() if name.startswith("benchmarks.")
               and name.endswith((".hugging_face", ".matmuls", ".systems", ".pytorch_loop"))]
    # Others are imported inside functions.
    _, libraries = sources.closure(*modules, inside_functions=lambda name: False)
    assert len(modules) == 5 and libraries == {"numpy", "torch", "transformers"}
