r"""Compares scores and costs of fine-tuning a released encoder with a plain PyTorch loop.

    python -m benchmarks.real_encoder --data_dir=data --encoder=all-MiniLM-L6-v2

Both programs train the same weights on the same rows with equal settings, at the same time, on one
core each. Prints every task's scores, CPU seconds and memory; writes real_encoder.md. The same
command continues with the runs that are not finished. benchmarks/README.md describes it.
"""

import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from absl import flags

from electra_tf.core import atomic_file, command_line
from electra_tf.core.errors import UserError
from electra_tf.core.settings import require_one_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """One task, as both programs train it."""

    name: str
    folder: str  # Of its files, below --data_dir.
    train: str = "train.tsv"
    dev: str = "dev.tsv"
    metric: str
    epochs: int
    learning_rate: float = 1e-4
    max_seq_length: int = 128
    train_examples: int | None = None  # Size of the drawn subset; None takes all examples.
    dev_examples: int | None = None  # The first examples that are scored; None takes all.
    settings: tuple[str, ...] = ()  # Further flags of `run_finetuning.py`.


TASKS = {task.name: task for task in (
    Comparison(name="stsb", folder="glue/STS-B", metric="spearman", epochs=3, train_examples=2874),
    Comparison(name="cola", folder="glue/CoLA", metric="mcc", epochs=3),
    Comparison(name="sst2", folder="glue/SST-2", metric="accuracy", epochs=1, train_examples=6000),
    Comparison(name="chunk", folder="conll2000", train="train.txt", dev="test.txt", metric="f1",
               epochs=1, learning_rate=3e-4, train_examples=4468),
    Comparison(name="mrpc", folder="glue/MRPC", metric="f1", epochs=2),
    Comparison(name="rte", folder="glue/RTE", metric="accuracy", epochs=4),
    Comparison(name="squad", folder="squad", train="train-v1.1.json", dev="dev-v1.1.json",
               metric="f1", epochs=3, learning_rate=2e-4, max_seq_length=384, train_examples=1000,
               dev_examples=300, settings=("--set=task.ends_given_starts=false",)))}

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = {"ours": "electra_tf", "torch": "PyTorch loop"}
Run = Mapping[str, Any]
"""Program, task, seed, metric, score, CPU seconds and peak memory of one run."""


def main() -> None:
    """Runs both programs on all tasks and seeds, and prints and writes the table."""
    values = flags.FLAGS
    output = pathlib.Path(values.output_dir).absolute()
    for name in values.tasks:
        require_one_of(TASKS, "--tasks", name)
    if not os.path.exists(values.peers_python):
        raise UserError(f"--peers_python: there is no {values.peers_python}; `make peers` builds "
                        "it.")
    atomic_file.make_directory(output)
    tasks = [TASKS[name] for name in values.tasks]
    for task in tasks:
        write_subset(task, pathlib.Path(values.data_dir), output / "data")
    # Every finished run is a line of runs.jsonl; those of an earlier call are not repeated.
    log = output / "runs.jsonl"
    runs = list(map(json.loads, log.read_text().splitlines())) if log.exists() else []
    finished = {(run["program"], run["task"], run["seed"]) for run in runs}
    for seed in range(1, values.seeds + 1):
        for task in tasks:
            missing = [name for name in PROGRAMS if (name, task.name, seed) not in finished]
            for run in run_programs(task, seed, missing, output):
                runs.append(run)
                with log.open("a") as file:
                    print(json.dumps(run), file=file)
                print(json.dumps(run), flush=True)
    page = "\n".join(["# Fine-tuning a released encoder", "", *table(runs), ""])
    print(page)
    atomic_file.write_atomically(output / "real_encoder.md", page.encode())


