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
from benchmarks.driver import BASELINE, LIMIT, OURS, System
from electra_tf.core import machine
from electra_tf.core.errors import UserError
from tests.support import command_flags, sources

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
    ("nan", "the loss is nan"), ("sleep", "no line within 3 s")])
def test_a_system_that_fails_is_a_row_with_its_reason(start, tmp_path, fails, reason):
    out, _ = start("--rounds=2", "--timeout=3", fails=fails).communicate(timeout=120)
    names = [line.split()[0] for line in (tmp_path / "log.txt").read_text().splitlines()]
    assert f"- b failed: {reason}" in out and "| b             |    - |" in out
    assert names.count("a") == names.count("c") == 8 and names.count("b") <= 4


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_benchmark_and_its_process(start, tmp_path, number, status):
    benchmark, log = start("--systems=b", fails="sleep"), tmp_path / "log.txt"
    wait_until(lambda: log.exists() and log.read_text().endswith("\n"))
    benchmark.send_signal(number)
    benchmark.communicate(timeout=60)
    assert benchmark.returncode == status
    process = int(log.read_text().split()[1])
    wait_until(lambda: not pathlib.Path(f"/proc/{process}").exists())


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(("errors", "reason"), [
    ("W0000 a warning\n\n", "W0000 a warning"),
    ("", "ended with status 1 and no line"),
    ("Traceback ...\na.b.InvalidArgumentError: in layer x\ncannot add\nArguments:\n  * y\n",
     "InvalidArgumentError: in layer x cannot add"),
    ("KeyError: 1\nDuring handling\nRuntimeError: late\n", "RuntimeError: late"),
])
def test_the_reason_is_the_last_error_with_the_line_after_it(errors, reason):
    assert driver.reason_of_death(1, errors) == reason


def selected(*arguments, bfloat16=True, monkeypatch):
    systems = [System(name=name, module="none", role=role, pytorch=name.startswith("hf"),
                      settings={"precision": name.rpartition("-")[2]}) for name, role in (
        ("ours-bfloat16", OURS), ("ours-float32", OURS), ("limit-float32", LIMIT),
        ("hf-float32", BASELINE))]
    chosen = []
    monkeypatch.setattr(machine, "cpu_multiplies_bfloat16", lambda: bfloat16)
    monkeypatch.setattr(driver.command_line, "run", lambda main, **_: None)
    with command_flags.defined(lambda: driver.run(None, "", [], systems, rounds=1)):
        command_flags.call(lambda: chosen.extend(driver.select(systems)), *arguments)
    return [system.name for system in chosen]


def test_systems_are_chosen_by_prefixes_and_by_what_the_machine_can_run(monkeypatch, capsys):
    def names(*arguments, **fields):
        return selected(*arguments, monkeypatch=monkeypatch, **fields)

    python = f"--peers_python={sys.executable}"
    assert names(python) == ["ours-bfloat16", "ours-float32", "limit-float32", "hf-float32"]
    assert names(python, "--systems=ours-f,hf") == ["ours-float32", "limit-float32", "hf-float32"]
    assert names("--peers_python=/nowhere", bfloat16=False) == ["ours-float32", "limit-float32"]
    printed = capsys.readouterr().out
    assert "no bfloat16 units; left out: ours-bfloat16\n" in printed
    assert "there is no /nowhere, which `make peers` builds; left out: hf-float32\n" in printed
    assert "ours-bfloat16" in names(python, "--systems=ours-bfloat16", bfloat16=False)
    with pytest.raises(UserError, match="begins with 'limit'. There are: ours-bfloat16, ours-f"):
        names("--systems=limit")
    with pytest.raises(UserError, match="can run none of these"):
        names("--systems=hf", "--peers_python=/nowhere")


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
