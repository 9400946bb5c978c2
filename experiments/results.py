r"""Stores the results of sweeps, and writes a page about them.

    python -m experiments.results
    python -m experiments.results --results=experiments/results/results.sqlite \
        --records='Wikipedia and books, 8,156 pieces'

The first command writes docs/explanation/results.md from the recorded results. The table is an
SQLite file with a row per score. The page has a section per sweep and budget: the answer to the
sweep's question, scores with standard errors, and a figure in images/ beside the page.
"""

import collections
import contextlib
import dataclasses
import itertools
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from electra_tf.platform import command_line
from electra_tf.platform.atomic_file import make_directory, write_atomically
from electra_tf.platform.errors import UserError
from electra_tf.platform.strict_yaml import read_sections
from electra_tf.reporting import plots
from experiments.sweep import Budget, Sweep, budget_of, load

RECORDED = Path(__file__).parent / "recorded.sqlite"
"""The table of docs/explanation/results.md; recorded.yml has its words."""
PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "results.md"
_MEAN = "mean of tasks"
_TASK_NAMES = {"chunk": "chunking", "ner": "named entities", "stsb": "STS-B", "cola": "CoLA",
               "sst2": "SST-2", "mrpc": "MRPC", "blimp": "BLiMP", "squad": "SQuAD 1.1",
               "squad2": "SQuAD 2.0", _MEAN: _MEAN}
"""Names of tasks on the page; others are written in capitals."""
PRETRAINING = "pretraining"
"""The task of rows with measures of held-out text."""
_METRICS = {"f1": "F1", "mcc": "Matthews correlation", "spearman": "Spearman correlation",
            "pearson": "Pearson correlation"}
"""Names of metrics on the page; others are written as they are."""
_HEAD = """# Results of the paper's comparisons

`python -m experiments.results` writes this page from recorded runs. All variants of a comparison
have equal compute, counted in matmul FLOPs; a share of 0.25 has a quarter of it. Numbers are means
over seeds with one standard error. [Comparisons](../how_to/paper_comparisons.md) describes the
variants."""
_NARROWEST = 5.0
"""Points that an axis of scores has at least, because a narrower one magnifies noise."""
_FAR = 8.0
"""Points from the next lower score beyond which a score is drawn at the edge, with its value."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoreRow:
    """A score of one run."""

    sweep: str
    budget: str
    variant: str
    seed: int
    task: str
    metric: str
    main: bool
    """True for the metric that compares runs; SQLite returns 0 or 1."""
    score: float | None
    """None if it is not a number."""
    steps: int
    """Pre-training steps."""
    tokens: int
    flops: float
    """FLOPs of the whole pre-training, in matrix multiplications."""
    settings: str
    """Non-default settings of the run, and the records' fingerprint, as JSON."""
    task_settings: str
    """The sweep's fine-tuning settings besides the task's own, as JSON; "" for none."""


_NAMES = tuple(field.name for field in dataclasses.fields(ScoreRow))
_TYPES = {str: "TEXT", int: "INTEGER", bool: "INTEGER"}


class ResultsTable:
    """An SQLite file; the rows of a finished run are written together."""

    def __init__(self, path: Path):
        """Opens or creates the file; `UserError` if SQLite cannot use it."""
        self._path = path
        columns = ", ".join(f"{field.name} {_TYPES.get(field.type, 'REAL')}"
                            for field in dataclasses.fields(ScoreRow))
        with self._open() as connection:
            connection.execute(f"CREATE TABLE IF NOT EXISTS scores ({columns}, "
                               "PRIMARY KEY (sweep, budget, variant, seed, task, metric))")

    def add(self, rows: list[ScoreRow]) -> None:
        """Writes rows, which replace those of the same run, task and metric."""
        with self._open() as connection:
            connection.executemany(
                f"INSERT OR REPLACE INTO scores ({', '.join(_NAMES)}) "
                f"VALUES ({', '.join('?' * len(_NAMES))})", map(dataclasses.astuple, rows))

    def rows(self, sweep: str = "", budget: str = "") -> list[ScoreRow]:
        """Returns the rows of a sweep and a budget, "" for all, in the order of insertion."""
        with self._open() as connection:
            rows = connection.execute(
                f"SELECT {', '.join(_NAMES)} FROM scores "
                "WHERE (? = '' OR sweep = ?) AND (? = '' OR budget = ?) ORDER BY rowid",
                (sweep, sweep, budget, budget)).fetchall()
        return [ScoreRow(**dict(zip(_NAMES, values, strict=True))) for values in rows]

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self._path, timeout=60)
            with contextlib.closing(connection), connection:
                yield connection
        except sqlite3.Error as error:
            raise UserError(f"the results table {self._path} can't be used: {error}") from error