def run_programs(task: Comparison, seed: int, programs: Sequence[str],
                 output: pathlib.Path) -> list[Run]:
    """Runs programs at the same time, on one core each; the cores alternate with the seed."""
    processes = {}
    for program in programs:
        directory = output / f"{program}_{task.name}_{seed}"
        directory.mkdir(parents=True, exist_ok=True)
        words = commands(task, seed, output / "data" / task.folder, directory)[program]
        with (directory / "output.txt").open("w") as log:
            process = subprocess.Popen(words, cwd=ROOT, stdout=log, stderr=log, env=os.environ | {
                "OMP_NUM_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1", "HF_HUB_OFFLINE": "1",
                "TF_NUM_INTRAOP_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2",
                "CUDA_VISIBLE_DEVICES": "-1"})
        if hasattr(os, "sched_setaffinity"):  # macOS binds no process to cores.
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(
                process.pid, {cores[(seed + (program == "torch")) % len(cores)]})
        processes[program] = process.pid, directory
    # The kernel counts the CPU seconds and the memory of a process that ended.
    runs = []
    for program, (pid, directory) in processes.items():
        _, status, usage = os.wait4(pid, 0)
        if status:
            raise UserError(f"{program} failed in {task.name}; {directory / 'output.txt'} has its "
                            "messages.")
        runs.append({
            "program": program, "task": task.name, "seed": seed, "metric": task.metric,
            "cpu_seconds": usage.ru_utime + usage.ru_stime, "peak_gb": usage.ru_maxrss / 1e6,
            "score": ours_score(task, directory / "model") if program == "ours" else score(
                task, **json.loads((directory / "predictions.json").read_text()))})
    return runs


def commands(task: Comparison, seed: int, data: pathlib.Path,
             directory: pathlib.Path) -> dict[str, list[str]]:
    """Returns the command of each program for one run."""
    values = flags.FLAGS
    train, dev, encoder = data / task.train, data / task.dev, os.path.abspath(values.encoder)
    settings = {
        "task": task.name, "seed": seed, "encoder": encoder, "train": str(train), "dev": str(dev),
        "epochs": task.epochs, "learning_rate": task.learning_rate, "precision": values.precision,
        "max_seq_length": task.max_seq_length, "output": str(directory / "predictions.json")}
    # Readers of GLUE get the directory of all its tasks.
    files = [f"--train={train}", f"--dev={dev}"] if task.name == "squad" else [
        f"--data_dir={data.parent if data.parent.name == 'glue' else data}"]
    return {
        "torch": [os.path.abspath(values.peers_python), "-m",
                  "benchmarks.real_encoder.pytorch_loop", json.dumps(settings)],
        "ours": [sys.executable, "run_finetuning.py", f"--task={task.name}", *files,
                 f"--init_checkpoint={encoder}", f"--model_dir={directory / 'model'}", "--restart",
                 f"--seed={seed}", f"--learning_rate={task.learning_rate}",
                 f"--num_train_epochs={task.epochs}", f"--max_seq_length={task.max_seq_length}",
                 f"--precision={values.precision}", "--layerwise_decay=1", "--noswap_pairs",
                 "--set=optimizer.bias_correction=true", *task.settings]}


def write_subset(task: Comparison, data_dir: pathlib.Path, target: pathlib.Path) -> None:
    """Writes a task's examples to `target` in the same layout and order.

    Those to train on are drawn with NumPy's `default_rng(0)`; of dev the first ones are taken.
    """
    for name, count in ((task.train, task.train_examples), (task.dev, task.dev_examples)):
        text = (data_dir / task.folder / name).read_text("utf-8-sig")
        begin, examples, separator, end = split_examples(task.name, text)
        order = (np.random.default_rng(0).permutation(len(examples)) if name == task.train
                 else np.arange(len(examples)))
        (target / task.folder).mkdir(parents=True, exist_ok=True)
        (target / task.folder / name).write_text(begin + separator.join(
            examples[index] for index in np.sort(order[:count])) + end, "utf-8")


