"""Steps within a time: by hand for invented speeds, and for a run on this machine."""

import re
import time

import pytest

from electra_tf.apps.planning import plan
from electra_tf.checkpoints import run_directory
from electra_tf.core import storage
from electra_tf.pretraining import budget, command, loop, word_vectors
from electra_tf.pretraining.budget import Speed
from electra_tf.pretraining.command import parse_duration
from tests.support import command_flags, tiny_run
from tests.support.refusals import refused


@pytest.mark.parametrize("text", ["", "59s", "1", "-1h", "1h 30m", "h", "1w", "1m1h"])
def test_other_texts_and_short_times_are_refused(text):
    with refused("--budget must be a time of a minute or more"):
        parse_duration(text)


def test_steps_fill_the_time_that_start_and_evaluations_leave(records):
    # 10 of 120 s for the first step, 5 for the end; 10 held-out examples take 5/4 steps of 8.
    run = tiny_run.run_on(records, runtime__eval_every_steps=0)
    spare = 0.98 * (120 - 10 - 5 - 1.25 * 0.1)
    assert budget.steps_within(run, Speed(start=10.0, step=0.1), 120) == int(spare / 0.1)
    often = tiny_run.run_on(records, runtime__eval_every_steps=5)
    assert budget.steps_within(often, Speed(start=10.0, step=0.1), 120) == int(
        spare / (0.1 + 0.125 / 5))
    assert budget.steps_within(run, Speed(start=10.0, step=0.1), 12) == 1


def test_the_start_includes_the_counting_of_word_vectors(records, monkeypatch):
    monkeypatch.setattr(budget, "WARM_UP_SECONDS", 0.0)
    monkeypatch.setattr(budget, "MEASURED_SECONDS", 0.0)
    run = tiny_run.run_on(records, initialization__word_vectors="cooccurrence")
    write, seconds = word_vectors.write, 1e3

    def slow_write(*arguments):
        write(*arguments)
        monkeypatch.setattr(time, "monotonic", lambda: clock() + seconds)

    clock = time.monotonic
    monkeypatch.setattr(word_vectors, "write", slow_write)
    assert seconds < budget.measure(run).start < seconds + 100
    assert not run.model_dir.exists()


def pretrain(records, model_dir, *flags):
    command_flags.run(command, f"--data_dir={records}", f"--model_dir={model_dir}",
                      "--model_size=tiny", *tiny_run.FLAGS, *tiny_run.OFTEN,
                      "--set=model.num_layers=1", *flags)


def test_a_budget_decides_the_steps_once(records, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(budget, "measure", lambda run: Speed(start=0.0, step=10.0))
    flags = [flag for flag in tiny_run.FLAGS if "num_train_steps" not in flag]
    monkeypatch.setattr(tiny_run, "FLAGS", flags)
    monkeypatch.setattr(loop, "Evaluator", lambda run, model: None)
    pretrain(records, tmp_path / "run", "--budget=1m")
    steps = int(re.search(r"budget +(\d+) steps", capsys.readouterr().out)[1])
    assert 2 <= steps <= 5
    identity = run_directory.read_identity(storage.path(tmp_path / "run"))
    assert identity[run_directory.STEPS] == steps
    monkeypatch.setattr(budget, "measure", None)  # Not measured again.
    pretrain(records, tmp_path / "run", "--budget=2h")
    assert f"keeps the {steps} steps" in capsys.readouterr().out


def test_a_budget_that_ends_before_the_first_step_is_refused(records, tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "measure", lambda run: Speed(start=70.0, step=0.1))
    monkeypatch.setattr(tiny_run, "FLAGS", [
        flag for flag in tiny_run.FLAGS if "num_train_steps" not in flag])
    with refused(r"leaves no time for training: .*start \(70 s here\).* Give a longer one"):
        pretrain(records, tmp_path / "run", "--budget=1m")
    assert not (tmp_path / "run").exists()


def test_steps_and_stages_beside_a_budget_are_refused(records, tmp_path):
    with refused("leave --num_train_steps out"):
        pretrain(records, tmp_path / "run", "--budget=1m", "--num_train_steps=5")
    flags = [flag for flag in tiny_run.FLAGS if "num_train_steps" not in flag]
    with refused("objective.name=two_stage has two"):
        command_flags.run(command, f"--data_dir={records}", f"--model_dir={tmp_path / 'run'}",
                          "--model_size=tiny", *flags, "--budget=1m",
                          "--set=objective.name=two_stage")


@pytest.mark.parametrize(("expected", "chosen"), [
    ((0.80, 0.81), 1), ((0.81, 0.80), 1), ((0.83, 0.80), 0), ((0.83, 0.82, 0.80), 1)])
def test_a_plan_prefers_the_largest_of_networks_with_similar_auc(expected, chosen):
    assert plan.preferred(expected) == chosen


@pytest.mark.slow
def test_a_plan_prints_a_command_for_the_budget(records, capsys, monkeypatch):
    monkeypatch.setattr(budget, "WARM_UP_SECONDS", 0.5)
    monkeypatch.setattr(budget, "MEASURED_SECONDS", 1.0)
    command_flags.run(plan, "--budget=1h", f"--data_dir={records}", "--model_dir=here")
    output = capsys.readouterr().out
    *_, printed = output.splitlines()
    assert "--budget=1h" in printed and "--model_dir=here" in printed
    assert "--train_batch_size=16" in printed and "--recipe=short" in printed
