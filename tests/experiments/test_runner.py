"""The runner with two programs that do in no time what the real ones do."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from electra_tf.data import manifest
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import usable_cores
from experiments import budgets, jobs, report, runner, sweep
from experiments.table import Table
from tests import tiny_records

TINY = budgets.budget_of("tiny")
PRETRAINING = r"""
import json, os, pathlib, sys, time
flags = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:] if "--set" not in word)
settings = dict(word.removeprefix("--set=").split("=", 1) for word in sys.argv[1:]
                if word.startswith("--set="))
home = pathlib.Path(flags["model_dir"])
home.mkdir(parents=True, exist_ok=True)
cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
with open(home.parent.parent / "calls.txt", "a") as calls:
    print("pretraining", home.parent.name, cores, file=calls)
if settings.get("objective.name") == "mlm" and (home.parent.parent / "broken").exists():
    print("error: no disk is left", file=sys.stderr)
    sys.exit(1)
if (home.parent.parent / "slow").exists():
    time.sleep(60)
(home / "eval_results.json").write_text(json.dumps(
    {"step": 5, "loss": 3.5, "generator_loss": 2.5, "unigram_auc": float(settings["training.seed"])
     / 10}))
"""
FINETUNING = r"""
import json, pathlib, sys
flags = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:])
home = pathlib.Path(flags["model_dir"])
home.mkdir(parents=True, exist_ok=True)
with open(home.parent.parent / "calls.txt", "a") as calls:
    print(flags["task"], home.parent.name, 0, file=calls)
