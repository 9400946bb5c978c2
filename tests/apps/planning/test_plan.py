"""Plans for machines of invented throughput."""

import json
import re
import shlex
import sys

import pytest

from electra_tf.apps.planning import plan
from electra_tf.checkpoints import run_directory
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import SIZES
from electra_tf.platform.errors import UserError
from electra_tf.reporting.learning_curves import MeasuredNetwork
from electra_tf.text.tokenization import Normalization
from tests.support import command_flags

FAKE_RUN = """
import json, pathlib, sys, time
run = pathlib.Path(next(word for word in sys.argv if word.startswith("--model_dir="))[12:])
run.mkdir(exist_ok=True)
with (run / "argv").open("a") as file:
    print("\\0".join(sys.argv[1:]), file=file)
(run / "metrics.jsonl").write_text("".join(json.dumps(
    {"kind": "train", "step": step, "tokens_per_second": 15000.0}) + "\\n" for step in (100, 200)))
time.sleep(0 if "--restart" in sys.argv else 60)
"""
QUICK, SLOW = (
    MeasuredNetwork(name=name, flags=(f"--model_size={size}",), limit=limit,
                    measured=((1e6, low), (1e7, high)))
    for name, size, limit, low, high in (("quick", "tiny", 0.85, 0.70, 0.80),
                                         ("slow", "small", 0.97, 0.60, 0.84)))
RATES = {"--model_size=tiny": 10_000.0, "--model_size=small": 1_000.0}


def timing(rate, start=20.0):
    """An evaluation's batch of 32 examples of 128 tokens takes as long as in training."""
    return plan.Timing(tokens_per_second=rate, start_seconds=start, eval_seconds=32 * 128 / rate)


@pytest.fixture
def machine(monkeypatch):
    """Two networks, the second ten times slower."""
    monkeypatch.setattr(plan, "NETWORKS", (QUICK, SLOW))
    monkeypatch.setattr(plan, "measure", lambda words, _tokens: timing(
        next(RATES[flag] for flag in words if flag in RATES)))


@pytest.mark.parametrize(("seconds", "rate", "evaluations", "batches"), [
    (60, 1_000, 1, 1), (300, 20_000, 20, 6), (7200, 20_000, 20, 100)])
def test_a_plan_fills_its_budget_with_a_tenth_for_evaluations(
        seconds, rate, evaluations, batches):
    proposed = plan.plan(QUICK, timing(rate), seconds, length=128)
    assert (proposed.evaluations, proposed.eval_batches) == (evaluations, batches)
    eval_seconds = evaluations * batches * 32 * 128 / rate
    assert eval_seconds <= 0.1 * seconds or batches == 1
    spent = 20 + proposed.tokens / rate + eval_seconds + plan.END_SECONDS
    assert 0.96 * seconds < spent < seconds or proposed.steps < 20


def test_a_faster_run_is_planned_again_for_the_rest_of_its_budget():
    planned = plan.plan(QUICK, timing(36_000.0), 300.0, length=128)
    assert [planned.meets_budget(rate) for rate in (30_000.0, 36_500.0, 49_000.0)] == [
        False, True, False]
    other = plan.replan(planned, 49_000.0, 250.0)
    assert other.steps > planned.steps and other.seconds == 250.0
    eval_seconds = other.evaluations * other.eval_batches * planned.timing.eval_seconds
    spent = 50.0 + 20.0 + other.tokens / 49_000 + eval_seconds + plan.END_SECONDS
    assert 0.95 * 300 < spent < 300