class Spread(NamedTuple):
    """Mean and standard error of scores, in per cent; the error of one seed is NaN."""

    mean: float
    error: float

    @classmethod
    def of(cls, scores: Sequence[float]) -> "Spread":
        """Returns the mean and error of scores in [0, 1]."""
        values = 100 * np.array(scores, dtype=float)
        error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        return cls(float(values.mean()), float(error))

    def __str__(self) -> str:
        if not math.isfinite(self.mean):
            return "-"
        return f"{self.mean:.1f}" + (f" ± {self.error:.1f}" if math.isfinite(self.error) else "")


Scores = Mapping[str, Mapping[str, Spread]]
"""Task (or `_MEAN`) -> variant -> its scores; without tasks that have none."""


def scores_of(tasks: Sequence[str], rows: Sequence[ScoreRow]) -> Scores:
    """Returns the variants' scores by task; `_MEAN` is over seeds with scores of all tasks."""
    by_task: dict[str, dict[str, dict[int, float]]] = {
        task: collections.defaultdict(dict) for task in (*tasks, _MEAN)}
    for row in rows:
        if row.main and row.task in tasks:
            by_task[row.task][row.variant][row.seed] = math.nan if row.score is None else row.score
    if len(tasks) > 1:
        for variant, seed in {(row.variant, row.seed) for row in rows}:
            scores = [by_task[task][variant][seed] for task in tasks
                      if seed in by_task[task][variant]]
            if len(scores) == len(tasks):
                by_task[_MEAN][variant][seed] = float(np.mean(scores))
    spreads = {task: {variant: Spread.of(list(seeds.values()))
                      for variant, seeds in variants.items() if seeds}
               for task, variants in by_task.items()}
    return {task: variants for task, variants in spreads.items() if variants}


def section(sweep: Sweep, budget: Budget, table: ResultsTable, picture: Path, link: str,
            answer: str = "") -> list[str]:
    """Returns the comparison as Markdown, and draws its picture once there is a score."""
    rows = table.rows(sweep.name, budget.name)
    scores = scores_of(sweep.tasks, rows)
    labels = {task: label_of(task, rows) for task in scores}
    about = (f"**{sweep.question}** {answer}".strip() if answer else sweep.question,
             f"Source: {sweep.source}.", sweep.note,
             f"Budget `{budget.name}`: {budget.about}. Means over seeds in per cent, ± one "
             "standard error.")
    heads = ["", "steps", "tokens, M", *labels.values(), "seeds"]
    lines = [line for text in about if text for line in (text, "")]
    lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for variant in sweep.variants:
        own = [row for row in rows if row.variant == variant.name]
        cells = [f"{own[0].steps:,}", f"{own[0].tokens / 1e6:.1f}",
                 *(str(spreads.get(variant.name, "-")) for spreads in scores.values()),
                 str(len({row.seed for row in own}))] if own else ["-"] * (len(heads) - 1)
        lines.append(f"| {variant.name} | {' | '.join(cells)} |")
    if scores:
        draw(sweep, scores, labels, {row.variant: row.flops for row in rows}, picture)
        lines += ["", f"![{sweep.title}]({link})"]
    return lines


def label_of(task: str, rows: Sequence[ScoreRow]) -> str:
    """Returns a task's name and its main metric, for example "chunking F1"."""
    metrics = {row.metric for row in rows if row.main and row.task == task}
    return " ".join([_TASK_NAMES.get(task, task.upper()),
                     *(_METRICS.get(metric, metric.replace("_", " ")) for metric in metrics)])


