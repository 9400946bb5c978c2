"""Worker: a run of run_pretraining.py whose schedule fits the given seconds."""

import pathlib
import subprocess

from benchmarks.harness.worker import Ready, serve
from electra_tf.apps.planning.throughput import PRETRAIN, measure


def prepare(directory: str, evaluations: int, eval_batches: int, tokens_per_step: int,
            run_flags: list[str]) -> Ready:
    """Returns the run; `directory/run` gets its metrics."""
    def turn(seconds: float) -> dict[str, int]:
        rate = measure(run_flags, tokens_per_step).tokens_per_second
        steps = max(evaluations, round(seconds * rate / tokens_per_step))
        every = steps // evaluations
        ended = subprocess.run(
            [*PRETRAIN, *run_flags,
             f"--model_dir={pathlib.Path(directory) / 'run'}",
             f"--num_train_steps={steps}", f"--eval_every_steps={every}",
             f"--log_every_steps={every}", f"--eval_steps={eval_batches}",
             "--sample_every_steps=0", f"--save_checkpoints_steps={steps}"],
            stdout=subprocess.DEVNULL, check=False)
        if ended.returncode:
            raise SystemExit(ended.returncode)  # Its reason is on stderr already.
        return {"steps": steps}

    return Ready(label="", turn=turn)


if __name__ == "__main__":
    serve(prepare)
