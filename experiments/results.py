r"""Stores the scores of sweeps as JSON Lines, and prints their tables in Markdown.

    python -m experiments.results
    python -m experiments.results --results=experiments/results/tying-tiny/results.jsonl

The first command prints the recorded scores, which docs/explanation/results.md discusses.
"""

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import flags

from electra_tf.core import atomic_file, command_line, strict_json
from electra_tf.core.errors import UserError
from experiments.sweep import BUDGETS, Budget, Sweep, load

RECORDED = Path(__file__).parent / "recorded.jsonl"
PRETRAINING = "pretraining"  # The task of rows with measures of held-out text.
_NAMES = {"chunk": "chunking", "ner": "named entities", "stsb": "STS-B", "cola": "CoLA",
          "sst2": "SST-2", "mrpc": "MRPC", "blimp": "BLiMP", "squad": "SQuAD 1.1",
          "squad2": "SQuAD 2.0", "f1": "F1", "mcc": "Matthews correlation",
          "spearman": "Spearman correlation"}
"""Names of tasks and metrics in tables; others are written as they are."""


class ScoreRow(strict_json.Object):
    """The scores of one task with one run."""

    sweep: str
    budget: str
    variant: str
    seed: int
    task: str
    main: str  # The metric that compares runs.
    scores: dict[str, float | None]  # Metric -> score; None if it is not a number.
    steps: int  # Pre-training steps.
    tokens: int
    flops: float  # FLOPs of the whole pre-training, in matrix multiplications.
    settings: dict[str, Any]  # Non-default ones of the run, and the records' fingerprint.
    task_settings: dict[str, str] | None  # Of `Sweep.finetuning`; None for PRETRAINING.
    cpu_seconds: float | None = None  # User and system; None in rows before November 29, 2026.


def write(path: Path, rows: Sequence[ScoreRow]) -> None:
    """Writes rows in the order of sweep, budget, variant, seed and task."""
    rows = sorted(rows, key=lambda row: (row.sweep, row.budget, row.variant, row.seed, row.task))
    atomic_file.write_atomically(path, b"".join(
        strict_json.dumps(row, ScoreRow) + b"\n" for row in rows))


def read(path: Path) -> list[ScoreRow]:
    """Returns the rows of a file; `UserError` if it is missing or damaged."""
    try:
        return [strict_json.loads(line, ScoreRow) for line in path.read_bytes().splitlines()]
    except strict_json.Unreadable as error:
        raise UserError(f"{path} has a damaged line: {error}.") from error


def spread(scores: Sequence[float]) -> str:
    """Returns mean and standard error in per cent: "84.6 ± 0.1"; no error for one score."""
    if not scores or not all(map(math.isfinite, scores)):
        return "-"
    # Standard error: s / sqrt(n), with s of n - 1 degrees of freedom.
    mean = f"{100 * statistics.fmean(scores):.1f}"
    if len(scores) == 1:
        return mean
    return f"{mean} ± {100 * statistics.stdev(scores) / len(scores) ** 0.5:.1f}"


def section(comparison: Sweep, budget: Budget, rows: Sequence[ScoreRow]) -> list[str]:
    """Returns a comparison as Markdown with a row for each variant."""
    # Columns: CPU time if it was measured, the scored tasks in the sweep's order, and their mean.
    costs = [row for row in rows if row.task == PRETRAINING and row.cpu_seconds]
    main = {row.task: row.main for row in rows if row.task in comparison.tasks}
    tasks = [task for task in comparison.tasks if task in main]
    heads = ["steps", "tokens, M", *["CPU minutes"] * bool(costs), *(
        f"{_NAMES.get(task, task)} {_NAMES.get(main[task], main[task])}" for task in tasks),
        *["mean of tasks"] * (len(tasks) > 1), "seeds"]
    # Heading, paragraphs and the head of a Markdown table.
    about = (comparison.question, f"Source: {comparison.source}.", comparison.note,
             f"Budget `{budget.name}`: {budget.about}. Means over seeds in per cent, ± one "
             "standard error.")
    lines = [f"## {comparison.title}", "", *(line for text in about if text for line in (text, "")),
             f"|  | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for variant in comparison.variants:
        runs = [row for row in rows if row.variant == variant.name]
        if not runs:
            lines.append(f"| {variant.name} {'| - ' * len(heads)}|")
            continue
        # Scores by task and seed; the mean is over seeds with scores of all tasks.
        scores = [{row.seed: math.nan if (score := row.scores[row.main]) is None else score
                   for row in runs if row.task == task} for task in tasks]
        if len(tasks) > 1:
            seeds = set.intersection(*map(set, scores))
            scores.append({seed: statistics.fmean(task[seed] for task in scores) for seed in seeds})
        minutes = [row.cpu_seconds / 60 for row in costs if row.variant == variant.name]
        cost = [f"{statistics.fmean(minutes):.1f}" if minutes else "-"] * bool(costs)
        cells = [f"{runs[0].steps:,}", f"{runs[0].tokens / 1e6:.1f}", *cost,
                 *(spread(list(task.values())) for task in scores),
                 str(len({row.seed for row in runs}))]
        lines.append(f"| {variant.name} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Prints a section for every sweep and budget of a file."""
    rows = read(Path(flags.FLAGS.results))
    for name, budget in dict.fromkeys((row.sweep, row.budget) for row in rows):
        print("\n".join([*section(load(name), BUDGETS[budget], [
            row for row in rows if (row.sweep, row.budget) == (name, budget)]), ""]))


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("results", str(RECORDED), "File that experiments.run wrote. Default: the "
                        "recorded results of the project.")


if __name__ == "__main__":
    command_line.run(main, define, summary=__doc__)
