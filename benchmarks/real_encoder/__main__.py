r"""Compares scores and costs of fine-tuning a released encoder with a plain PyTorch loop.

    python -m benchmarks.real_encoder --data_dir=data --encoder=all-MiniLM-L6-v2

Both programs train the same weights on the same rows with equal settings, at the same time, on one
core each. Prints every task's scores, CPU seconds and memory; writes real_encoder.md and .json.
The same command continues with the runs that are not finished. benchmarks/README.md describes it.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags

from benchmarks.harness.worker import ROOT
from benchmarks.real_encoder.tasks import (
    TASKS,
    Comparison,
    define_inputs,
    score,
    write_subset,
)
from electra_tf.platform import atomic_file, command_line
from electra_tf.platform.errors import UserError
from electra_tf.platform.settings import require_one_of
from electra_tf.tasks import glue

PROGRAMS = {"ours": "electra_tf", "torch": "PyTorch loop"}
_RUNS = "runs.jsonl"
Run = Mapping[str, Any]
"""Program, task, seed, exit status, CPU seconds, peak memory and score of one run."""


def main() -> None:
    """Runs both programs on all tasks and seeds, and prints and writes the table."""
    values = flags.FLAGS
    output, python = pathlib.Path(values.output_dir).absolute(), pathlib.Path(values.peers_python)
    for name in values.tasks:
        require_one_of(TASKS, "--tasks", name)
    if not python.exists():
        raise UserError(f"--peers_python: there is no {python}; `make peers` builds it.")
    atomic_file.make_directory(output)
    tasks = [TASKS[name] for name in values.tasks]
    for task in tasks:
        write_subset(task, pathlib.Path(values.data_dir), output / "data")
    finished = read_runs(output)
    for seed in range(1, values.seeds + 1):
        for task in tasks:
            missing = [program for program in PROGRAMS
                       if (program, task.name, seed) not in finished]
            for run in run_programs(task, seed, missing, output):
                finished[run["program"], task.name, seed] = run
                with (output / _RUNS).open("a") as file:
                    print(json.dumps(run), file=file)
                print(json.dumps(run), flush=True)
    page = "\n".join(["# Fine-tuning a released encoder", "", *table(list(finished.values())), ""])
    print(page)
    atomic_file.write_atomically(output / "real_encoder.md", page.encode())


def read_runs(output: pathlib.Path) -> dict[tuple[str, str, int], Run]:
    """Returns the finished runs by program, task and seed."""
    lines = (output / _RUNS).read_text().splitlines() if (output / _RUNS).exists() else []
    return {(run["program"], run["task"], run["seed"]): run for run in map(json.loads, lines)}


def run_programs(task: Comparison, seed: int, programs: Sequence[str],
                 output: pathlib.Path) -> list[Run]:
    """Runs programs at the same time, on one core each; the cores alternate with the seed."""
    processes = {}
    for program in programs:
        directory = output / f"{program}_{task.name}_{seed}"
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / "output.txt").open("w") as log:
            process = subprocess.Popen(
                command(program, task, seed, output / "data", directory), cwd=ROOT, stdout=log,
                stderr=log, env=os.environ | {
                    "OMP_NUM_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1",
                    "TF_NUM_INTRAOP_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2",
                    "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "-1"})
        if hasattr(os, "sched_setaffinity"):  # macOS binds no process to cores.
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(
                process.pid, {cores[(seed + (program == "torch")) % len(cores)]})
        processes[program] = process.pid, directory
    runs = []
    for program, (pid, directory) in processes.items():
        _, status, usage = os.wait4(pid, 0)
        if status:
            raise UserError(f"{program} failed in {task.name}; {directory / 'output.txt'} has its "
                            "messages.")
        runs.append({
            "program": program, "task": task.name, "seed": seed, "metric": task.metric,
            "cpu_seconds": usage.ru_utime + usage.ru_stime, "peak_gb": usage.ru_maxrss / 1e6,
            "score": score(task, output / "data" / task.dev, predictions(directory, task, output))})
    return runs


def command(program: str, task: Comparison, seed: int, data: pathlib.Path,
            directory: pathlib.Path) -> list[str]:
    """Returns the command of one run."""
    values = flags.FLAGS
    encoder, shared = pathlib.Path(values.encoder).absolute(), [
        f"--task={task.name}", f"--learning_rate={task.learning_rate}", f"--seed={seed}",
        f"--max_seq_length={task.max_seq_length}", f"--precision={values.precision}"]
    train, dev = f"--train={data / task.train}", f"--dev={data / task.dev}"
    if program == "torch":
        return [str(pathlib.Path(values.peers_python).absolute()), "-m",
                "benchmarks.real_encoder.pytorch_loop", *shared, train, dev,
                f"--encoder={encoder}", f"--num_train_epochs={task.epochs}",
                f"--output={directory / 'predictions.json'}"]
    files = [train, dev] if task.name == "squad" else [
        f"--data_dir={data / task.train.split('/', maxsplit=1)[0]}"]
    return [sys.executable, "run_finetuning.py", *shared, *files, f"--init_checkpoint={encoder}",
            f"--num_train_epochs={task.epochs}", f"--model_dir={directory / 'model'}", "--restart",
            "--layerwise_decay=1", "--noswap_pairs", "--set=optimizer.bias_correction=true",
            *task.settings]


def predictions(directory: pathlib.Path, task: Comparison, output: pathlib.Path) -> Any:
    """Returns a finished run's predictions on dev, as `score` takes them."""
    path = directory / "predictions.json"
    if path.exists():
        return json.loads(path.read_text())["predictions"]
    (path,) = (directory / "model" / "predictions").glob("*.jsonl")
    records = list(map(json.loads, path.read_text().splitlines()))
    if task.name == "squad":
        return {record["key"]: record["prediction"] for record in records}
    spec = glue.TASKS[task.name].spec if task.name in glue.TASKS else None
    labels = dict(zip(spec.label_words, spec.labels, strict=True)) if spec else {}
    return [labels.get(record["prediction"], record["prediction"]) if labels
            else record["prediction"] for record in records]


