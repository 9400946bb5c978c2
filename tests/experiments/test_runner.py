"""What a sweep runs, and the runner with programs that do in no time what the real ones do."""

import dataclasses
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
from experiments import run as program
from experiments import runner, sweep
from experiments.results import ResultsTable
from tests.support import command_flags, tiny_run

TINY = sweep.budget_of("tiny")
PROGRAM = r"""
import json, os, pathlib, sys, time
flags = dict(word.removeprefix("--").removeprefix("set=").split("=", 1) for word in sys.argv[1:])
home = pathlib.Path(flags["model_dir"])
sandbox = home.parent.parent
home.mkdir(parents=True, exist_ok=True)
cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
with open(sandbox / "calls.txt", "a") as calls:
    print(flags.get("task", "pretraining"), home.parent.name, cores, file=calls)
if "task" in flags:
    encoder = pathlib.Path(flags["init_checkpoint"])
    evaluation = json.loads((encoder / "eval_results.json").read_text())
    (home / "results.json").write_text(json.dumps(
        {"metrics": ["f1"], "summary": {"dev": {"f1": {"mean": evaluation["unigram_auc"]}}}}))
    sys.exit()
if flags.get("objective.name") == "mlm" and (sandbox / "broken").exists():
    sys.exit("error: no disk is left")
if (sandbox / "slow").exists():
    time.sleep(60)
(home / "eval_results.json").write_text(json.dumps(
    {"step": 5, "loss": 3.5, "generator_loss": 2.5,
     "unigram_auc": float(flags["training.seed"]) / 10}))
"""


def plan(name, records, seeds=1, output=Path("out")):
    return runner.plan(sweep.load(name), dataclasses.replace(TINY, seeds=seeds),
                       manifest.load(storage.path(records)), output)


def test_every_variant_gets_the_same_compute(records):
    for name in ("objectives", "training", "tying", "generator_size", "masking_rate", "generators"):
        jobs = plan(name, records)
        reference = runner.step_flops(jobs[0].config) * jobs[0].steps
        for job in jobs:
            assert job.flops == pytest.approx(reference, rel=2e-3)  # Whole steps.
            assert job.flops == job.steps * runner.step_flops(job.config)
    flops = [job.flops for job in plan("compute", records) if job.variant.name.startswith("BERT")]
    assert flops == pytest.approx([flops[1] / 4, flops[1], flops[1] * 4], rel=2e-3)
    # What costs more per token reads fewer.
    steps = {job.variant.name: job.steps for job in plan("objectives", records)}
    assert steps["All-Tokens MLM"] < steps["Replace MLM"] < steps["BERT"]
    assert steps["ELECTRA 15 %"] == steps["ELECTRA"] == TINY.reference_steps


def test_runs_come_by_seeds_each_in_a_directory_that_other_sweeps_share(records):
    jobs = plan("tying", records, seeds=3)
    assert [job.seed for job in jobs] == [1] * 4 + [2] * 4 + [3] * 4
    assert len({job.directory for job in jobs}) == 12
    electra, joint = plan("objectives", records)[0], plan("training", records)[0]
    assert electra.variant.name != joint.variant.name
    assert (electra.directory, electra.settings) == (joint.directory, joint.settings)
    job = plan("objectives", records, seeds=2)[-1]
    flags = job.pretraining_flags(Path("records"), TINY)
    assert job.variant.name == "BERT" and "--set=objective.name=mlm" in flags
    assert {"--model_size=tiny", "--recipe=short", "--set=training.seed=2",
            f"--set=training.num_train_steps={job.steps}"} <= set(flags)


@pytest.fixture
def sandbox(tmp_path, records, monkeypatch):
    """Records, an output directory, and the programs in place of the real ones."""
    (tmp_path / "records").symlink_to(records)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("run_pretraining.py", "run_finetuning.py"):
        (programs / name).write_text(PROGRAM)
    monkeypatch.setattr(runner, "ROOT", programs)
    (tmp_path / "out").mkdir()
    (tmp_path / "own.yaml").write_text(
        "sweep:\n  title: Two\n  source: nobody\n  tasks: chunk, cola\n"
        "A: {}\nB:\n  objective.name: mlm\n")
    return tmp_path


def run(sandbox, seeds=2):
    name, table = str(sandbox / "own.yaml"), ResultsTable(sandbox / "results.sqlite")
    jobs = plan(name, sandbox / "records", seeds, sandbox / "out")
    failures = runner.SweepRunner(
        sweep.load(name), dataclasses.replace(TINY, seeds=seeds), table,
        data_dir=sandbox / "records", tasks_dir=sandbox / "tasks").run(jobs)
    return jobs, failures, table


def calls(sandbox):
    return (sandbox / "out" / "calls.txt").read_text().splitlines()


