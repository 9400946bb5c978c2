r"""Prints the seconds of training until the held-out AUC of the discriminator stays at a goal.

    make time-to-quality TIME_FLAGS='--data_dir=records'
    python -m experiments.time_to_quality --model_dir=runs/short,runs/paper

Reads runs of run_pretraining.py with --eval_every_steps. Seconds are those of training steps,
without starts, evaluations and checkpoints.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from absl import flags

from electra_tf.core import command_line, storage, strict_json
from electra_tf.reporting.metrics_log import read_metrics

GOALS = (0.60, 0.65, 0.70, 0.75)


def main() -> None:
    """Prints a table in Markdown with a row for each run."""
    print("| run | " + "".join(f"{goal:.2f} | " for goal in GOALS) + "whole run, s | last AUC |\n"
          + "|---" * 7 + "|")
    # A row for each run: seconds to every goal, and to the last evaluation.
    for run in map(storage.path, flags.FLAGS.model_dir):
        settings = strict_json.read(run / "settings.json", dict)
        points = points_of(read_metrics(run / "metrics.jsonl"), (
            settings["training.train_batch_size"] * settings["data.max_seq_length"]))
        seconds = [*(seconds_to(points, goal) for goal in GOALS), points[-1][0] if points else None]
        cells = ["-" if value is None else f"{value:,.0f}" for value in seconds]
        print(f"| {run} | {' | '.join(cells)} | {points[-1][1] if points else 0.5:.3f} |")


def points_of(records: Iterable[Mapping[str, Any]],
              tokens_per_step: int) -> list[tuple[float, float]]:
    """Returns seconds of training and AUC at every evaluation in metrics.jsonl."""
    # Seconds of an interval = tokens / (tokens per second).
    points, seconds, step = [], 0.0, 0
    for record in records:
        if record["kind"] == "train":
            seconds += (record["step"] - step) * tokens_per_step / record["tokens_per_second"]
            step = record["step"]
        elif "discriminator_auc" in record:
            points.append((seconds, record["discriminator_auc"]))
    return points


def seconds_to(points: Sequence[tuple[float, float]], goal: float) -> float | None:
    """Returns the seconds from which the AUC stays at `goal`, above 0.5; None if it does not.

    The first generator draws all words with similar probability, which any discriminator detects.
    The AUC then falls again, so its first crossing does not count. It is interpolated linearly
    between evaluations, from 0.50 at 0 s.
    """
    # The last evaluation below the goal, and the one after it.
    curve = [(0.0, 0.5), *points]
    last_below = max(index for index, (_, auc) in enumerate(curve) if not auc >= goal)
    if last_below + 1 == len(curve):
        return None
    (begin, low), (end, high) = curve[last_below:last_below + 2]
    return begin + (goal - low) / (high - low) * (end - begin)


if __name__ == "__main__":
    flags.DEFINE_list("model_dir", None, "Directories of pre-training runs.", required=True)
    command_line.run(main, summary=__doc__, groups={"Flags": ["model_dir"]})
