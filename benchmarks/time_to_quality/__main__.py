r"""Measures how long a discriminator takes to learn, ours and Hugging Face's.

    make time-to-quality TIME_FLAGS='--data_dir=records'
    python -m benchmarks.time_to_quality --data_dir=records --minutes=short:15,paper:30,hf:30

Each system trains alone on all cores, the same examples in the same order, and is scored on the
same held-out ones. Prints seconds and tokens to each AUC; writes time_to_quality.md, .json, .png.
benchmarks/README.md lists what is equal and what is not.
"""

import dataclasses
import json
import pathlib
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from absl import flags

from benchmarks.harness import command
from benchmarks.harness.turns import Case, Role, System
from benchmarks.pretraining import workload as plain
from benchmarks.pretraining.cases import encoder_sizes
from benchmarks.pretraining.workload import Workload
from benchmarks.time_to_quality import report
from benchmarks.time_to_quality.report import Curve, Point, of_records
from electra_tf.checkpoints.run_directory import METRICS_FILE
from electra_tf.config import setting_flags
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.pretraining_flags import build_config
from electra_tf.data import manifest as manifests
from electra_tf.objectives.electra import ranking_scores
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import usable_cores
from electra_tf.reporting.metrics_log import read_metrics
from electra_tf.text.vocabulary import Vocabulary

PAPER_RATE = 5e-4
"""ELECTRA-Small's, the highest in the paper: the networks here are narrower still."""
_MOST_STEPS = 50_000
"""Steps whose examples are written for the baseline; a longer run starts over with the first."""
_SYSTEMS = {system.name: system for system in (
    *(System(name=name, title=f"electra_tf, --recipe={name}", role=Role.OURS,
             module="benchmarks.time_to_quality.ours") for name in ("short", "paper")),
    System(name="hf", title="Hugging Face in PyTorch, the paper's settings",
           module="benchmarks.time_to_quality.hugging_face", in_peers_environment=True))}


def main() -> None:
    """Runs the systems one after the other; after each, the files hold the results so far.

    Raises:
        UserError: no records, an unknown system, a goal that is no AUC.
    """
    values = flags.FLAGS
    command.require("data_dir")
    minutes, goals = _minutes(values.minutes), [_goal(text) for text in values.goals]
    config("short")
    bench = command.Bench.of_flags([_SYSTEMS[name] for name in minutes])
    curves: list[Curve] = []
    for system in bench.systems:
        with tempfile.TemporaryDirectory() as directory:
            curves.append(train(bench, system, 60 * minutes[system.name], pathlib.Path(directory)))
        bench.save("time_to_quality", "Time to quality", [], report.page(curves, goals),
                   {"curves": [dataclasses.asdict(curve) for curve in curves]})
        report.draw(curves, goals, bench.output / "time_to_quality.png")


def train(bench: command.Bench, system: System, seconds: float, directory: pathlib.Path) -> Curve:
    """Trains one system for about so many seconds.

    Args:
        bench: runs the process.
        system: to train.
        seconds: of training; the schedule has as many steps as fit.
        directory: an empty one, for what the run writes.
    """
    values = flags.FLAGS
    length = manifests.load(storage.path(values.data_dir)).max_seq_length
    per_step = values.train_batch_size * length
    case = {"directory": str(directory), "evaluations": values.evaluations}
    if system.role is Role.OURS:
        case |= {"eval_batches": values.eval_steps, "tokens_per_step": per_step, "run_flags": [
            f"--data_dir={pathlib.Path(values.data_dir).absolute()}",
            f"--model_size={values.model_size}", f"--recipe={system.name}", "--precision=float32",
            *(f"--set={name}={value}" for name, value in changes(system.name).items())]}
    else:
        case |= _peers_case(config("paper"), length, directory)
    # A turn is a whole run, and its evaluations come on top.
    (measured,) = dataclasses.replace(
        bench, systems=[system], timeout=bench.timeout + 3 * seconds).measure(
        Case(name=system.name, fields=case, turns={"train": {"seconds": seconds}}, warm_up=(),
             rounds=1), alone=True)
    curve = Curve(name=system.name, title=system.title, failure=measured.failure,
                  steps=next(iter(measured.values("train", "steps")), 0))
    metrics, points = directory / "run" / METRICS_FILE, directory / "points.jsonl"
    if metrics.exists():
        curve.points = of_records(read_metrics(storage.path(metrics)), per_step)
    elif points.exists():
        curve.points = [_point(json.loads(line), directory, per_step)
                        for line in points.read_text().splitlines()]
    return curve