def test_every_run_is_trained_once_and_scored_by_every_task(sandbox, capsys):
    jobs, failures, table = run(sandbox)
    assert failures == []
    if hasattr(os, "sched_setaffinity") and usable_cores() > 1:  # Each has a core of its own.
        assert {line.split()[2] for line in calls(sandbox) if line.startswith("pre")} == {"1"}
    made = [tuple(line.split()[:2]) for line in calls(sandbox)]
    assert sorted(made) == sorted((what, job.directory.name) for job in jobs
                                  for what in ("pretraining", "chunk", "cola"))
    scores = {(row.variant, row.seed, row.task): row.score for row in table.rows() if row.main}
    assert scores["B", 2, "chunk"] == 0.2 and scores["A", 1, "cola"] == 0.1
    held_out = {row.metric: row.score for row in table.rows() if (
        row.variant, row.seed, row.task) == ("A", 1, "pretraining")}
    assert held_out == {"loss": 3.5, "generator_loss": 2.5, "unigram_auc": 0.1}
    assert {row.tokens for row in table.rows() if row.variant == "A"} == {2000 * 16 * 32}
    # Finished runs are not repeated.
    run(sandbox, seeds=3)
    assert "6 runs, 4 of them done" in capsys.readouterr().out
    assert len(calls(sandbox)) == len(made) + 6


def test_a_run_that_fails_is_a_line_and_the_others_go_on(sandbox):
    (sandbox / "out" / "broken").touch()
    _, failures, table = run(sandbox)
    assert len(failures) == 2
    assert failures[0].startswith("B, seed ") and "no disk is left" in failures[0]
    assert {row.variant for row in table.rows()} == {"A"}
    (sandbox / "out" / "broken").unlink()
    assert run(sandbox)[1] == []


def test_results_of_other_settings_are_refused(sandbox):
    run(sandbox, seeds=1)
    text = (sandbox / "own.yaml").read_text()
    for changed in (text.replace("A: {}", "A:\n  masking.rate: 0.3"),
                    text + "finetuning:\n  training.freeze_layers: -1\n"):
        (sandbox / "own.yaml").write_text(changed)
        with pytest.raises(UserError, match="variant 'A', seed 1 of other settings or steps: give"):
            run(sandbox)


@pytest.mark.slow
def test_a_signal_ends_the_runs_and_the_same_command_goes_on(sandbox):
    """Runs in a process of its own because signals reach main threads alone."""
    command = [sys.executable, "-c", (
        "import sys; from pathlib import Path; from experiments import runner\n"
        f"runner.ROOT = Path({str(sandbox / 'programs')!r})\n"
        "from experiments import run as program; from electra_tf.platform import command_line\n"
        "program.define(); command_line.run(program.main, summary='', groups={}, operand='SWEEP')"),
        str(sandbox / "own.yaml"), f"--data_dir={sandbox / 'records'}",
        f"--tasks_dir={sandbox}", f"--output_dir={sandbox / 'all'}", "--seeds=1",
        f"--results={sandbox / 'results.sqlite'}"]
    runs = sandbox / "all" / "runs"
    for folder in (runs, sandbox / "conll2000", sandbox / "glue"):
        folder.mkdir(parents=True)
    (runs / "slow").touch()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (runs / "calls.txt").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert "failed" not in out
    (runs / "slow").unlink()
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "| A | 2,000 |" in done.stdout and "report.md" in done.stdout
    assert (sandbox / "all" / "own-tiny" / "report.png").exists()


@pytest.mark.slow
def test_the_real_programs_train_and_score_every_variant(
        tmp_path, records, monkeypatch, capsys):
    monkeypatch.setitem(sweep.BUDGETS, "tiny", dataclasses.replace(
        TINY, reference_steps=4, seeds=1, settings={
            name: str(value) for name, value in tiny_run.SETTINGS.items()
            if name != "training.num_train_steps"}))
    folder = tmp_path / "tasks" / "glue" / "CoLA"
    folder.mkdir(parents=True)
    for split in ("train", "dev"):
        (folder / f"{split}.tsv").write_text("".join(
            f"x\t{number % 2}\t\tword{number} word{number + 1}\n" for number in range(30)))
    (tmp_path / "tasks" / "blimp").mkdir()
    (tmp_path / "tasks" / "blimp" / "order.jsonl").write_text(
        '{"sentence_good": "word1 word4", "sentence_bad": "word4 word1"}\n')
    file = tmp_path / "own.yaml"
    text = ("sweep:\n  title: Three objectives\n  source: made up\n  tasks: cola, blimp\n"
            "finetuning:\n  training.num_train_epochs: 1\n  task.max_seq_length: 16\n"
            "ELECTRA: {}\n")
    file.write_text(text + "".join(
        f"{name}:\n  objective.name: {name}\n" for name in ("all_tokens_mlm", "two_stage")))

    def printed(results):
        with command_flags.defined(program.define):
            command_flags.call(
                lambda: program.main(str(file)), f"--data_dir={records}",
                f"--tasks_dir={tmp_path / 'tasks'}", f"--output_dir={tmp_path / 'out'}",
                f"--results={tmp_path / results}")
        return capsys.readouterr().out

    first = printed("results.sqlite")
    assert "failed" not in first
    lines = [line for line in first.splitlines() if line.startswith("| ")][1:]
    assert len(lines) == 3 and all(line.endswith("| 1 |") for line in lines)
    assert "3 runs, 3 of them done" in printed("results.sqlite")
    # Another table's sweep with the same run finds it finished on disk.
    file.write_text(text)
    again = printed("other.sqlite")
    assert "1 runs, 0 of them done" in again and lines[0] in again
