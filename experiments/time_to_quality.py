r"""Prints the seconds of training until the held-out AUC of the discriminator stays at a goal.

    make time-to-quality TIME_FLAGS='--data_dir=records'
    python -m experiments.time_to_quality --data_dir=records --num_train_steps=20000

The recipes `short` and `paper` train one after the other on all cores in float32; the same command
continues them. Seconds are those of training steps, without start, evaluations and checkpoints.
"""

import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from absl import flags

from electra_tf.data import manifest
from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError
from electra_tf.reporting.metrics_log import read_metrics

GOALS = (0.60, 0.65, 0.70, 0.75)
BATCH, EVALUATIONS = 16, 40
RECIPES = {"short": (), "paper": (  # The paper's highest learning rate, and its dropout.
    "optimizer.learning_rate=5e-4", "optimizer.warmup_steps=-1", "model.hidden_dropout=0.1",
    "model.attention_dropout=0.1")}


def main() -> None:
    """Trains with each recipe, and prints a table in Markdown."""
    values = flags.FLAGS
    length = manifest.load(storage.path(values.data_dir)).max_seq_length
    every = -(-values.num_train_steps // EVALUATIONS)
    print("| recipe | " + "".join(f"{goal:.2f} | " for goal in GOALS)
          + "whole run, s | last AUC |\n" + "|---" * 7 + "|")
    for recipe, settings in RECIPES.items():
        run = storage.path(values.output_dir) / f"{recipe}-{values.num_train_steps}"
        if subprocess.run([
                sys.executable, "run_pretraining.py", f"--data_dir={values.data_dir}",
                f"--model_dir={run}", f"--recipe={recipe}", f"--model_size={values.model_size}",
                f"--train_batch_size={BATCH}", f"--num_train_steps={values.num_train_steps}",
                f"--eval_every_steps={every}", f"--log_every_steps={every}", "--eval_steps=20",
                "--sample_every_steps=0", f"--save_checkpoints_steps={values.num_train_steps}",
                "--precision=float32", *(f"--set={setting}" for setting in settings)],
                stdout=sys.stderr, check=False).returncode:
            raise UserError(f"the run {run} failed; the reason is above.")
        points = points_of(read_metrics(run / "metrics.jsonl"), BATCH * length)
        seconds = [*(seconds_to(points, goal) for goal in GOALS), points[-1][0]]
        cells = ["-" if value is None else f"{value:,.0f}" for value in seconds]
        print(f"| {recipe} | {' | '.join(cells)} | {points[-1][1]:.3f} |", flush=True)


def points_of(records: Iterable[Mapping[str, Any]],
              tokens_per_step: int) -> list[tuple[float, float]]:
    """Returns seconds of training and AUC at every evaluation in metrics.jsonl."""
    points, seconds, step = [], 0.0, 0
    for record in records:
        if record["kind"] == "train":
            seconds += (record["step"] - step) * tokens_per_step / record["tokens_per_second"]
            step = record["step"]
        elif record["kind"] == "eval":
            points.append((seconds, record["discriminator_auc"]))
    return points


def seconds_to(points: Sequence[tuple[float, float]], goal: float) -> float | None:
    """Returns the seconds from which the AUC stays at `goal`, above 0.5; None if it does not.

    The first generator draws all words with similar probability, which any discriminator detects.
    The AUC then falls again, so its first crossing does not count. It is interpolated linearly
    between evaluations, from 0.50 at 0 s.
    """
    curve = [(0.0, 0.5), *points]
    last_below = max(index for index, (_, auc) in enumerate(curve) if not auc >= goal)
    if last_below + 1 == len(curve):
        return None
    (begin, low), (end, high) = curve[last_below:last_below + 2]
    return begin + (goal - low) / (high - low) * (end - begin)


if __name__ == "__main__":
    flags.DEFINE_string("data_dir", None, "Directory of the records that data_prep built.",
                        required=True)
    flags.DEFINE_integer("num_train_steps", 5000, "Steps of every run.", lower_bound=1)
    flags.DEFINE_string("model_size", "tiny", "Model size: tiny, small, base or large.")
    flags.DEFINE_string("output_dir", "experiments/results/time_to_quality",
                        "Directory of the runs.")
    command_line.run(main, summary=__doc__, groups={
        "Flags": ["data_dir", "num_train_steps", "model_size", "output_dir"]})
