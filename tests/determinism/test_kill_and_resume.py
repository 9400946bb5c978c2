"""A run that is killed or stopped again and again ends where one left alone ends, bit for bit."""

import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from electra_tf.checkpoints import checkpoint_files
from electra_tf.reporting.metrics_log import read_metrics
from tests.support import named_arrays, processes
from tests.support.processes import interrupted, state, step_of

STEPS = 400
FLAGS = ("--deterministic", f"--num_train_steps={STEPS}", "--save_checkpoints_steps=20",
         "--log_every_steps=15", "--sample_every_steps=0", "--set=optimizer.warmup_steps=10")


def logged(model_dir: Path) -> list[dict]:
    """Records of training, without what depends on the machine."""
    machine = ("tokens_per_second", "peak_memory_bytes")
    return [{name: value for name, value in record.items() if name not in machine}
            for record in read_metrics(model_dir / "metrics.jsonl") if record["kind"] == "train"]


@pytest.fixture(scope="module")
def alone(records, tmp_path_factory):
    """A run that nobody disturbs."""
    return processes.train(records, tmp_path_factory.mktemp("alone") / "model", *FLAGS)


def finish_as_alone(records: Path, model_dir: Path, alone: Path) -> None:
    processes.train(records, model_dir, *FLAGS)
    named_arrays.assert_close(state(model_dir), state(alone))
    assert step_of(model_dir) == STEPS


@pytest.mark.slow
def test_a_run_stopped_by_signals_goes_on_from_that_very_step(records, alone, tmp_path):
    stopped, steps = tmp_path / "stopped", []
    for number, status, prefix in (
            (signal.SIGTERM, 143, ()),
            # As a job that a shell started in the background: SIGINT is ignored by inheritance.
            (signal.SIGINT, 130, ("sh", "-c", 'trap "" INT; exec "$@"', "sh"))):
        ended, line = interrupted(records, stopped, number, 0.0, *FLAGS, prefix=prefix)
        steps.append(step_of(stopped))
        assert ended == status
        assert line.startswith(f"stopped by {number.name} at step {steps[-1]} of {STEPS}; "
                               "its checkpoint is saved. To go on from there: ")
        assert line.endswith(" ".join(FLAGS))
        assert logged(stopped)[-1]["step"] == steps[-1]
        assert not (stopped / ".lock").exists()
    assert 20 <= steps[0] < steps[1] < STEPS
    finish_as_alone(records, stopped, alone)
    assert [record["step"] for record in logged(stopped)] == sorted(
        {record["step"] for record in logged(alone)} | set(steps))


@pytest.mark.slow
@pytest.mark.parametrize(("number", "flags"), [
    (signal.SIGINT, ["--restart=true"]), (signal.SIGTERM, ["--flagfile=restart.flags"])])
def test_the_command_printed_by_a_run_begun_with_restart_continues_it(
        records, alone, tmp_path, monkeypatch, number, flags):
    monkeypatch.chdir(tmp_path)
    Path("restart.flags").write_text("--restart\n")
    stopped = tmp_path / "a run"
    _, line = interrupted(records, stopped, number, 0.0, *flags, *FLAGS)
    step = step_of(stopped)
    assert 20 <= step < STEPS
    typed = subprocess.run(["bash", "-c", line.partition("To go on from there: ")[2]],
                           capture_output=True, text=True, check=True)
    assert f"steps    {step:,} done" in typed.stdout
    assert step_of(stopped) == STEPS
    named_arrays.assert_close(state(stopped), state(alone))


@pytest.mark.slow
def test_a_run_killed_at_random_moments_ends_as_one_left_alone_without_leftovers(
        records, alone, tmp_path):
    draw, killed = random.Random(1), tmp_path / "killed"
    for _ in range(6):
        process = subprocess.Popen(
            [sys.executable, *processes.command(records, killed, *FLAGS)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in process.stdout:
            if line.startswith("first step"):
                break
        time.sleep(draw.random())
        process.kill()
        process.communicate()
    (killed / ".unfinished-1-ab-settings.json").touch()
    finish_as_alone(records, killed, alone)
    names = {str(path.relative_to(killed)) for path in killed.rglob("*")}
    expected = {str(path.relative_to(alone)) for path in alone.rglob("*")}
    assert {name for name in names ^ expected if not name.startswith("tensorboard/")} == set()
    assert [record["step"] for record in logged(killed)] == [
        step for step in range(1, STEPS + 1) if step % 15 == 0 or step % 20 == 0]
    assert logged(killed) == logged(alone)
    assert checkpoint_files.steps(killed / "checkpoints") == [STEPS, STEPS - 20, STEPS - 40]


@pytest.mark.slow
def test_muon_and_averages_resume_as_if_never_stopped(records, tmp_path):
    flags = (*FLAGS, "--set=optimizer.name=muon", "--set=optimizer.average_decay=0.99")
    assert interrupted(records, tmp_path / "stopped", signal.SIGTERM, 0.0, *flags)[0] == 143
    assert 20 <= step_of(tmp_path / "stopped") < STEPS
    finished = processes.train(records, tmp_path / "stopped", *flags)
    alone = processes.train(records, tmp_path / "alone", *flags)
    named_arrays.assert_close(state(finished), state(alone))


@pytest.mark.slow
def test_a_restart_of_two_stages_removes_both_before_the_first(records, tmp_path):
    flags = ("--set=objective.name=two_stage", "--num_train_steps=400", *FLAGS[2:])
    model_dir = tmp_path / "run"
    processes.train(records, model_dir, *flags, "--num_train_steps=8")
    generator = model_dir / "generator"
    shutil.rmtree(generator / "tensorboard")
    process = subprocess.Popen(
        [sys.executable, *processes.command(records, model_dir, *flags, "--restart")],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not (generator / "tensorboard").exists():  # The first stage begins.
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    line = process.communicate()[1].splitlines()[-1].partition("To go on from there: ")[2]
    assert not (model_dir / "settings.json").exists()
    typed = subprocess.run(shlex.split(line), capture_output=True, text=True, check=True)
    assert "stage 1 of 2" in typed.stdout and "steps    0 done, 200 to go" in typed.stdout
    assert step_of(generator) == step_of(model_dir) == 200