def split_examples(name: str, text: str) -> tuple[str, list[str], str, str]:
    """Returns a file's beginning, its examples, their separator and the file's end."""
    if name == "squad":
        paragraphs = [{"context": paragraph["context"], "qas": [question]}
                      for article in json.loads(text)["data"]
                      for paragraph in article["paragraphs"] for question in paragraph["qas"]]
        return ('{"version": "1.1", "data": [{"title": "", "paragraphs": [',
                list(map(json.dumps, paragraphs)), ", ", "]}]}")
    if name == "chunk":
        return "", text.strip("\n").split("\n\n"), "\n\n", "\n\n"
    lines = text.strip("\n").split("\n")
    header = "" if name == "cola" else lines.pop(0) + "\n"  # CoLA's file has none.
    return header, lines, "\n", "\n"


def ours_score(task: Comparison, run: pathlib.Path) -> float:
    """Returns the score on dev, in percent, that run_finetuning.py wrote."""
    (split,) = json.loads((run / "results.json").read_text())["summary"].values()
    return 100.0 * split[task.metric]["mean"]


def score(task: Comparison, gold: Any, predictions: Any) -> float:
    """Returns the task's metric in percent.

    Both arguments are lists of labels, numbers or lists of tags; for SQuAD an answer by question's
    id, and the list of right answers.
    """
    # Imported here, as TensorFlow takes seconds, which --help does not need.
    from electra_tf.tasks.kinds.answers import answer_scores
    from electra_tf.tasks.kinds.classification import label_scores
    from electra_tf.tasks.kinds.tagging import tag_scores

    if task.name == "squad":
        scores = answer_scores(gold, predictions)
    elif task.name == "chunk":
        scores = tag_scores([task.metric], gold, predictions)
    else:  # Only RTE's labels are no numbers.
        scores = label_scores([task.metric], *(
            np.array(values, str if task.name == "rte" else float)
            for values in (gold, predictions)))
    return 100.0 * scores[task.metric]


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
        costs = [" and ".join(f"{statistics.fmean(run[field] for run in part):{form}}"
                              for part in both)
                 for field, form in (("cpu_seconds", ".0f"), ("peak_gb", ".2f"))]
        lines.append(" | ".join([
            f"| {name}, {both[0][0]['metric']}", str(len(both[0])),
            *(f"{mean:.1f} ± {error:.1f}" for mean, error in zip(means, errors, strict=True)),
            f"{means[0] - means[1]:+.1f} ± {(errors[0] ** 2 + errors[1] ** 2) ** 0.5:.1f}",
            *costs]) + " |")
    return lines


def _mean_and_error(scores: Sequence[float]) -> tuple[float, float]:
    """Returns mean and standard error; 0.0 for one score."""
    deviation = statistics.stdev(scores) if len(scores) > 1 else 0.0
    return statistics.fmean(scores), deviation / len(scores) ** 0.5


if __name__ == "__main__":
    flags.DEFINE_string("data_dir", None, "Directory with glue/, conll2000/ and squad/.",
                        required=True)
    flags.DEFINE_string("encoder", None, "Directory of a BERT encoder in Hugging Face's format, "
                        "with tokenizer.json.", required=True)
    flags.DEFINE_list("tasks", list(TASKS), "Tasks, separated by commas.")
    flags.DEFINE_integer("seeds", 3, "Number of seeds, from 1.", lower_bound=1)
    flags.DEFINE_enum("precision", "bfloat16", ["bfloat16", "float32"],
                      "Type of activations and matmuls of both programs.")
    flags.DEFINE_string("output_dir", "benchmarks/results/real_encoder",
                        "Directory for subsets, runs and the table.")
    flags.DEFINE_string("peers_python", ".venv-peers/bin/python",
                        "Python of the environment with PyTorch.")
    command_line.run(main, summary=__doc__, groups={
        "What is measured": ["data_dir", "encoder", "tasks", "seeds", "precision"],
        "How": ["output_dir", "peers_python"]})