score = json.loads((pathlib.Path(flags["init_checkpoint"]) / "eval_results.json").read_text())
(home / "results.json").write_text(json.dumps(
    {"metrics": ["f1"], "summary": {"dev": {"f1": {"mean": score["unigram_auc"]}}}}))
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Records, an output directory, and the programs in place of the real ones."""
    tiny_records.write(tmp_path / "records")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "run_pretraining.py").write_text(PRETRAINING)
    (programs / "run_finetuning.py").write_text(FINETUNING)
    monkeypatch.setattr(runner, "ROOT", programs)
    (tmp_path / "out").mkdir()
    (tmp_path / "own.yaml").write_text(
        "sweep:\n  title: Two\n  source: nobody\n  tasks: chunk, cola\n"
        "A: {}\nB:\n  objective.name: mlm\n")
    return tmp_path


def run(place, seeds=2, said=None, name="own"):
    chosen = sweep.load(str(place / f"{name}.yaml"))
    planned = jobs.plan(chosen, TINY, manifest.load(storage.path(place / "records")),
                        place / "out", seeds)
    table = Table(place / "results.sqlite")
    failures = runner.Runner(
        chosen, TINY, table, data_dir=place / "records", tasks_dir=place / "tasks",
        say=(lambda line: None) if said is None else said.append).run(planned, 2)
    return planned, failures, table


def calls(place):
    path = place / "out" / "calls.txt"
    return path.read_text().splitlines() if path.exists() else []


def test_every_run_is_trained_once_and_judged_by_every_task(place):
    planned, failures, table = run(place)
    assert failures == []
    if hasattr(os, "sched_setaffinity") and usable_cores() > 1:  # Each has a core of its own.
        assert {line.split()[2] for line in calls(place) if line.startswith("pre")} == {"1"}
    made = [tuple(line.split()[:2]) for line in calls(place)]
    expected = {(what, job.directory.name) for job in planned
                for what in ("pretraining", "chunk", "cola")}
    assert sorted(made) == sorted(expected)
    scores = {(row.variant, row.seed, row.task): row.score for row in table.rows() if row.main}
    assert scores["B", 2, "chunk"] == 0.2 and scores["A", 1, "cola"] == 0.1
    held_out = {row.metric: row.score for row in table.rows() if (
        row.variant, row.seed, row.task) == ("A", 1, "pretraining")}
    assert held_out == {"loss": 3.5, "generator_loss": 2.5, "unigram_auc": 0.1}


def test_finished_runs_are_not_repeated_even_in_another_sweep(place):
    run(place, seeds=1)
    before = calls(place)
    said = []
    run(place, seeds=2, said=said)
    assert said[0] == "4 runs, 2 of them done; 2 side by side"
    assert len(calls(place)) == 2 * len(before)
    # Another sweep copies the results of the same run.
    before = calls(place)
    (place / "other.yaml").write_text(
        "sweep:\n  title: Other\n  source: nobody\n  tasks: chunk, cola\n"
        "C:\n  objective.name: mlm\nD:\n  masking.rate: 0.3\n")
    said = []
    table = run(place, seeds=1, said=said, name="other")[-1]
    assert said[0].startswith("2 runs, 1 of them done")
    assert len(calls(place)) == len(before) + 3
    assert {row.variant for row in table.rows("other")} == {"C", "D"}


def test_tasks_of_other_settings_arent_taken_over(place):
    run(place, seeds=1)
    before = calls(place)
    text = (place / "own.yaml").read_text()
    (place / "other.yaml").write_text(text + "finetuning:\n  training.freeze_layers: -1\n")
    run(place, seeds=1, name="other")
    # The encoders are the same, the tasks aren't.
    assert sorted(line.split()[0] for line in calls(place)[len(before):]) == ["chunk"] * 2 + [
        "cola"] * 2


def test_a_run_that_fails_is_a_line_and_the_others_go_on(place):
    (place / "out" / "broken").touch()
    _, failures, table = run(place)
    assert len(failures) == 2
    assert failures[0].startswith("B, seed ") and "no disk is left" in failures[0]
    assert {row.variant for row in table.rows()} == {"A"}
    (place / "out" / "broken").unlink()
    assert run(place)[1] == []


def test_results_of_other_settings_are_refused(place):
    run(place, seeds=1)
    text = (place / "own.yaml").read_text()
    for changed in (text.replace("A: {}", "A:\n  masking.rate: 0.3"),
                    text + "finetuning:\n  training.freeze_layers: -1\n"):
        (place / "own.yaml").write_text(changed)
        with pytest.raises(UserError, match="variant 'A', seed 1 of other settings or steps: give"):
            run(place)


@pytest.mark.slow
def test_a_signal_ends_the_runs_and_the_same_command_goes_on(place):
    """In a process of its own, for signals reach main threads alone."""
    (place / "out" / "slow").touch()
    command = [sys.executable, "-c", (
        "import sys; from pathlib import Path; from experiments import runner\n"
        f"runner.ROOT = Path({str(place / 'programs')!r})\n"
        "from experiments import run as program; from electra_tf.platform import command_line\n"
        "program.define(); command_line.run(program.main, summary='', groups={})"),
        f"--sweep={place / 'own.yaml'}", f"--data_dir={place / 'records'}",
        f"--tasks_dir={place}", f"--output_dir={place / 'all'}", "--seeds=1",
        f"--results={place / 'results.sqlite'}"]
    (place / "all" / "runs").mkdir(parents=True)
    for folder in ("conll2000", "glue"):
        (place / folder).mkdir()
    (place / "all" / "runs" / "slow").touch()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               cwd=Path(__file__).parents[2])
    marker = place / "all" / "runs" / "calls.txt"
    deadline = time.monotonic() + 120
    while not marker.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert "failed" not in out
    (place / "all" / "runs" / "slow").unlink()
    done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                          cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    assert "| A | 2,000 |" in done.stdout and "report.md" in done.stdout
    assert (place / "all" / "own-tiny" / report.PICTURE).exists()


def test_there_is_room_for_as_many_runs_as_have_cores():
    assert (runner.room(0), runner.room(1), runner.room(10_000)) == (1, usable_cores(), 1)


def test_two_runs_share_all_cores_where_the_system_binds_none(place, monkeypatch):
    cores = usable_cores()
    for name in ("sched_getaffinity", "sched_setaffinity"):
        monkeypatch.delattr(os, name, raising=False)
    assert run(place, seeds=1)[1] == []
    assert {line.split()[2] for line in calls(place) if line.startswith("pre")} == {str(cores)}
