"""Runs a sweep: as many runs side by side as there is room for, and goes on where it was stopped.

Every run is a process of run_pretraining.py and one of run_finetuning.py for each task, each of
which resumes by itself where it was interrupted. What the results table has isn't run again.
"""

import concurrent.futures
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from electra_tf.config.objectives import measures
from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import usable_cores
from electra_tf.pretraining.results import RESULTS_FILE as EVALUATION_FILE
from experiments import tasks
from experiments.budgets import Budget
from experiments.jobs import Job
from experiments.sweep import Sweep
from experiments.table import Row, Table

ROOT = Path(__file__).parents[1]
PRETRAINING = "pretraining"
"""The task in rows with scores of held-out text."""
_MOST_BYTES = 1 << 20


class Runner:
    """The execution of a sweep's jobs."""

    def __init__(self, sweep: Sweep, budget: Budget, table: Table, *, data_dir: Path,
                 tasks_dir: Path, say: Callable[[str], None] = print):
        """Takes what to run, where it reads, and where results go."""
        self._sweep, self._budget, self._table, self._say = sweep, budget, table, say
        self._data_dir, self._tasks_dir = data_dir, tasks_dir
        self._task_settings = json.dumps(dict(sweep.finetuning), sort_keys=True)
        self._stopped = threading.Event()
        self._running: set[subprocess.Popen] = set()
        self._lock = threading.Lock()

    def run(self, jobs: Sequence[Job], side_by_side: int) -> list[str]:
        """Runs the jobs that the table lacks; returns a line for every job that failed."""
        for job in jobs:
            self._copy_results(job)
        waiting = [job for job in jobs if self._missing(job)]
        self._say(f"{len(jobs)} runs, {len(jobs) - len(waiting)} of them done; "
                  f"{side_by_side} side by side")
        free = _slots(side_by_side, self._budget.threads)
        failures: list[str] = []

        def work(job: Job) -> None:
            cores = free.pop()  # There are as many as threads.
            try:
                if cores:
                    os.sched_setaffinity(0, cores)  # Of this thread and the processes it starts.
                self._do(job)
            except UserError as error:
                if not self._stopped.is_set():
                    failures.append(f"{job.variant.name}, seed {job.seed}: {error}")
                    self._say(f"failed   {failures[-1]}")
            finally:
                free.append(cores)

        with concurrent.futures.ThreadPoolExecutor(side_by_side) as pool:
            futures = [pool.submit(work, job) for job in waiting]
            try:
                for future in futures:
                    future.result()
            finally:
                if not all(future.done() for future in futures):
                    self._stop()  # A signal: no job begins any more, and those that run end.
        return failures

    def _copy_results(self, job: Job) -> None:
        """Copies what another sweep, or a variant of another name, found with the same run."""
        name = (self._sweep.name, self._budget.name, job.variant.name)
        same = [row for row in self._table.rows() if row.settings == job.settings
                and row.task_settings in ("", self._task_settings)]
        own = {row.task for row in same if (row.sweep, row.budget, row.variant) == name}
        self._table.add([dataclasses.replace(
            row, sweep=name[0], budget=name[1], variant=name[2])
            for row in same if row.task not in own])

    def _rows(self, job: Job) -> list[Row]:
        return [row for row in self._table.rows(self._sweep.name, self._budget.name)
                if (row.variant, row.seed) == (job.variant.name, job.seed)]

    def _missing(self, job: Job) -> list[str]:
        """Returns the tasks of a job that the table lacks, "pretraining" among them."""
        rows = self._rows(job)
        if any(row.settings != job.settings
               or row.task_settings not in ("", self._task_settings) for row in rows):
            raise UserError(
                f"the results table has {self._sweep.name}, {self._budget.name}, variant "
                f"{job.variant.name!r}, seed {job.seed} of other settings or steps: give the "
                "variant another name, or name another --results and --output_dir.")
        return [task for task in (PRETRAINING, *self._sweep.tasks)
                if task not in {row.task for row in rows}]

    def _do(self, job: Job) -> None:
        """Pre-trains, then fine-tunes on every task."""
        if PRETRAINING in self._missing(job):
            seconds = self._call("run_pretraining.py", job.pretraining_flags(
                self._data_dir, self._budget), job, PRETRAINING)
            found = strict_json.read(
                job.directory / "pretrained" / EVALUATION_FILE, dict, most=_MOST_BYTES)
            self._add(job, {name: value for name, value in found.items() if name in measures()},
                      task=PRETRAINING, main="loss", pretraining_seconds=seconds, task_seconds=0.0,
                      task_settings="")
            self._say(f"trained  {job.variant.name}, seed {job.seed}: {job.steps:,} steps in "
                      f"{seconds:,.0f} s")
        pretraining_seconds = next(
            row.pretraining_seconds for row in self._rows(job) if row.task == PRETRAINING)
        for task in self._missing(job):
            target = job.directory / task
            if self._sweep.finetuning:
                digest = hashlib.sha256(self._task_settings.encode()).hexdigest()[:8]
                target = job.directory / f"{task}-{digest}"
            settings = {"training.seed": job.seed} if tasks.JUDGES[task].trained else {}
            seconds = self._call("run_finetuning.py", [
                *tasks.flags_of(task, self._tasks_dir),
                f"--init_checkpoint={job.directory / 'pretrained'}", f"--model_dir={target}",
                *(f"--set={name}={value}"
                  for name, value in (settings | dict(self._sweep.finetuning)).items())], job, task)
            scores = tasks.scores(task, target)
            main, score = next(iter(scores.items()))
            self._add(job, scores, task=task, main=main, task_seconds=seconds,
                      pretraining_seconds=pretraining_seconds, task_settings=self._task_settings)
            self._say(f"scored   {job.variant.name}, seed {job.seed}: {task} {main} "
                      f"{100 * score:.1f} in {seconds:,.0f} s")

    def _add(self, job: Job, scores: dict[str, float | None], *, main: str, **fields) -> None:
        self._table.add([Row(
            sweep=self._sweep.name, budget=self._budget.name, variant=job.variant.name,
            seed=job.seed, steps=job.steps, tokens=job.tokens, flops=job.flops,
            settings=job.settings, metric=metric, score=score, main=metric == main, **fields)
            for metric, score in scores.items()])

    def _call(self, program: str, arguments: Sequence[str], job: Job, task: str) -> float:
        """Runs one of the two programs, its output in a file beside its results; returns its
        seconds.
        """
        job.directory.mkdir(parents=True, exist_ok=True)
        begun, log = time.monotonic(), job.directory / f"{task}.log"
        with self._lock:
            if self._stopped.is_set():
                raise UserError("stopped")
            with open(log, "ab") as out:
                process = subprocess.Popen(
                    [sys.executable, str(ROOT / program), *arguments], stdout=out, stderr=out,
                    stdin=subprocess.DEVNULL, process_group=0)
            self._running.add(process)
        status = process.wait()
        with self._lock:
            self._running.discard(process)
        if status or self._stopped.is_set():
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            reason = lines[-1].removeprefix("error: ") if lines else "no output"
            raise UserError(f"{task} ended with status {status}: {reason} ({log})")
        return time.monotonic() - begun

    def _stop(self) -> None:
        """Ends all processes; pre-training saves its step before it ends."""
        with self._lock:
            self._stopped.set()
            for process in self._running:
                process.terminate()


def room(threads: int) -> int:
    """Returns the number of runs of so many cores that fit side by side without sharing any."""
    return 1 if not threads else max(1, usable_cores() // threads)


def _slots(count: int, threads: int) -> list[frozenset[int]]:
    """Returns the cores of each run; empty sets where a run may use all, as always on macOS."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if not threads or count * threads > len(cores):
        return [frozenset()] * count
    return [frozenset(cores[number * threads:(number + 1) * threads]) for number in range(count)]
