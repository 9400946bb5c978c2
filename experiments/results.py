r"""Writes the page of reference results from the table that sweeps fill.

    python -m experiments.results --results=experiments/results/results.sqlite \
        --output=docs/explanation/results.md --records='Wikipedia and books, 8,156 pieces'

One section per sweep and budget that the table has: what it was run with, scores with their
standard errors, and a picture beside the page.
"""

import dataclasses
from pathlib import Path

from absl import flags

from electra_tf.platform import command_line
from electra_tf.platform.atomic_file import write_atomically
from electra_tf.platform.errors import UserError
from experiments import budgets, sweep

_HEAD = """# Results of the paper's comparisons

Written by `python -m experiments.results` from recorded runs. All variants of a comparison have the
same compute, counted in matmul FLOPs. Numbers are means over seeds with one standard error.
[How to reproduce them](../how_to/paper_comparisons.md) describes the variants."""


def main() -> None:
    """Writes page and pictures; `UserError` if the table is missing or empty."""
    source, page = Path(flags.FLAGS.results), Path(flags.FLAGS.output)
    if not source.is_file():
        raise UserError(f"there is no results table {source}: run `python -m experiments.run` "
                        "first.")
    # Here, because it takes TensorFlow.
    from experiments import report, table

    rows = table.Table(source)
    found = dict.fromkeys((row.sweep, row.budget) for row in rows.rows())
    if not found:
        raise UserError(f"the results table {source} is empty.")
    records = flags.FLAGS.records
    lines = [_HEAD, *(["", f"Records: {records}."] if records else [])]
    for name, budget in found:
        whole = sweep.load(name)
        judged_by = {row.task for row in rows.rows(name, budget)}
        tasks = tuple(task for task in whole.tasks if task in judged_by)
        lines += ["", f"## {whole.title}", "", *report.section(
            dataclasses.replace(whole, tasks=tasks), budgets.budget_of(budget), rows, page.parent,
            f"images/results_{name}_{budget}.png"), "", "```bash",
            f"python -m experiments.run {name} --budget={budget} --data_dir=records "
            f"--tasks_dir=tasks --tasks={','.join(tasks)}", "```"]
    write_atomically(page, ("\n".join(lines) + "\n").encode())
    print(f"wrote {page}")


def define() -> None:
    """Registers the flags."""
    flags.DEFINE_string("results", "experiments/results/results.sqlite", "The table of results.")
    flags.DEFINE_string("records", None, "What the runs read, in words, for the page's head.")
    flags.DEFINE_string("output", "docs/explanation/results.md",
                        "The page; pictures go to images/ beside it.")


if __name__ == "__main__":
    define()
    command_line.run(main, summary=__doc__, groups={
        "Files": ["results", "output"], "Words": ["records"]})
