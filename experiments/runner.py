"""Plans and runs a sweep: as many runs concurrently as the cores allow.

Every run is a process of run_pretraining.py and one of run_finetuning.py for each task. An
interrupted process resumes where it stopped. Runs with a row in the results table are not repeated.
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
from collections.abc import Mapping, Sequence
from pathlib import Path

from electra_tf.apps.tools.score_text import BLIMP_RESULTS
from electra_tf.checkpoints.run_directory import EVALUATION_FILE, MAX_RESULT_BYTES, RESULTS_FILE
from electra_tf.config.objectives import measures, objective_class
from electra_tf.config.overrides import flatten, override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.data.manifest import Manifest
from electra_tf.modeling.flops import matmul_flops_per_token
from electra_tf.objectives.pretraining import ObjectiveContext
from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import usable_cores
from experiments.results import PRETRAINING, ResultsTable, ScoreRow
from experiments.sweep import TASK_FOLDERS, Budget, Sweep, Variant

ROOT = Path(__file__).parents[1]
_MAIN_METRIC = {"stsb": "spearman",  # As in the paper's tables.
                **dict.fromkeys(("searchqa", "triviaqa", "newsqa", "naturalqs"), "f1")}
"""Task -> metric that compares runs, instead of the first metric of run_finetuning.py."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """A pre-training run."""

    variant: Variant
    seed: int
    config: PretrainingConfig
    """With the records' vocabulary and length, and the number of steps."""
    flops: float
    """FLOPs of all steps, in matrix multiplications."""
    records: str
    """Fingerprint of its records."""
    home: Path
    """Directory of all runs."""

    @property
    def name(self) -> str:
        """Name in messages."""
        return f"{self.variant.name}, seed {self.seed}"

    @property
    def steps(self) -> int:
        """Training steps."""
        return self.config.training.num_train_steps

    @property
    def settings(self) -> str:
        """Non-default settings that decide the result, and the records, as JSON."""
        defaults = flatten(override(PretrainingConfig(), {
            "objective.name": self.config.objective.name}))
        own = {name: value for name, value in flatten(self.config).items()
               if not name.startswith("runtime.") and value != defaults[name]}
        own |= {"objective.name": self.config.objective.name, "records": self.records}
        return json.dumps(own, sort_keys=True)

    @property
    def directory(self) -> Path:
        """Directory of its files, shared by sweeps with the same run."""
        digest = hashlib.sha256(self.settings.encode()).hexdigest()[:16]
        return self.home / f"{self.config.objective.name}-seed{self.seed}-{digest}"

    def pretraining_flags(self, data_dir: Path, budget: Budget) -> list[str]:
        """Returns the flags of run_pretraining.py."""
        every = -(-self.steps // 8)  # Eight points of held-out curves.
        settings = budget.settings | dict(self.variant.settings) | {
            "training.seed": self.seed, "training.num_train_steps": self.steps,
            "runtime.eval_every_steps": every, "runtime.eval_steps": 16,
            "runtime.sample_every_steps": 0, "runtime.save_checkpoints_steps": every}
        return [f"--data_dir={data_dir}", f"--model_dir={self.directory / 'pretrained'}",
                f"--model_size={budget.model_size}",
                f"--recipe={self.variant.recipe or budget.recipe}",
                *(f"--set={name}={value}" for name, value in settings.items())]


def plan(sweep: Sweep, budget: Budget, manifest: Manifest, home: Path) -> list[Job]:
    """Returns the runs of a sweep, seed by seed, each with all variants."""
    record_settings = {"model.vocab_size": manifest.vocabulary.size,
                       "data.max_seq_length": manifest.max_seq_length}
    reference = override(Variant(name="", settings={}).config(budget), record_settings)
    total_flops = step_flops(reference) * budget.reference_steps
    jobs = []
    for seed in range(1, budget.seeds + 1):
        for variant in sweep.variants:
            config = override(variant.config(budget), record_settings)
            flops = step_flops(config)
            steps = max(1, round(total_flops * variant.share / flops))
            jobs.append(Job(
                variant=variant, seed=seed, flops=steps * flops, records=manifest.fingerprint,
                home=home, config=override(
                    config, {"training.num_train_steps": steps, "training.seed": seed})))
    return jobs


def step_flops(config: PretrainingConfig) -> float:
    """Returns the FLOPs of a training step's matrix multiplications, forward and backward."""
    length = config.data.max_seq_length
    objective = objective_class(config.objective.name)(
        config, ObjectiveContext.placeholder(config.model.vocab_size))
    return config.training.train_batch_size * length * matmul_flops_per_token(
        objective.networks(), length, config.masking.max_predictions(length))


class SweepRunner:
    """The execution of a sweep's jobs."""

    def __init__(self, sweep: Sweep, budget: Budget, table: ResultsTable, *, data_dir: Path,
                 tasks_dir: Path):
        self._sweep, self._budget, self._table = sweep, budget, table
        self._data_dir, self._tasks_dir = data_dir, tasks_dir
        self._task_settings = json.dumps(dict(sweep.finetuning), sort_keys=True)
        self._stopped = threading.Event()
        self._running: set[subprocess.Popen] = set()
        self._lock = threading.Lock()

    def run(self, jobs: Sequence[Job]) -> list[str]:
        """Runs the jobs that the table lacks; returns a line for every job that failed."""
        remaining = [job for job in jobs if self._missing_tasks(job)]
        # The cores of each run that fits beside the others; an empty set stands for all.
        threads = self._budget.threads
        if not threads:
            core_sets = [frozenset()]
        elif not hasattr(os, "sched_getaffinity"):  # macOS binds no process to cores.
            core_sets = [frozenset()] * max(1, usable_cores() // threads)
        else:
            cores = sorted(os.sched_getaffinity(0))
            core_sets = [frozenset(cores[first:first + threads]) for first in range(
                0, len(cores) - threads + 1, threads)] or [frozenset()]
        print(f"{len(jobs)} runs, {len(jobs) - len(remaining)} of them done; "
              f"{len(core_sets)} side by side", flush=True)
        failures: list[str] = []

        def work(job: Job) -> None:
            cores = core_sets.pop()  # The pool has as many threads as there are sets.
            try:
                if cores:
                    os.sched_setaffinity(0, cores)  # Of this thread and the processes it starts.
                self._run_job(job)
            except UserError as error:
                if not self._stopped.is_set():
                    failures.append(f"{job.name}: {error}")
                    print(f"failed   {failures[-1]}", flush=True)
            finally:
                core_sets.append(cores)

        with concurrent.futures.ThreadPoolExecutor(len(core_sets)) as pool:
            futures = [pool.submit(work, job) for job in remaining]
            try:
                for future in futures:
                    future.result()
            finally:
                if not all(future.done() for future in futures):  # A signal came.
                    with self._lock:
                        self._stopped.set()  # No job begins.
                        for process in self._running:
                            process.terminate()  # Pre-training saves its step before it ends.
        return failures

    def _missing_tasks(self, job: Job) -> list[str]:
        """Returns the tasks of a job that the table lacks, "pretraining" among them."""
        rows = [row for row in self._table.rows(self._sweep.name, self._budget.name)
                if (row.variant, row.seed) == (job.variant.name, job.seed)]
        if any(row.settings != job.settings
               or row.task_settings not in ("", self._task_settings) for row in rows):
            raise UserError(
                f"the results table has {self._sweep.name}, {self._budget.name}, variant "
                f"{job.variant.name!r}, seed {job.seed} of other settings or steps: give the "
                "variant another name, or name another --results and --output_dir.")
        return [task for task in (PRETRAINING, *self._sweep.tasks)
                if task not in {row.task for row in rows}]

    def _run_job(self, job: Job) -> None:
        """Pre-trains, then fine-tunes on every task."""
        encoder, finetuning = job.directory / "pretrained", dict(self._sweep.finetuning)
        for task in self._missing_tasks(job):
            if task == PRETRAINING:
                seconds = self._call([str(ROOT / "run_pretraining.py"), *job.pretraining_flags(
                    self._data_dir, self._budget)], job, task)
                measured = strict_json.read(
                    encoder / EVALUATION_FILE, dict, max_bytes=MAX_RESULT_BYTES)
                self._add(job, {name: value for name, value in measured.items()
                                if name in measures()}, task, main="loss")
                print(f"trained  {job.name}: {job.steps:,} steps in {seconds:,.0f} s", flush=True)
                continue
            digest = hashlib.sha256(self._task_settings.encode()).hexdigest()[:8]
            target = job.directory / (f"{task}-{digest}" if finetuning else task)
            data = self._tasks_dir / TASK_FOLDERS[task]
            if task == "blimp":  # BLiMP scores encoders without training.
                command = ["-m", "electra_tf.apps.tools.score_text", f"--blimp={data}",
                           f"--model_dir={encoder}", f"--output_dir={target}"]
            else:
                settings = {"training.seed": job.seed} | finetuning
                command = [
                    str(ROOT / "run_finetuning.py"), f"--task={task}", f"--data_dir={data}",
                    f"--init_checkpoint={encoder}", f"--model_dir={target}",
                    *(f"--set={name}={value}" for name, value in settings.items())]
            seconds = self._call(command, job, task)
            if task == "blimp":
                scores = strict_json.read(
                    target / BLIMP_RESULTS, dict, max_bytes=MAX_RESULT_BYTES)["mean"]
            else:
                content = strict_json.read(
                    target / RESULTS_FILE, dict, max_bytes=MAX_RESULT_BYTES)
                summary, metrics = next(iter(content["summary"].values())), content["metrics"]
                names = dict.fromkeys([_MAIN_METRIC.get(task, metrics[0]), *metrics])
                scores = {name: summary[name]["mean"] for name in names if name in summary}
            main = next(iter(scores))
            self._add(job, scores, task, main, self._task_settings)
            print(f"scored   {job.name}: {task} {main} {100 * scores[main]:.1f} in "
                  f"{seconds:,.0f} s", flush=True)

    def _add(self, job: Job, scores: Mapping[str, float | None], task: str, main: str,
             task_settings: str = "") -> None:
        tokens = job.steps * job.config.training.train_batch_size * job.config.data.max_seq_length
        self._table.add([ScoreRow(
            sweep=self._sweep.name, budget=self._budget.name, variant=job.variant.name,
            seed=job.seed, steps=job.steps, tokens=tokens, flops=job.flops,
            settings=job.settings, metric=metric, score=score, main=metric == main, task=task,
            task_settings=task_settings) for metric, score in scores.items()])

    def _call(self, command: Sequence[str], job: Job, task: str) -> float:
        """Runs a program, logs its output beside its results, and returns its seconds."""
        job.directory.mkdir(parents=True, exist_ok=True)
        begun, log = time.monotonic(), job.directory / f"{task}.log"
        with self._lock:
            if self._stopped.is_set():
                raise UserError("stopped")
            with open(log, "ab") as out:
                process = subprocess.Popen(
                    [sys.executable, *command], stdout=out, stderr=out,
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
