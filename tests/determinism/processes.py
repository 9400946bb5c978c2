"""Starts the real program in a process of its own, to kill it or to read what it says."""

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from tests import tiny_run
from tests.own_lines import own_lines

ROOT = Path(__file__).parents[2]


def command(records: Path, model_dir: Path, *flags: str) -> list[str]:
    return [sys.executable, str(ROOT / "run_pretraining.py"), f"--data_dir={records}",
            f"--model_dir={model_dir}", "--model_size=tiny", *tiny_run.FLAGS, *flags]


def run(arguments: Sequence[str]) -> subprocess.CompletedProcess:
    return subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT, timeout=300)


def interrupted(records: Path, model_dir: Path, number: signal.Signals, after: float,
                *flags: str, prefix: tuple[str, ...] = ()) -> tuple[int, str]:
    """Runs until a checkpoint has appeared and some time more, then sends a signal.

    Returns the status and the last line on stderr.
    """
    done = set((model_dir / "checkpoints").glob("ckpt-*.index"))
    process = subprocess.Popen([*prefix, *command(records, model_dir, *flags)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while set((model_dir / "checkpoints").glob("ckpt-*.index")) <= done:
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(after)
    process.send_signal(number)
    errors = process.communicate(timeout=60)[1]
    return process.returncode, (own_lines(errors) or [""])[-1]


def state(model_dir: Path) -> dict[str, np.ndarray]:
    """Every value of the newest checkpoint: weights, slots, step."""
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(model_dir / "checkpoints")))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()
            if name not in ("_CHECKPOINTABLE_OBJECT_GRAPH",) and "save_counter" not in name}


def step_of(model_dir: Path) -> int:
    return int(state(model_dir)["step/.ATTRIBUTES/VARIABLE_VALUE"])
