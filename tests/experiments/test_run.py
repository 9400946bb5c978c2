"""What a sweep runs, and the runner with programs that do in no time what the real ones do."""

import dataclasses
import os
import re
from pathlib import Path

import pytest

from electra_tf.core import storage
from electra_tf.core.errors import UserError
from electra_tf.core.machine import usable_cores
from electra_tf.data import manifest
from experiments import results, sweep
from experiments import run as program
from tests.support import command_flags, tiny_run

TINY = sweep.BUDGETS["tiny"]
PROGRAM = r"""
import json, os, pathlib, sys, time
flags = dict(word.removeprefix("--").removeprefix("set=").split("=", 1) for word in sys.argv[1:])
home = pathlib.Path(flags["model_dir"])
sandbox = home.parent.parent
home.mkdir(parents=True, exist_ok=True)
cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
with open(sandbox / "calls.txt", "a") as calls:
    print(home.name, home.parent.name, cores, file=calls)
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
    return program.plan(sweep.load(name), dataclasses.replace(TINY, seeds=seeds),
                       manifest.load(storage.path(records)), output)


def steps_of(job):
    return job.config.training.num_train_steps


def test_every_variant_gets_the_same_compute(records):
    for name in ("objectives", "training", "tying", "generator_size", "masking_rate", "generators"):
        jobs = plan(name, records)
        reference = program.step_flops(jobs[0].config) * steps_of(jobs[0])
        for job in jobs:
            assert job.flops == pytest.approx(reference, rel=2e-3)  # Whole steps.
            assert job.flops == steps_of(job) * program.step_flops(job.config)
    flops = [job.flops for job in plan("compute", records) if job.variant.name.startswith("BERT")]
    assert flops == pytest.approx([flops[1] / 4, flops[1], flops[1] * 4], rel=2e-3)
    # What costs more per token reads fewer.
    steps = {job.variant.name: steps_of(job) for job in plan("objectives", records)}
    assert steps["All-Tokens MLM"] < steps["Replace MLM"] < steps["BERT"]
    assert steps["ELECTRA 15 %"] == steps["ELECTRA"] == TINY.reference_steps


def test_runs_come_by_seeds_each_with_its_settings(records):
    jobs = plan("tying", records, seeds=3)
    assert [job.config.training.seed for job in jobs] == [1] * 4 + [2] * 4 + [3] * 4
    assert len({job.directory for job in jobs}) == 12
    job = plan("objectives", records, seeds=2)[-1]
    flags = job.command("pretraining", Path("records"), Path("tasks"))
    assert job.variant.name == "BERT" and "--set=objective.name=mlm" in flags
    assert {"--model_size=tiny", "--recipe=short", "--set=training.seed=2",
            f"--set=training.num_train_steps={steps_of(job)}"} <= set(flags)
    flags = job.command("stsb", Path("records"), Path("tasks"))
    assert {"--task=stsb", "--data_dir=tasks/glue", "--set=training.seed=2",
            f"--init_checkpoint={job.directory}/pretraining"} <= set(flags)


@pytest.fixture
def sandbox(tmp_path, records, monkeypatch):
    """Records, an output directory, and the programs in place of the real ones."""
    (tmp_path / "records").symlink_to(records)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("run_pretraining.py", "run_finetuning.py"):
        (programs / name).write_text(PROGRAM)
    monkeypatch.setattr(program, "ROOT", programs)
    for folder in ("conll2000", "glue"):
        (tmp_path / folder).mkdir()
    (tmp_path / "own.yaml").write_text(
        "sweep:\n  title: Two\n  source: nobody\n  tasks: chunk, cola\n"
        "A: {}\nB:\n  objective.name: mlm\n")
    return tmp_path


def run(sandbox, capsys, *flags):
    """Returns the output of the command, and its error."""
    with command_flags.defined(program.define):
        try:
            command_flags.call(
                lambda: program.main(str(sandbox / "own.yaml")), f"--data_dir={sandbox}/records",
                f"--tasks_dir={sandbox}", f"--output_dir={sandbox}/out", *flags)
            return capsys.readouterr().out, ""
        except UserError as error:
            return capsys.readouterr().out, str(error)


def calls(sandbox):
    path = sandbox / "out" / "own-tiny" / "calls.txt"
    return [tuple(line.split()) for line in path.read_text().splitlines()]


def test_every_run_is_trained_once_and_scored_by_every_task(sandbox, capsys):
    printed, _ = run(sandbox, capsys, "--seeds=2")
    if hasattr(os, "sched_setaffinity") and usable_cores() > 1:  # Each has a core of its own.
        assert {cores for task, _, cores in calls(sandbox) if task == "pretraining"} == {"1"}
    assert sorted(call[:2] for call in calls(sandbox)) == sorted(
        (task, f"{variant}-seed{seed}") for variant in "AB" for seed in (1, 2)
        for task in ("pretraining", "chunk", "cola"))
    # Both tasks have a tenth of the seed, 10 and 20 %: the mean is 15 with error 7.07 / sqrt(2).
    scores = r"15.0 ± 5.0 \| " * 3
    assert re.search(rf"\| A \| 2,000 \| 1.0 \| 0.\d \| {scores}2 \|", printed)
    rows = results.read(sandbox / "out" / "own-tiny" / "results.jsonl")
    assert [(row.variant, row.seed, row.task) for row in rows] == [
        (variant, seed, task) for variant in "AB" for seed in (1, 2)
        for task in ("chunk", "cola", "pretraining")]
    assert all(0.0 < row.cpu_seconds < 60.0 for row in rows)
    assert rows[2].scores == {"loss": 3.5, "generator_loss": 2.5, "unigram_auc": 0.1}
    assert (rows[2].main, rows[2].tokens) == ("loss", 2000 * 16 * 32)
    # Finished runs are not repeated.
    before = len(calls(sandbox))
    run(sandbox, capsys, "--seeds=3")
    assert len(calls(sandbox)) == before + 6


def test_a_run_that_fails_is_a_line_and_the_others_go_on(sandbox, capsys):
    (sandbox / "out" / "own-tiny").mkdir(parents=True)
    (sandbox / "out" / "own-tiny" / "broken").touch()
    printed, error = run(sandbox, capsys, "--seeds=2")
    assert error.startswith("2 of 4 runs failed; the first: B, seed ")
    assert "no disk is left" in error and "| B | - | - |" in printed
    (sandbox / "out" / "own-tiny" / "broken").unlink()
    assert run(sandbox, capsys, "--seeds=2")[1] == ""


def test_results_of_other_settings_are_refused(sandbox, capsys):
    run(sandbox, capsys, "--seeds=1")
    text = (sandbox / "own.yaml").read_text()
    for changed in (text.replace("A: {}", "A:\n  masking.rate: 0.3"),
                    text + "finetuning:\n  training.freeze_layers: -1\n"):
        (sandbox / "own.yaml").write_text(changed)
        assert "A-seed1 has a run of other settings or steps: give" in run(
            sandbox, capsys, "--seeds=1")[1]


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

    def printed():
        with command_flags.defined(program.define):
            command_flags.call(
                lambda: program.main(str(file)), f"--data_dir={records}",
                f"--tasks_dir={tmp_path / 'tasks'}", f"--output_dir={tmp_path / 'out'}")
        return capsys.readouterr().out

    first = printed()
    lines = [line for line in first.splitlines() if line.startswith("| ")]
    assert len(lines) == 4 and all(line.endswith("| 1 |") for line in lines[1:])
    # Nothing runs again.
    again = printed()
    assert [line for line in again.splitlines() if line.startswith("| ")] == lines
    assert "pretraining, loss" in first and "pretraining, loss" not in again
