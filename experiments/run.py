r"""Runs one of the paper's comparisons, or one of your own, and prints the results.

    python -m experiments.run objectives --budget=tiny --data_dir=records --tasks_dir=tasks

SWEEP is your own YAML file, or one of experiments/:

{sweeps}

Every variant gets equal compute, counted in matmul FLOPs, and is scored by the same tasks.
--tasks_dir contains the folders glue/, conll2000/, conll2003/, squad/, mrqa/ and blimp/ as far as
the sweep needs them. The same command continues an interrupted sweep. On two cores with AVX-512
bfloat16 the budget "tiny" takes a quarter of an hour for each variant with its three seeds.
"""

import concurrent.futures
import dataclasses
import itertools
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import flags

from electra_tf.config.objectives import all_metrics, objective_class
from electra_tf.config.overrides import flatten, override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core import atomic_file, command_line, storage, strict_json
from electra_tf.core.errors import UserError
from electra_tf.core.settings import require_one_of
from electra_tf.data import manifest
from electra_tf.modeling.flops import matmul_flops_per_token
from experiments import results, sweep
from experiments.results import PRETRAINING, ScoreRow
from experiments.sweep import Budget, Sweep, Variant

ROOT = Path(__file__).parents[1]
PATH_UNSAFE = r"[^\w.]+"
MAIN_METRIC = {"stsb": "spearman",  # As in the paper's tables.
               **dict.fromkeys(("searchqa", "triviaqa", "newsqa", "naturalqs"), "f1")}
