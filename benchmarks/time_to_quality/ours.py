"""Trains by run_pretraining.py, in a process of its own."""

import pathlib
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.harness.worker import Ready
from electra_tf.apps.planning.plan import pretrain
from electra_tf.checkpoints.run_directory import METRICS_FILE
from electra_tf.reporting.metrics_log import read_metrics


def prepare(steps: int, every: int, tokens_per_step: int, run_flags: list[str]) -> Ready:
    """Returns a turn that is the whole run."""
    def turn() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as directory:
            process = subprocess.run(
                [*pretrain(), *run_flags, f"--model_dir={directory}/run",
                 f"--num_train_steps={steps}", f"--eval_every_steps={every}",
                 f"--log_every_steps={every}", "--sample_every_steps=0",
                 f"--save_checkpoints_steps={steps}"], stdout=subprocess.DEVNULL, check=False)
            if process.returncode:
                raise SystemExit(process.returncode)  # Its reason is on stderr already.
            records = read_metrics(pathlib.Path(directory) / "run" / METRICS_FILE)
        return {"points": points_of(records, tokens_per_step)}

    return Ready(turn=turn)


def points_of(records: Iterable[Mapping[str, Any]],
              tokens_per_step: int) -> list[tuple[float, float]]:
    """Returns seconds of training and AUC at every evaluation in metrics.jsonl.

    The throughput of an interval gives the duration of its steps, without start, evaluations and
    checkpoints.
    """
    points, seconds, step = [], 0.0, 0
    for record in records:
        if record["kind"] == "train":
            seconds += (record["step"] - step) * tokens_per_step / record["tokens_per_second"]
            step = record["step"]
        elif record["kind"] == "eval":
            points.append((seconds, record["discriminator_auc"]))
    return points
