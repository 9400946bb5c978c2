"""A run that is killed again and again ends where a run that is left alone ends, bit for bit."""

import json
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny_records
from tests.determinism import processes

STEPS = 400
FLAGS = ("--deterministic", f"--num_train_steps={STEPS}", "--save_checkpoints_steps=20",
         "--log_every_steps=15", "--sample_every_steps=0", "--set=optimizer.warmup_steps=10")
KILLS = 3


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    directory = tmp_path_factory.mktemp("kill") / "records"
    tiny_records.write(directory)
    return directory


def state(model_dir: Path) -> dict[str, np.ndarray]:
    """Every value of the newest checkpoint: weights, slots, step."""
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(model_dir / "checkpoints")))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()
            if name not in ("_CHECKPOINTABLE_OBJECT_GRAPH",) and "save_counter" not in name}


def logged(model_dir: Path) -> list[dict]:
    """Records of training, without what depends on the machine."""
    lines = (model_dir / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    machine = ("tokens_per_second", "peak_memory_bytes")
    return [{name: value for name, value in record.items() if name not in machine}
            for record in records if record["kind"] == "train"]


def checkpoints(model_dir: Path) -> int:
    return len(list((model_dir / "checkpoints").glob("ckpt-*.index")))


def start_and_kill(records: Path, model_dir: Path, after: float) -> None:
    """Runs until a checkpoint has appeared and some time more, then sends SIGKILL."""
    done = set((model_dir / "checkpoints").glob("ckpt-*.index"))
    process = subprocess.Popen(processes.command(records, model_dir, *FLAGS),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while set((model_dir / "checkpoints").glob("ckpt-*.index")) <= done:
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def test_a_run_killed_three_times_ends_with_the_same_weights(records, tmp_path):
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    finished = processes.run(processes.command(records, alone, *FLAGS))
    assert finished.returncode == 0, finished.stderr
    for number in range(KILLS):
        start_and_kill(records, killed, after=0.05 * number)
        assert int(state(killed)["step/.ATTRIBUTES/VARIABLE_VALUE"]) < STEPS
    finished = processes.run(processes.command(records, killed, *FLAGS))
    assert finished.returncode == 0, finished.stderr

    expected, actual = state(alone), state(killed)
    assert expected.keys() == actual.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value, err_msg=name)
    assert int(actual["step/.ATTRIBUTES/VARIABLE_VALUE"]) == STEPS
    assert [record["step"] for record in logged(killed)] == [
        step for step in range(1, STEPS + 1) if step % 15 == 0 or step % 20 == 0]
    assert logged(killed) == logged(alone)
    assert not list((killed / "checkpoints").glob("*temp*"))
    assert checkpoints(killed) == checkpoints(alone) == 3
