r"""Writes the page of reference results from the table that sweeps fill.

    python -m experiments.results --results=experiments/results/results.sqlite \
        --output=docs/results.md --records='Wikipedia and books, 8,156 pieces'

One section per sweep and budget that the table has: what it was run with, scores with their
standard errors, and a picture beside the page.
"""

from pathlib import Path

from absl import flags

from electra_tf.platform import command_line
from electra_tf.platform.atomic_file import write_atomically
from electra_tf.platform.errors import UserError
from experiments import budgets, sweep

_HEAD = """# What to expect

Written by `python -m experiments.results` from recorded runs; don't edit it by hand. Every variant
of a comparison had the same compute, counted in matrix products, and every number is the mean over
runs with seeds of their own, with its standard error. [objectives.md](objectives.md) says what is
compared, and [budgets.md](budgets.md) what a time gives."""


def main() -> None:
    """Writes page and pictures.

    Raises:
        UserError: no table, or nothing in it.
    """
    values = flags.FLAGS
    for name in ("results", "output"):
        if not values[name].value:
            raise UserError(f"--{name} is needed: {values[name].help}")
    source, page = Path(values.results), Path(values.output)
    if not source.exists():
        raise UserError(f"there is no results table {source}: run `python -m experiments.run` "
                        "first.")
    # Here, because it takes TensorFlow.
    from experiments import report, table

    rows = table.Table(source)
    found = dict.fromkeys((row.sweep, row.budget) for row in rows.rows())
    if not found:
        raise UserError(f"the results table {source} is empty.")
    lines = [_HEAD, *(["", f"Records: {values.records}."] if values.records else [])]
    for name, budget in found:
        lines += ["", *_section(sweep.load(name), budgets.budget_of(budget), rows, page, report)]
    write_atomically(page, ("\n".join(lines) + "\n").encode())
    print(f"wrote {page}")


def _section(chosen: sweep.Sweep, budget: budgets.Budget, table, page: Path, report) -> list[str]:
    rows = table.rows(chosen.name, budget.name)
    tasks = [task for task in chosen.tasks if any(row.task == task for row in rows)]
    names = [variant.name for variant in chosen.variants]
    scores = report.scores_of(tasks, names, rows)
    picture = f"images/results_{chosen.name}_{budget.name}.png"
    report.draw(chosen, scores, rows, page.parent / picture)
    return [f"## {chosen.title}", "", *report.section(chosen, budget, rows, scores), "",
            f"![{chosen.title}]({picture})", "", "```bash",
            f"python -m experiments.run {chosen.name} --budget={budget.name} "
            f"--data_dir=records --tasks_dir=tasks --tasks={','.join(tasks)}", "```"]


def define() -> None:
    """Registers the flags."""
    flags.DEFINE_string("results", "experiments/results/results.sqlite", "The table of results.")
    flags.DEFINE_string("records", None, "What the runs read, in words, for the page's head.")
    flags.DEFINE_string("output", "docs/results.md", "The page; pictures go to images/ beside it.")


if __name__ == "__main__":
    define()
    command_line.run(main, summary=__doc__, groups={
        "Files": ["results", "output"], "Words": ["records"]})
