r"""Runs one of the paper's comparisons, or one of your own, and shows what came out.

    python -m experiments.run --list
    python -m experiments.run objectives --budget=tiny --data_dir=records --tasks_dir=tasks

The sweep is a YAML file in experiments/, or one that you name. Every variant gets the same compute,
counted in matrix products, and is judged by the same tasks. --tasks_dir holds glue/, conll2000/,
conll2003/, squad/, mrqa/ and blimp/, as far as a sweep asks for them. The same command goes on
where an interrupted one stopped. Results are added to one SQLite table; beside the runs stand a
page and a picture.

On two cores the budget "tiny" takes a quarter of an hour for each variant with its three seeds.
"""

import dataclasses
import functools
import sys

from absl import flags

from electra_tf.data import manifest
from electra_tf.platform import command_line, storage
from electra_tf.platform.atomic_file import make_directory, only_process
from electra_tf.platform.errors import UserError
from experiments import budgets, sweep, tasks


def main() -> None:
    """Runs the sweep that the command names.

    Raises:
        UserError: a sweep or budget is unknown, settings contradict each other, or a run failed.
    """
    values = flags.FLAGS
    if values.list:
        for name in sweep.names():
            print(f"{name:<18}{sweep.load(name).title}")
        return
    _require("sweep")
    budget = budgets.budget_of(values.budget)
    chosen = sweep.load(values.sweep)
    _require("data_dir", "tasks_dir")
    if values.tasks:
        tasks.require_known(tuple(values.tasks), "--tasks")
        chosen = dataclasses.replace(chosen, tasks=tuple(values.tasks))
    if values.seeds is not None:
        budget = dataclasses.replace(budget, seeds=values.seeds)
    sweep.check(chosen, budget)
    tasks.require_files(chosen.tasks, storage.path(values.tasks_dir))
    records = manifest.load(storage.path(values.data_dir))

    # TensorFlow takes seconds to import: only once the sweep is right.
    from experiments import jobs, report, runner, table

    results = storage.path(values.results)
    home = storage.path(values.output_dir)
    directory = home / f"{chosen.name}-{budget.name}"
    make_directory(directory)
    make_directory(results.parent)
    with only_process(directory, f"another process runs {chosen.name} in {directory}."):
        planned = jobs.plan(chosen, budget, records, home / "runs", budget.seeds)
        print(_plan_line(chosen, budget, planned), flush=True)
        rows = table.Table(results)
        failures = runner.Runner(
            chosen, budget, rows, data_dir=storage.path(values.data_dir).absolute(),
            tasks_dir=storage.path(values.tasks_dir).absolute(),
            say=functools.partial(print, flush=True),
        ).run(planned, values.jobs or runner.room(budget.threads))
        report.write(chosen, budget, rows, directory)
    print((directory / report.PAGE).read_text(encoding="utf-8"))
    print(f"page     {directory / report.PAGE}\nresults  {results}")
    if failures:
        raise UserError(f"{len(failures)} of {len(planned)} runs failed; the first: {failures[0]}")


def _require(*names: str) -> None:
    for name in names:
        if not flags.FLAGS[name].value:
            raise UserError(f"--{name} is needed: {flags.FLAGS[name].help}")


def _plan_line(chosen: sweep.Sweep, budget: budgets.Budget, planned) -> str:
    most = f"{max(job.flops for job in planned):.1e}".replace("e+", "e")
    return (f"{chosen.title}\n{len(chosen.variants)} variants x {budget.seeds} seeds, "
            f"{most} FLOPs a run at most ({budget.name}: {budget.about})")


def define() -> None:
    """Registers the flags."""
    flags.DEFINE_string("sweep", None, "A sweep of --list, or a YAML file; may stand first.")
    flags.DEFINE_bool("list", False, "Name the sweeps that there are.")
    flags.DEFINE_string("budget", "tiny", f"{', '.join(budgets.BUDGETS)}: compute of every run.")
    flags.DEFINE_list("tasks", None, "Judge by these alone. Default: all that the sweep names.")
    flags.DEFINE_integer("seeds", None, "Runs of every variant. Default: the budget's.",
                         lower_bound=1, upper_bound=100)
    flags.DEFINE_string("data_dir", None, "Directory of records that data_prep built.")
    flags.DEFINE_string("tasks_dir", None, "Directory of the tasks' files.")
    flags.DEFINE_string("output_dir", "experiments/results", "Where runs and pages go.")
    flags.DEFINE_string("results", "experiments/results/results.sqlite",
                        "The table of results; sweeps may share one.")
    flags.DEFINE_integer("jobs", None, "Runs side by side. Default: as many as have cores of their "
                         "own.", lower_bound=1, upper_bound=1000)


def name_first(arguments: list[str]) -> list[str]:
    """Returns a command's words with a sweep's name that stands first as the flag that it is.

    >>> name_first(["run.py", "tying", "--budget=tiny"])
    ['run.py', '--sweep=tying', '--budget=tiny']
    """
    if len(arguments) > 1 and not arguments[1].startswith("-"):
        return [arguments[0], f"--sweep={arguments[1]}", *arguments[2:]]
    return arguments


if __name__ == "__main__":
    define()
    sys.argv = name_first(sys.argv)
    command_line.run(main, summary=__doc__, groups={
        "What": ["sweep", "list", "budget", "seeds", "tasks"],
        "Data": ["data_dir", "tasks_dir"], "Results": ["output_dir", "results", "jobs"]})
