"""Starts the real program in processes of their own, to kill them or to read what they say."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

from tests.support import python_process, tiny_run
from tests.support.python_process import own_lines


def command(records: Path, model_dir: Path, *flags: str) -> list[str]:
    """Returns Python's arguments."""
    return [str(python_process.ROOT / "run_pretraining.py"), f"--data_dir={records}",
            f"--model_dir={model_dir}", "--model_size=tiny", *tiny_run.FLAGS, *flags]


def train(records: Path, model_dir: Path, *flags: str) -> Path:
    """Runs to the end, which must succeed; returns the directory."""
    python_process.run(*command(records, model_dir, *flags))
    return model_dir


def interrupted(records: Path, model_dir: Path, number: signal.Signals, after: float,
                *flags: str, prefix: tuple[str, ...] = ()) -> tuple[int, str]:
    """Sends a signal some seconds after a checkpoint; returns status and last line on stderr."""
    done = newest(model_dir)
    process = subprocess.Popen(
        [*prefix, sys.executable, *command(records, model_dir, *flags)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for_checkpoint(model_dir, done, [process])
    time.sleep(after)
    process.send_signal(number)
    errors = process.communicate(timeout=60)[1]
    return process.returncode, (own_lines(errors) or [""])[-1]


def free_address() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


def start_worker(records: Path, model_dir: Path, cluster: list[str], index: int,
                 *flags: str) -> subprocess.Popen:
    """Starts one of the workers of a cluster, with the messages that a user sees."""
    environment = {name: value for name, value in os.environ.items()
                   if name != "TF_CPP_MIN_LOG_LEVEL"}
    flags = (*flags, "--distribution_strategy=multi_worker_mirrored")
    return subprocess.Popen(
        [sys.executable, *command(records, model_dir, *flags)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment | {"TF_CONFIG": json.dumps({
            "cluster": {"worker": cluster}, "task": {"type": "worker", "index": index}})})


def wait_for_checkpoint(model_dir: Path, after: int, processes: list[subprocess.Popen]) -> None:
    """Waits for a checkpoint of a later step than `after`."""
    deadline = time.monotonic() + 300
    while newest(model_dir) <= after:
        assert all(process.poll() is None for process in processes), "the run ended before that"
        assert time.monotonic() < deadline
        time.sleep(0.02)


def newest(model_dir: Path) -> int:
    """Returns the step of the newest checkpoint, 0 for none."""
    return max((int(path.stem.split("-")[1])
                for path in (model_dir / "checkpoints").glob("ckpt-*.index")), default=0)


def state(model_dir: Path) -> dict[str, np.ndarray]:
    """Every value of the newest checkpoint: weights, slots, step."""
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(model_dir / "checkpoints")))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()
            if name not in ("_CHECKPOINTABLE_OBJECT_GRAPH",) and "save_counter" not in name}


def weights(model_dir: Path) -> dict[str, np.ndarray]:
    return {name: value for name, value in state(model_dir).items() if name.startswith("model/")}


def step_of(model_dir: Path) -> int:
    return int(state(model_dir)["step/.ATTRIBUTES/VARIABLE_VALUE"])
