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
_LOG_STEPS, _EVAL_STEPS = 10, 30
_EVAL_BATCHES = 2
_FOREVER = 100_000_000
_STEP = re.compile(r"(?:evaluation at )?step +([\d,]+)")


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
        run, clock = storage.path(directory) / "run", time.monotonic
        began = clock()
        process = subprocess.Popen(
            [*pretrain(), *flags, f"--model_dir={run}", f"--num_train_steps={_FOREVER}",
             f"--log_every_steps={_LOG_STEPS}", f"--eval_every_steps={_EVAL_STEPS}",
             f"--eval_steps={_EVAL_BATCHES}", "--sample_every_steps=0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        started, warm, last, evaluations = None, None, None, 0
        for line in process.stdout:
            if line.startswith("first step"):
                started = clock()
            elif found := _STEP.match(line):  # A quick network prints evaluations alone.
                evaluations += line.startswith("evaluation")
                last = int(found[1].replace(",", "")), clock(), evaluations
                if warm is None and evaluations > 1 and clock() - started > WARM_UP_SECONDS:
                    warm = last
                elif warm and clock() - warm[1] > MEASURED_SECONDS and evaluations > warm[2]:
                    break
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
        if warm is None or last is warm:
            *_, reason = errors.strip().splitlines() or [f"status {process.returncode}"]
            raise UserError(f"run_pretraining.py: {reason.removeprefix('error: ')}")
        throughput = training_throughput(run, warm[0])
        steps, seconds, evaluated = (end - start for start, end in zip(warm, last, strict=True))
        others = seconds - steps * tokens_per_step / throughput
        return Timing(tokens_per_second=throughput, start_seconds=started - began,
                      eval_seconds=max(1e-3, others / max(1, evaluated) / _EVAL_BATCHES))


def training_throughput(model_dir: Path, after: int = 0) -> float | None:
    """Returns the tokens/s of a run's steps after a step; None if it reported none yet."""
    steps, seconds, before = 0, 0.0, 0
    path = model_dir / METRICS_FILE
    for record in read_metrics(path) if path.exists() else ():
        if record["kind"] == TRAIN:
            if record["step"] > after and record["tokens_per_second"]:
                steps += record["step"] - before
                seconds += (record["step"] - before) / record["tokens_per_second"]
            before = record["step"]
    return steps / seconds if steps else None