"""Task -> metric that compares runs, instead of the first metric of run_finetuning.py."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """A pre-training run, and the tasks that score it."""

    comparison: Sweep
    budget: Budget
    variant: Variant
    config: PretrainingConfig  # With the records' vocabulary and length, the steps and the seed.
    flops: float  # FLOPs of all steps, in matrix multiplications.
    settings: Mapping[str, Any]  # Non-default ones that decide the result; records' fingerprint.
    directory: Path

    @property
    def name(self) -> str:
        """Name in messages."""
        return f"{self.variant.name}, seed {self.config.training.seed}"

    def command(self, task: str, data_dir: Path, tasks_dir: Path) -> list[str]:
        """Returns the arguments of Python for pre-training or a task."""
        # BLiMP is scored without training; other tasks are fine-tuned; otherwise pre-training.
        training, target = self.config.training, self.directory / task
        folder, encoder = sweep.TASK_FOLDERS.get(task), self.directory / PRETRAINING
        if task == "blimp":
            return ["-m", "electra_tf.apps.tools.score_text", f"--blimp={tasks_dir / folder}",
                    f"--model_dir={encoder}", f"--output_dir={target}"]
        if task != PRETRAINING:
            settings = {"training.seed": training.seed} | dict(self.comparison.finetuning)
            return ["run_finetuning.py", f"--task={task}", f"--data_dir={tasks_dir / folder}",
                    f"--init_checkpoint={encoder}", f"--model_dir={target}",
                    *(f"--set={name}={value}" for name, value in settings.items())]
        every = -(-training.num_train_steps // 8)  # Eight points of held-out curves.
        settings = self.budget.settings | dict(self.variant.settings) | {
            "training.seed": training.seed, "training.num_train_steps": training.num_train_steps,
            "runtime.eval_every_steps": every, "runtime.eval_steps": 16,
            "runtime.sample_every_steps": 0, "runtime.save_checkpoints_steps": every}
        return ["run_pretraining.py", f"--data_dir={data_dir}", f"--model_dir={target}",
                f"--model_size={self.budget.model_size}",
                f"--recipe={self.variant.recipe or self.budget.recipe}",
                *(f"--set={name}={value}" for name, value in settings.items())]

    def cpu_seconds(self, task: str) -> float | None:
        """Returns the CPU time of pre-training or a task, with interrupted attempts."""
        path = self.directory / f"{task}.cpu_seconds.json"
        return strict_json.read(path, float) if path.exists() else None

    def row(self, task: str) -> ScoreRow | None:
        """Returns the scores of pre-training or a task; None before it ended."""
        path = self.directory / task / {PRETRAINING: "eval_results.json", "blimp": (
            "blimp_results.json")}.get(task, "results.json")
        if not path.exists():
            return None
        # The scores that the task's program wrote, and the one that compares runs.
        content = strict_json.read(path, dict, max_bytes=64 << 20)
        if task == PRETRAINING:
            main = "loss"
            scores = {name: score for name, score in content.items() if name in all_metrics()}
        elif task == "blimp":
            scores = content["mean"]
            main = next(iter(scores))
        else:
            main = MAIN_METRIC.get(task, content["metrics"][0])
            scores = {name: summary["mean"] for name, summary in next(iter(
                content["summary"].values())).items() if name in (main, *content["metrics"])}
        # tokens = steps x batch x length.
        training = self.config.training
        return ScoreRow(
            sweep=self.comparison.name, budget=self.budget.name, variant=self.variant.name,
            seed=training.seed, task=task, main=main, scores=scores, flops=self.flops,
            steps=training.num_train_steps, settings=dict(self.settings),
            cpu_seconds=self.cpu_seconds(task),
            tokens=(training.num_train_steps * training.train_batch_size
                    * self.config.data.max_seq_length),
            task_settings=None if task == PRETRAINING else dict(self.comparison.finetuning))


def plan(comparison: Sweep, budget: Budget, records: manifest.Manifest, home: Path) -> list[Job]:
    """Returns the runs of a sweep, seed by seed, each with all variants."""
    # The budget in FLOPs: those of the reference's steps on these records.
    record_settings = {"model.vocab_size": records.vocabulary.size,
                       "data.max_seq_length": records.max_seq_length}
    reference = override(Variant(name="", settings={}).config(budget), record_settings)
    total_flops = step_flops(reference) * budget.reference_steps
    jobs = []
    for seed, variant in itertools.product(range(1, budget.seeds + 1), comparison.variants):
        # An objective that costs more per token trains fewer steps.
        config = override(variant.config(budget), record_settings)
        flops = step_flops(config)
        steps = max(1, round(total_flops * variant.share / flops))
        config = override(config, {"training.num_train_steps": steps, "training.seed": seed})
        # Settings that tell this run from others, for the results.
        name = config.objective.name
        defaults = flatten(override(PretrainingConfig(), {"objective.name": name}))
        settings = {key: value for key, value in flatten(config).items()
                    if not key.startswith("runtime.") and value != defaults[key]}
        jobs.append(Job(
            comparison=comparison, budget=budget, variant=variant, config=config,
            flops=steps * flops, settings=settings | {
                "objective.name": name, "records": records.fingerprint},
            directory=home / f"{re.sub(PATH_UNSAFE, '_', variant.name)}-seed{seed}"))
    return jobs


def step_flops(config: PretrainingConfig) -> float:
    """Returns the FLOPs of a training step's matrix multiplications, forward and backward."""
    from electra_tf.objectives.pretraining import ObjectiveContext

    length = config.data.max_seq_length
    objective = objective_class(config.objective.name)(
        config, ObjectiveContext.placeholder(config.model.vocab_size))
    if not objective.network_specs():
        raise UserError(f"objective.name={config.objective.name} has no network_specs, from which "
                        "a sweep counts FLOPs.")
    return config.training.train_batch_size * length * matmul_flops_per_token(
        objective.network_specs(), length, config.masking.max_predictions(length))