def changes(recipe: str) -> dict[str, Any]:
    """Returns the settings of a run of ours; the paper's rate and dropout for every width."""
    shared = setting_flags.given_settings(()) | {
        "training.train_batch_size": flags.FLAGS.train_batch_size}
    if recipe == "paper":
        shared |= {"optimizer.learning_rate": PAPER_RATE, "optimizer.warmup_steps": -1,
                   "model.hidden_dropout": plain.DROPOUT, "model.attention_dropout": plain.DROPOUT}
    return shared


def config(recipe: str) -> PretrainingConfig:
    """Returns all settings of a run of ours."""
    return build_config(flags.FLAGS.model_size, recipe, changes(recipe))


def _peers_case(ours: PretrainingConfig, length: int, directory: pathlib.Path) -> dict[str, Any]:
    """Writes the examples of a run of ours, and returns the peer's settings."""
    from benchmarks.time_to_quality.examples import export  # TensorFlow: once flags are right.

    values = flags.FLAGS
    records, batch = pathlib.Path(values.data_dir), values.train_batch_size
    export(records, directory, seed=ours.training.seed, batch=batch, steps=_MOST_STEPS,
           window=ours.data.shuffle_window, eval_batches=values.eval_steps,
           eval_batch=ours.runtime.eval_batch_size)
    vocabulary = Vocabulary.load(storage.path(records) / manifests.VOCABULARY_NAME)
    workload = Workload(
        case="time to quality", batch=batch, length=length, threads=usable_cores(),
        predictions=ours.masking.max_predictions(length), vocab_size=vocabulary.size,
        discriminator=encoder_sizes(ours.model.discriminator),
        generator=encoder_sizes(ours.model.generator), mask_id=vocabulary.mask_id,
        special_ids=(vocabulary.pad_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id))
    return {"workload": dataclasses.asdict(workload), "learning_rate": PAPER_RATE,
            "seed": ours.training.seed}


def _point(line: Mapping[str, Any], directory: pathlib.Path, tokens_per_step: int) -> Point:
    """Scores the peer's logits with the functions that score ours."""
    with np.load(directory / f"scores-{line['step']}.npz") as file:
        scores = {}
        for kind in ("own", "unigram", "bigram"):
            scores |= ranking_scores(file[f"{kind}_replaced"], file[f"{kind}_logits"], kind)
    return Point(
        step=line["step"], seconds=line["seconds"], tokens=line["step"] * tokens_per_step,
        auc=scores["own_auc"], recall=scores["own_recall"], unigram_auc=scores["unigram_auc"],
        bigram_auc=scores["bigram_auc"], generator_loss=line["generator_loss"])


def _minutes(parts: list[str]) -> dict[str, float]:
    minutes = {}
    for part in parts:
        name, _, amount = part.partition(":")
        minutes[name] = _float(amount)
        if name not in _SYSTEMS or not 0 < minutes[name] < float("inf"):
            raise UserError(f"--minutes takes NAME:MINUTES, names {', '.join(_SYSTEMS)}. "
                            f"Received: {part!r}")
    return minutes


def _goal(text: str) -> float:
    if not 0.5 < _float(text) < 1:
        raise UserError(f"--goals takes AUCs between 0.5 and 1. Received: {text!r}")
    return float(text)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def define() -> None:
    """Registers the flags."""
    flags.DEFINE_string("data_dir", None, "Directory of records that data_prep built.")
    flags.DEFINE_list(
        "minutes", ["short:15", "paper:30", "hf:30"], f"Systems ({', '.join(_SYSTEMS)}) in the "
        "order of training, and for how long each: its schedule has as many steps as fit.")
    flags.DEFINE_string("model_size", "tiny", "As run_pretraining.py's.")
    flags.DEFINE_integer("train_batch_size", 16, "Examples per step.", lower_bound=1)
    flags.DEFINE_integer("evaluations", 40, "Of every run.", lower_bound=1)
    flags.DEFINE_integer("eval_steps", 20, "Held-out batches per evaluation.", lower_bound=1)
    flags.DEFINE_list("goals", ["0.60", "0.65", "0.70", "0.75"], "AUCs to reach.")
    command.define_flags()
    setting_flags.define((), {})


if __name__ == "__main__":
    define()
    command.run(main, summary=__doc__, how=["evaluations", "eval_steps"],
                what=["data_dir", "minutes", "model_size", "train_batch_size", "goals"],
                more={"Any other setting of the networks": setting_flags.ANY_SETTING})