def table(runs: Sequence[Run]) -> list[str]:
    """Returns a row per task: scores with standard errors, CPU seconds and peak memory.

    "difference" is ours minus PyTorch's, with the root of the sum of both squared errors.
    """
    lines = ["| task, metric | runs | " + " | ".join(PROGRAMS.values()) + " | difference | "
             "CPU s | peak GB |", "|---|---|---|---|---|---|---|"]
    for name in dict.fromkeys(run["task"] for run in runs):
        both = [[run for run in runs if (run["task"], run["program"]) == (name, program)]
                for program in PROGRAMS]
        means, errors = zip(*(_mean_and_error([run["score"] for run in part]) for part in both),
                            strict=True)
        error = statistics.NormalDist(0, errors[0]) + statistics.NormalDist(0, errors[1])
        costs = [" and ".join(f"{statistics.fmean(run[field] for run in part):{form}}"
                              for part in both)
                 for field, form in (("cpu_seconds", ".0f"), ("peak_gb", ".2f"))]
        lines.append(" | ".join([
            f"| {name}, {both[0][0]['metric']}", str(len(both[0])),
            *(f"{mean:.1f} ± {part:.1f}" for mean, part in zip(means, errors, strict=True)),
            f"{means[0] - means[1]:+.1f} ± {error.stdev:.1f}", *costs]) + " |")
    return lines


def _mean_and_error(scores: Sequence[float]) -> tuple[float, float]:
    """Returns mean and standard error; 0.0 for one score."""
    deviation = statistics.stdev(scores) if len(scores) > 1 else 0.0
    return statistics.fmean(scores), deviation / len(scores) ** 0.5


if __name__ == "__main__":
    flags.DEFINE_list("tasks", list(TASKS), "Tasks, separated by commas.")
    flags.DEFINE_integer("seeds", 3, "Number of seeds, from 1.", lower_bound=1)
    flags.DEFINE_enum("precision", "bfloat16", ["bfloat16", "float32"],
                      "Type of activations and matmuls of both programs.")
    flags.DEFINE_string("output_dir", "benchmarks/results/real_encoder",
                        "Directory for subsets, runs and the table.")
    flags.DEFINE_string("peers_python", ".venv-peers/bin/python",
                        "Python of the environment with PyTorch.")
    command_line.run(main, summary=__doc__, groups={
        "What is measured": [*define_inputs(), "tasks", "seeds", "precision"],
        "How": ["output_dir", "peers_python"]})