def run_jobs(jobs: Sequence[Job], data_dir: Path, tasks_dir: Path) -> list[str]:
    """Runs what has no scores yet, side by side; returns a line for every job that failed."""
    # Every thread has its own cores, as have the processes that it starts; macOS binds none.
    bind = getattr(os, "sched_setaffinity", lambda *_: None)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    count = min(jobs[0].budget.threads or len(cores), len(cores))
    core_sets = [cores[first:first + count] for first in range(0, len(cores) - count + 1, count)]
    running: set[subprocess.Popen] = set()
    stopped = threading.Event()

    # A job: pre-training, then its tasks; what has scores is not repeated.
    def run_job(job: Job) -> str:
        for task in (PRETRAINING, *job.comparison.tasks):
            if job.row(task) or stopped.is_set():
                continue
            begin, log = time.monotonic(), job.directory / f"{task}.log"
            with open(log, "ab") as out:
                process = subprocess.Popen(
                    [sys.executable, *job.command(task, data_dir, tasks_dir)], cwd=ROOT, stdout=out,
                    stderr=out, stdin=subprocess.DEVNULL, process_group=0)
            running.add(process)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            running.discard(process)
            atomic_file.write_json(
                job.directory / f"{task}.cpu_seconds.json",
                (job.cpu_seconds(task) or 0.0) + usage.ru_utime + usage.ru_stime)
            if status or not (row := job.row(task)):
                reason = log.read_text(errors="replace").strip().rpartition("\n")[2]
                return (f"{job.name}: {task} ended with status {process.returncode}: {reason} "
                        f"({log})")
            print(f"{job.name}: {task}, {row.main} {row.scores[row.main]}, "
                  f"{time.monotonic() - begin:,.0f} s", flush=True)
        return ""

    # One thread for each set of cores, to which the thread is bound.
    with concurrent.futures.ThreadPoolExecutor(
            len(core_sets), initializer=lambda: bind(0, core_sets.pop())) as pool:
        try:
            return list(filter(None, pool.map(run_job, jobs)))
        finally:  # After a signal no task begins, and pre-training saves its step before it ends.
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            for process in [*running]:
                process.terminate()


def main(name: str) -> None:
    """Runs a sweep; `UserError` for unknown names, contradictory settings and failed runs."""
    values = flags.FLAGS
    require_one_of(sweep.BUDGETS, "--budget", values.budget)
    budget, comparison = sweep.BUDGETS[values.budget], sweep.load(name)
    comparison = dataclasses.replace(comparison, tasks=values.tasks or comparison.tasks)
    budget = dataclasses.replace(budget, seeds=values.seeds or budget.seeds)
    # Everything is checked before hours of training.
    sweep.check(comparison, budget)
    data_dir, tasks_dir, home = (storage.path(path).absolute() for path in (
        values.data_dir, values.tasks_dir, values.output_dir))
    for task in comparison.tasks:
        require_one_of(sweep.TASK_FOLDERS, "--tasks: a task", task)
        if not (tasks_dir / sweep.TASK_FOLDERS[task]).exists():
            raise UserError(f"{task} needs {tasks_dir / sweep.TASK_FOLDERS[task]}, which doesn't "
                            "exist: put its files there, or leave the task out of --tasks.")
    home /= f"{comparison.name}-{budget.name}"
    jobs = plan(comparison, budget, manifest.load(data_dir), home)
    for job in jobs:
        path, settings = job.directory / "job.json", [job.settings, comparison.finetuning]
        if path.exists() and strict_json.read(path, list) != settings:
            raise UserError(f"{job.directory} has a run of other settings or steps: give the "
                            f"variant {job.variant.name!r} another name, or name another "
                            "--output_dir.")
        atomic_file.make_directory(job.directory)
        atomic_file.write_json(path, settings)
    # The runs that are missing; then the table of all that have scores.
    failures = run_jobs(jobs, data_dir, tasks_dir)
    rows = [row for job in jobs for task in (PRETRAINING, *comparison.tasks)
            if (row := job.row(task))]
    results.write(home / "results.jsonl", rows)
    print("\n".join([*results.section(comparison, budget, rows), "", f"{home}/results.jsonl"]))
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
    flags.DEFINE_string("output_dir", "experiments/results",
                        "Directory for the runs and results.jsonl of every sweep and budget.")


if __name__ == "__main__":
    define()
    sweeps = "\n".join(f"  {name:<18}{sweep.load(name).title}" for name in sweep.names())
    command_line.run(main, summary=__doc__.format(sweeps=sweeps), operand="SWEEP", groups={
        "What": ["budget", "seeds", "tasks"], "Where": ["data_dir", "tasks_dir", "output_dir"]})