def test_a_run_is_continued_and_a_finished_one_extended(tmp_path, capsys):
    model_dir = tmp_path / "run"
    (model_dir / "checkpoints").mkdir(parents=True)
    (model_dir / "settings.json").write_text(json.dumps(
        run_directory.identity(SIZES["tiny"], {}) | Normalization().facts() | {
            "data.max_seq_length": 128, "initial": "runs/first, step 1,000", "dataset": "",
            "vocabulary": ""}))
    (model_dir / "metrics.jsonl").write_text("".join(json.dumps(
        {"kind": "train", "step": step, "tokens_per_second": 20480.0}) + "\n"
        for step in (100, 200)))

    def checkpoint(step):
        for end in ("index", "data-00000-of-00001"):
            (model_dir / "checkpoints" / f"ckpt-{step}.{end}").touch()
        (model_dir / "checkpoints" / f"ckpt-{step}.json").write_text("{}")

    checkpoint(6)
    command_flags.run(plan, "--data_dir=records", f"--model_dir={model_dir}")
    words = shlex.split(capsys.readouterr().out.splitlines()[-1])
    assert words[:4] == [*plan.pretrain(), "--data_dir=records", f"--model_dir={model_dir}"]
    # Evaluations read a tenth of the 3,000 x 16 training examples, in 20 times 7 batches of 32.
    assert {"--init_checkpoint=runs/first", "--eval_every_steps=150", "--eval_steps=7",
            "--num_train_steps=3000"} <= set(words)
    settings = dict(word.removeprefix("--set=").split("=", 1) for word in words if "--set=" in word)
    config = override(SIZES["small"], settings | {"training.num_train_steps": 3000})
    assert run_directory.identity(config, {}) == run_directory.identity(
        SIZES["tiny"], {"data.max_seq_length": 128})
    checkpoint(3000)
    with pytest.raises(UserError, match="finished after 3,000 steps; give --budget to extend it"):
        plan.continue_command("records", model_dir, None)
    # Ten steps a second, in 88 per cent of 500 s.
    words = plan.continue_command("records", model_dir, 520.0)
    assert {"--num_train_steps=7400", "--eval_steps=18"} <= set(words)


def test_a_longer_budget_chooses_the_larger_network(machine, records, capsys):
    proposed, marked = [], []
    for budget in ("10m", "10h"):
        command_flags.run(plan, f"--budget={budget}", f"--data_dir={records}")
        lines = capsys.readouterr().out.splitlines()
        proposed += [line.split()[0] for line in lines if line.endswith("<- proposed")]
        marked.append([line.split()[0] for line in lines
                       if line.strip().startswith(("quick", "slow")) and "*" in line])
    assert proposed == ["quick", "slow"]
    assert marked == [[], ["quick", "slow"]]  # At most 5.4 million tokens; 10 were measured.


def test_run_trains_the_printed_commands_and_corrects_the_steps(
        machine, records, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(plan, "_MIN_CHECK_SECONDS", 0.1)
    monkeypatch.setattr(plan, "_MAX_CHECK_SECONDS", 0.2)
    monkeypatch.setattr(plan, "_POLL_SECONDS", 0.05)
    program = tmp_path / "fake_run.py"
    program.write_text(FAKE_RUN)
    monkeypatch.setattr(plan, "pretrain", lambda: [sys.executable, str(program)])
    monkeypatch.setattr(plan, "measure", lambda words, _tokens: timing(
        next(RATES[flag] for flag in words if flag in RATES), start=0.1))
    command_flags.run(plan, "--budget=10m", f"--data_dir={records}",
                      f"--model_dir={tmp_path / 'a run'}", "--run")
    commands = [line for line in capsys.readouterr().out.splitlines() if str(program) in line]
    assert len(commands) == 2 and f"'--model_dir={tmp_path / 'a run'}'" in commands[0]
    trained = [line.split("\0") for line in (tmp_path / "a run" / "argv").read_text().splitlines()]
    assert [[sys.executable, str(program), *words] for words in trained] == [
        shlex.split(commands[0]), [*shlex.split(commands[1]), "--restart"]]
    planned, other = (int(re.search(r"--num_train_steps=(\d+)", line)[1]) for line in commands)
    assert 1.4 < other / planned < 1.6  # The run trains at 15,000 tokens/s, not at 10,000.


@pytest.mark.parametrize(("arguments", "words"), [
    *(([f"--budget={text}"], "--budget must be a time of a minute or more")
      for text in ("2", "-2h", "30m1h", "59s", "1e3h", "9" * 5000 + "h")),
    ([], "--budget is needed"), (["--budget=2h"], "--data_dir is needed"),
    (["--budget=2h", "--data_dir=nowhere", "--run"], "--model_dir is needed"),
    (["--budget=2h", "--data_dir=nowhere"], "nowhere")])
def test_wrong_flags_are_refused(machine, arguments, words):
    with pytest.raises(UserError, match=words):
        command_flags.run(plan, *arguments)


@pytest.mark.slow
def test_a_timing_is_measured_by_a_real_run(records):
    flags = [f"--data_dir={records}", "--model_size=tiny", "--train_batch_size=4"]
    measured = plan.measure(flags, 4 * 32)
    assert measured.tokens_per_second > 0 < measured.eval_seconds < measured.start_seconds
    with pytest.raises(UserError, match="run_pretraining.py: .*--train_batch_size"):
        plan.measure([*flags, "--train_batch_size=-1"], 1)