def draw(sweep: Sweep, scores: Scores, labels: Mapping[str, str], flops: Mapping[str, float],
         path: Path) -> None:
    """Draws a panel per task: curves over FLOPs for shares of the budget, otherwise a row each."""
    has_curves = len({variant.share for variant in sweep.variants}) > 1
    columns = min(len(scores), 3)
    rows = -(-len(scores) // columns)
    height = 3.2 if has_curves else 0.6 + 0.34 * len(sweep.variants)
    figure, cells = plots.figure(rows, columns, (1.0 + 5.0 * columns, 0.6 + rows * height))
    for axes, (task, spreads) in zip(cells, scores.items(), strict=False):
        label = f"{labels[task]}, % (bar: one standard error)"
        if has_curves:
            _draw_curves(axes, sweep, spreads, flops)
            plots.style_axes(axes, x="FLOPs of pre-training (matrix multiplications)", y=label)
        else:
            _draw_rows(axes, sweep, spreads)
            plots.style_axes(axes, x=label)
    for axes in cells[len(scores):]:
        axes.set_visible(False)
    figure.suptitle(sweep.title, fontsize=11, color=plots.INK)
    plots.save(figure, path)


def _draw_curves(axes: Any, sweep: Sweep, spreads: Mapping[str, Spread],
                 flops: Mapping[str, float]) -> None:
    """Draws a line for the variants that differ in their share alone, over logarithmic FLOPs."""
    curves: dict[str, list[str]] = {}
    for variant in sweep.variants:
        if variant.name in spreads:
            curves.setdefault(variant.name.partition(", share")[0], []).append(variant.name)
    for (name, points), color in zip(curves.items(), itertools.cycle(plots.COLORS)):
        axes.errorbar([flops[point] for point in points], [spreads[point].mean for point in points],
                      yerr=np.nan_to_num([spreads[point].error for point in points]),
                      fmt="o-", color=color, capsize=4, label=name)
    axes.set_xscale("log")
    axes.set_ylim(*_widened(axes.get_ylim()))
    axes.legend(fontsize=plots.LABEL_SIZE, frameon=False)


def _draw_rows(axes: Any, sweep: Sweep, spreads: Mapping[str, Spread]) -> None:
    """Draws a point for every variant, the first on top, and far lower ones at the left edge."""
    names = [variant.name for variant in reversed(sweep.variants) if variant.name in spreads]
    ordered = sorted(spread.mean for spread in spreads.values() if math.isfinite(spread.mean))
    # Scores from the last large gap on are on the axis; those below it are not.
    lowest = max([high for low, high in zip(ordered, ordered[1:], strict=False)
                  if high - low > _FAR], default=-math.inf)
    near = [index for index, name in enumerate(names) if spreads[name].mean >= lowest]
    axes.errorbar([spreads[names[index]].mean for index in near], near,
                  xerr=np.nan_to_num([spreads[names[index]].error for index in near]), fmt="o",
                  color=plots.COLORS[0], capsize=4)
    left, right = _widened(axes.get_xlim())
    for index in set(range(len(names))) - set(near):
        axes.annotate(f"◀ {spreads[names[index]]}, outside the axis", (left, index), (4, 0),
                      textcoords="offset points", va="center", fontsize=plots.LABEL_SIZE,
                      color=plots.COLORS[1])
    axes.set_xlim(left, right)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.locator_params(axis="x", nbins=6)  # More labels such as 80.05 would overlap.


def _widened(limits: tuple[float, float]) -> tuple[float, float]:
    """Returns limits of an axis that are at least `_NARROWEST` apart."""
    missing = max(0.0, _NARROWEST - (limits[1] - limits[0]))
    return limits[0] - missing / 2, limits[1] + missing / 2


def main() -> None:
    """Writes the page and its pictures; `UserError` if the table is missing or empty."""
    source = Path(flags.FLAGS.results)
    if not source.is_file():
        raise UserError(f"there is no results table {source}: run `python -m experiments.run` "
                        "first.")
    words = (read_sections(RECORDED.with_suffix(".yml"), "recorded.yml")
             if source.samefile(RECORDED) else {})
    page = Path(flags.FLAGS.output or (PAGE if words else source.with_name("results.md")))
    records = flags.FLAGS.records or words.get("page", {}).get("records")
    table = ResultsTable(source)
    comparisons = dict.fromkeys((row.sweep, row.budget) for row in table.rows())
    if not comparisons:
        raise UserError(f"the results table {source} is empty.")
    make_directory(page.parent / "images")
    lines = [_HEAD, *(["", f"Records: {records}."] if records else [])]
    for name, budget in comparisons:
        sweep, rows = load(name), table.rows(name, budget)
        tasks = tuple(task for task in sweep.tasks if task in {row.task for row in rows})
        picture = f"images/results_{name}_{budget}.png"
        lines += ["", f"## {sweep.title}", "", *section(
            dataclasses.replace(sweep, tasks=tasks), budget_of(budget), table,
            page.parent / picture, picture, words.get("answers", {}).get(name, "")), "", "```bash",
            f"python -m experiments.run {name} --budget={budget} --data_dir=records "
            f"--tasks_dir=tasks --tasks={','.join(tasks)}", "```"]
    write_atomically(page, ("\n".join(lines) + "\n").encode())
    print(f"wrote {page}")


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("results", str(RECORDED), "SQLite file of experiments.run. Default: "
                        "the recorded results of the project.")
    flags.DEFINE_string("records", None, "Description of the records, for the head of the page.")
    flags.DEFINE_string("output", None, "Page to write. Figures go to images/ beside it. Default: "
                        "results.md beside --results; for the recorded results "
                        "docs/explanation/results.md.")


if __name__ == "__main__":
    define()
    command_line.run(main, summary=__doc__, groups={
        "Files": ["results", "output"], "Words": ["records"]})
