"""Runs a sweep: as many runs side by side as there is room for, and goes on where it was stopped.

Every run is a process of run_pretraining.py and one of run_finetuning.py for each task, each of
which goes on by itself where it was interrupted. What the results table has isn't run again.
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


class JobFailed(Exception):
    """A process of a run ended with an error; the message is one line."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Places:
    """Where things are."""

    data_dir: Path
    tasks_dir: Path


class Runner:
    """Works through the jobs of a sweep."""

    def __init__(self, sweep: Sweep, budget: Budget, table: Table, places: Places,
                 say: Callable[[str], None] = print):
        """Takes what to run, and where results go."""
        self._sweep, self._budget, self._table, self._places = sweep, budget, table, places
        self._say = say
        self._stopped = threading.Event()
        self._running: set[subprocess.Popen] = set()
        self._lock = threading.Lock()

    def run(self, jobs: Sequence[Job], side_by_side: int) -> list[str]:
        """Does what isn't done yet; returns a line for every job that failed.

        Raises:
            UserError: the table has results of a variant under other settings.
        """
        for job in jobs:
            self._take_over(job)
        waiting = [job for job in jobs if self._missing(job)]
        self._say(f"{len(jobs)} runs, {len(jobs) - len(waiting)} of them done; "
                  f"{side_by_side} side by side")
        free = list(_slots(side_by_side, self._budget.threads))
        failures: list[str] = []

        def work(job: Job) -> None:
            with self._lock:
                slot = free.pop()
            try:
                if not self._stopped.is_set():
                    self._pin(slot)
                    self._do(job)
            except (JobFailed, UserError) as error:
                if self._stopped.is_set():
                    return
                failures.append(f"{job.variant.name}, seed {job.seed}: {error}")
                self._say(f"failed   {failures[-1]}")
            finally:
                with self._lock:
                    free.append(slot)

        with concurrent.futures.ThreadPoolExecutor(side_by_side) as pool:
            futures = [pool.submit(work, job) for job in waiting]
            try:
                for future in futures:
                    future.result()
            finally:
                if not all(future.done() for future in futures):
                    self._stop()  # A signal: no job begins any more, and those that run end.
        return failures

    def _take_over(self, job: Job) -> None:
        """Adds what another sweep, or a variant of another name, found with the same run."""
        name = (self._sweep.name, self._budget.name, job.variant.name)
        same = [row for row in self._table.rows() if row.settings == job.settings
                and row.task_settings in ("", self._task_settings)]
        own = {row.task for row in same if (row.sweep, row.budget, row.variant) == name}
        self._table.add([dataclasses.replace(
            row, sweep=name[0], budget=name[1], variant=name[2])
            for row in same if row.task not in own])

    @property
    def _task_settings(self) -> str:
        return json.dumps(dict(self._sweep.finetuning), sort_keys=True)

    def _missing(self, job: Job) -> list[str]:
        """Returns what of a job the table hasn't yet: tasks, and "pretraining"."""
        rows = [row for row in self._table.rows(self._sweep.name, self._budget.name)
                if (row.variant, row.seed) == (job.variant.name, job.seed)]
        if any(row.settings != job.settings
               or row.task_settings not in ("", self._task_settings) for row in rows):
            raise UserError(
                f"the results table has {self._sweep.name}, {self._budget.name}, variant "
                f"{job.variant.name!r}, seed {job.seed} of other settings or steps: give the "
                "variant another name, or name another --results and --output_dir.")
        done = {row.task for row in rows}
        return [task for task in (PRETRAINING, *self._sweep.tasks) if task not in done]

    def _do(self, job: Job) -> None:
        """Pre-trains, then works through the tasks."""
        begun = time.monotonic()
        if PRETRAINING in self._missing(job):
            self._call(["run_pretraining.py", *job.pretraining_flags(
                self._places.data_dir, self._budget)], job, PRETRAINING)
            seconds = time.monotonic() - begun
            self._table.add(self._pretraining_rows(job, seconds))
            self._say(f"trained  {job.variant.name}, seed {job.seed}: {job.steps:,} steps in "
                      f"{seconds:,.0f} s")
        seconds = next(row.pretraining_seconds for row in self._table.rows(
            self._sweep.name, self._budget.name)
            if (row.variant, row.seed, row.task) == (job.variant.name, job.seed, PRETRAINING))
        for task in self._sweep.tasks:
            if task in self._missing(job):
                self._judge(job, task, seconds)

    def _judge(self, job: Job, task: str, pretraining_seconds: float) -> None:
        begun = time.monotonic()
        target = job.directory / task
        if self._sweep.finetuning:
            digest = hashlib.sha256(self._task_settings.encode()).hexdigest()[:8]
            target = job.directory / f"{task}-{digest}"
        settings = {"training.seed": job.seed} if tasks.JUDGES[task].trained else {}
        settings |= dict(self._sweep.finetuning)
        self._call(["run_finetuning.py", *tasks.flags_of(task, self._places.tasks_dir),
                    f"--init_checkpoint={job.directory / 'pretrained'}", f"--model_dir={target}",
                    *(f"--set={name}={value}" for name, value in settings.items())], job, task)
        seconds = time.monotonic() - begun
        scores = tasks.scores(task, target)
        self._table.add([
            self._row(job, task=task, metric=metric, main=not number, score=score,
                      pretraining_seconds=pretraining_seconds, task_seconds=seconds,
                      task_settings=self._task_settings)
            for number, (metric, score) in enumerate(scores.items())])
        metric, score = next(iter(scores.items()))
        self._say(f"scored   {job.variant.name}, seed {job.seed}: {task} {metric} "
                  f"{100 * score:.1f} in {seconds:,.0f} s")

    def _pretraining_rows(self, job: Job, seconds: float) -> list[Row]:
        found = strict_json.read_any(
            job.directory / "pretrained" / EVALUATION_FILE, most=_MOST_BYTES)
        return [self._row(job, task=PRETRAINING, metric=name, main=name == "loss", score=value,
                          pretraining_seconds=seconds, task_seconds=0.0, task_settings="")
                for name, value in found.items() if name in measures()]

    def _row(self, job: Job, **fields) -> Row:
        return Row(sweep=self._sweep.name, budget=self._budget.name, variant=job.variant.name,
                   seed=job.seed, steps=job.steps, tokens=job.tokens, flops=job.flops,
                   settings=job.settings, **fields)

    def _call(self, command: list[str], job: Job, what: str) -> None:
        """Runs one of the two programs; its output goes to a file beside what it makes."""
        job.directory.mkdir(parents=True, exist_ok=True)
        log = job.directory / f"{what}.log"
        with open(log, "ab") as out:
            process = subprocess.Popen(
                [sys.executable, str(ROOT / command[0]), *command[1:]], stdout=out, stderr=out,
                stdin=subprocess.DEVNULL, process_group=0)
        with self._lock:
            self._running.add(process)
        try:
            if self._stopped.is_set():
                process.terminate()
            status = process.wait()
        finally:
            with self._lock:
                self._running.discard(process)
        if status and not self._stopped.is_set():
            raise JobFailed(f"{what} ended with status {status}: {_last_line(log)} ({log})")
        if self._stopped.is_set():
            raise JobFailed("stopped")

    def _stop(self) -> None:
        """Ends all processes; pre-training saves its step before it goes."""
        self._stopped.set()
        with self._lock:
            running = list(self._running)
        for process in running:
            process.terminate()

    def _pin(self, cores: frozenset[int]) -> None:
        """Keeps this thread, and the processes that it starts, on some cores."""
        if cores and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, cores)


def room(threads: int) -> int:
    """Returns how many runs of so many cores stand side by side without sharing any."""
    return 1 if not threads else max(1, len(_cores()) // threads)


def _slots(count: int, threads: int) -> list[frozenset[int]]:
    """Returns the cores of each; none where a run takes all there is."""
    cores = sorted(_cores())
    if not threads or count * threads > len(cores):
        return [frozenset()] * count
    return [frozenset(cores[number * threads:(number + 1) * threads]) for number in range(count)]


def _cores() -> set[int]:
    """Returns those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix("error: ") if lines else "nothing was printed"
