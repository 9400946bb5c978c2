"""Measures the training throughput of this machine by a run in a separate process."""

import dataclasses
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence

from electra_tf.checkpoints.run_directory import METRICS_FILE
from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.reporting.metrics_log import TRAIN, read_metrics

WARM_UP_SECONDS = 4.0
"""Uncounted seconds: a small network's first 100 steps have two thirds of its later throughput."""
MEASURED_SECONDS = 8.0
_EVAL_BATCHES = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Timing:
    """The durations of the parts of a run."""

    tokens_per_second: float
    """Training tokens, padding included, after the warm-up and without evaluations."""
    start_seconds: float
    """From the start of the process to the end of the first step."""
    eval_seconds: float
    """Duration of an evaluation's batch."""


def pretrain() -> list[str]:
    """Returns the words that start pre-training."""
    return command_line.other_program(
        "electra-pretrain", "electra_tf.pretraining.command", "run_pretraining.py")


def measure(flags: Sequence[str], tokens_per_step: int) -> Timing:
    """Trains a run with its own flags for some seconds and returns its timing.

    The flags are those of run_pretraining.py, without --model_dir and --num_train_steps. A
    command that fails is a `UserError` with its message.
    """
    with tempfile.TemporaryDirectory() as directory:
        model_dir, clock = storage.path(directory) / "run", time.monotonic
        begin = clock()
        process = subprocess.Popen(
            [*pretrain(), *flags, f"--model_dir={model_dir}", "--num_train_steps=100000000",
             "--log_every_steps=10", "--eval_every_steps=30", f"--eval_steps={_EVAL_BATCHES}",
             "--sample_every_steps=0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        first_step, warm, last, evaluations = None, None, None, 0
        for line in process.stdout:
            if line.startswith("first step"):
                first_step = clock()
            elif match := re.match(r"(?:evaluation at )?step +([\d,]+)", line):
                evaluations += line.startswith("evaluation")
                last = int(match[1].replace(",", "")), clock(), evaluations
                # A quick network prints evaluations alone.
                if warm is None and evaluations > 1 and clock() - first_step > WARM_UP_SECONDS:
                    warm = last
                elif warm and clock() - warm[1] > MEASURED_SECONDS and evaluations > warm[2]:
                    break
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
        if warm is None or last is warm:
            *_, reason = errors.strip().splitlines() or [f"status {process.returncode}"]
            raise UserError(f"run_pretraining.py: {reason.removeprefix('error: ')}")
        throughput = training_throughput(model_dir, after_step=warm[0])
        steps, seconds, evaluated = (end - start for start, end in zip(warm, last, strict=True))
        eval_seconds = seconds - steps * tokens_per_step / throughput
        return Timing(tokens_per_second=throughput, start_seconds=first_step - begin,
                      eval_seconds=max(1e-3, eval_seconds / max(1, evaluated) / _EVAL_BATCHES))


def training_throughput(model_dir: Path, after_step: int = 0) -> float | None:
    """Returns the tokens/s of a run's steps after a step; None if it reported none yet."""
    steps, seconds, before = 0, 0.0, 0
    path = model_dir / METRICS_FILE
    for record in read_metrics(path) if path.exists() else ():
        if record["kind"] == TRAIN:
            if record["step"] > after_step and record["tokens_per_second"]:
                steps += record["step"] - before
                seconds += (record["step"] - before) / record["tokens_per_second"]
            before = record["step"]
    return steps / seconds if steps else None
