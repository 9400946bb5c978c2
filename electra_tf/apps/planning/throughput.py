"""Measures the training throughput of this machine: some steps in a separate process."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence

from electra_tf.checkpoints.run_directory import METRICS_FILE
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.reporting.metrics_log import TRAIN, read_metrics

PRETRAIN = (sys.executable, "-m", "electra_tf.pretraining.command")
"""Runs what run_pretraining.py runs, installed or not."""
STEPS = 40
"""Steps of a measurement. The second half counts: the first includes tracing."""


def tokens_per_second(flags: Sequence[str]) -> float:
    """Returns the throughput of a run of `STEPS` steps.

    Args:
        flags: of run_pretraining.py, without --model_dir and --num_train_steps.

    Raises:
        UserError: the command fails; with its message.
    """
    with tempfile.TemporaryDirectory() as directory:
        ended = subprocess.run(
            [*PRETRAIN, *flags, f"--model_dir={directory}/run",
             f"--num_train_steps={STEPS}", f"--log_every_steps={STEPS // 2}", "--eval_steps=1",
             "--eval_every_steps=0", "--sample_every_steps=0"],
            capture_output=True, text=True, errors="replace")
        if ended.returncode:
            *_, reason = ended.stderr.strip().splitlines() or [f"status {ended.returncode}"]
            raise UserError(f"run_pretraining.py: {reason.removeprefix('error: ')}")
        records = read_metrics(storage.path(directory) / "run" / METRICS_FILE)
    return [record for record in records if record["kind"] == TRAIN][-1]["tokens_per_second"]
