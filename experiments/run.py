r"""Runs one of the paper's comparisons, or one of your own, and prints the results.

    python -m experiments.run objectives --budget=tiny --data_dir=records --tasks_dir=tasks

SWEEP is your own YAML file, or one of experiments/:

{sweeps}

Every variant gets equal compute, counted in matmul FLOPs, and is scored by the same tasks.
--tasks_dir contains the folders glue/, conll2000/, conll2003/, squad/, mrqa/ and blimp/ as far as
the sweep needs them. The same command continues an interrupted sweep. It adds the results to one
SQLite table, and writes a page and a figure beside the runs.

On two cores with AVX-512 bfloat16 the budget "tiny" takes a quarter of an hour for each variant
with its three seeds.
"""

import dataclasses

from absl import flags

from electra_tf.data import manifest
from electra_tf.platform import command_line, storage
from electra_tf.platform.atomic_file import lock_directory, make_directory, write_atomically
from electra_tf.platform.errors import UserError
from experiments import sweep


def main(name: str) -> None:
    """Runs a sweep; `UserError` for unknown names, contradictory settings and failed runs."""
    values = flags.FLAGS
    budget, comparison = sweep.budget_of(values.budget), sweep.load(name)
    if values.tasks:
        sweep.require_known_tasks(values.tasks, "--tasks: a task")
        comparison = dataclasses.replace(comparison, tasks=tuple(values.tasks))
    if values.seeds is not None:
        budget = dataclasses.replace(budget, seeds=values.seeds)
    sweep.check(comparison, budget)
    tasks_dir = storage.path(values.tasks_dir).absolute()
    for task in comparison.tasks:  # Checked before hours of training.
        if not (tasks_dir / sweep.TASK_FOLDERS[task]).exists():
            raise UserError(f"{task} needs {tasks_dir / sweep.TASK_FOLDERS[task]}, which doesn't "
                            "exist: put its files there, or leave the task out of --tasks.")
    records = manifest.load(storage.path(values.data_dir))

    # Imported after the checks: TensorFlow takes seconds.
    from experiments import results, runner

    home = storage.path(values.output_dir)
    directory = home / f"{comparison.name}-{budget.name}"
    make_directory(directory)
    make_directory(storage.path(values.results).parent)
    with lock_directory(directory, f"another process runs {comparison.name} in {directory}; wait "
                                   "for it, or name another --output_dir."):
        jobs = runner.plan(comparison, budget, records, home / "runs")
        print(f"{comparison.title}\n{len(comparison.variants)} variants x {budget.seeds} seeds, "
              f"{max(job.flops for job in jobs):.1e} FLOPs per run at most ({budget.name}: "
              f"{budget.about})", flush=True)
        table = results.ResultsTable(storage.path(values.results))
        failures = runner.SweepRunner(
            comparison, budget, table, data_dir=storage.path(values.data_dir).absolute(),
            tasks_dir=tasks_dir).run(jobs)
        page = "\n".join([f"# {comparison.title}", "", *results.section(
            comparison, budget, table, directory / "report.png", "report.png"), ""])
        path = directory / "report.md"
        write_atomically(path, page.encode())
    print(f"{page}\npage     {path}\nresults  {values.results}")
    if failures:
        raise UserError(f"{len(failures)} of {len(jobs)} runs failed; the first: {failures[0]}")


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("budget", "tiny", f"Compute of every run: {', '.join(sweep.BUDGETS)}.")
    flags.DEFINE_list("tasks", None, "Tasks to score, separated by commas. Default: all.")
    flags.DEFINE_integer("seeds", None, "Runs of every variant. Default: as many as the budget.",
                         lower_bound=1, upper_bound=100)
    flags.DEFINE_string("data_dir", "records", "Directory of the records that data_prep built.")
    flags.DEFINE_string("tasks_dir", "tasks", "Directory with the files of the tasks.")
    flags.DEFINE_string("output_dir", "experiments/results", "Directory for runs and pages.")
    flags.DEFINE_string("results", "experiments/results/results.sqlite",
                        "SQLite file for the results. Several sweeps may share it.")


if __name__ == "__main__":
    define()
    sweeps = "\n".join(f"  {name:<18}{sweep.load(name).title}" for name in sweep.names())
    command_line.run(main, summary=__doc__.format(sweeps=sweeps), operand="SWEEP", groups={
        "What": ["budget", "seeds", "tasks"], "Data": ["data_dir", "tasks_dir"],
        "Results": ["output_dir", "results"]})
