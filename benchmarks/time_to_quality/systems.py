"""Runs ours and the peer, one at a time, and returns what they learned when."""

import dataclasses
import json
import pathlib
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.harness.process import reason_of_death
from benchmarks.harness.systems import ROOT, environment
from benchmarks.pretraining import workload as plain
from benchmarks.pretraining.cases import encoder_sizes
from benchmarks.pretraining.workload import Workload
from benchmarks.time_to_quality import arrays
from benchmarks.time_to_quality.curve import Curve, Point, of_records
from electra_tf.apps.planning.throughput import SCRIPT, tokens_per_second
from electra_tf.checkpoints.run_directory import METRICS_FILE
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.pretraining_flags import build_config
from electra_tf.data import manifest as manifests
from electra_tf.objectives.detection_scores import ranking_scores
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.reporting.metrics_log import read_metrics
from electra_tf.text.vocabulary import Vocabulary

PAPER_RATE = 5e-4
"""ELECTRA-Small's, the highest in the paper: the networks here are narrower still."""
_MOST_STEPS = 50_000
"""Whose examples are handed to the peer; a longer run begins again with the first."""
TITLES = {"short": "electra_tf, --recipe=short", "paper": "electra_tf, --recipe=paper",
          "hf": "Hugging Face in PyTorch, the paper's settings"}
NAMES = tuple(TITLES)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Race:
    """What is equal for all."""

    data_dir: pathlib.Path
    model_size: str
    settings: Mapping[str, Any]
    """Changes to the size."""
    batch: int
    evaluations: int
    """Of every run, evenly spread."""
    eval_batches: int
    threads: int
    peers_python: pathlib.Path

    def changes(self, recipe: str) -> dict[str, Any]:
        """Returns the settings of a run of ours; the paper's rate and dropout for every width."""
        shared = dict(self.settings) | {"training.train_batch_size": self.batch}
        if recipe == "paper":
            shared |= {"optimizer.learning_rate": PAPER_RATE, "optimizer.warmup_steps": -1,
                       "model.hidden_dropout": plain.DROPOUT,
                       "model.attention_dropout": plain.DROPOUT}
        return shared

    def config(self, recipe: str) -> PretrainingConfig:
        """Returns all settings of a run of ours."""
        return build_config(self.model_size, recipe, self.changes(recipe))


def run(name: str, race: Race, seconds: float, directory: pathlib.Path) -> Curve:
    """Trains one system for about so many seconds.

    Args:
        name: one of `NAMES`.
        race: what is equal for all.
        seconds: of training; the schedule has as many steps as fit.
        directory: an empty one, for what the run writes.
    """
    return (_peer if name == "hf" else _ours)(name, race, seconds, directory)


def _ours(name: str, race: Race, seconds: float, directory: pathlib.Path) -> Curve:
    per_step = race.batch * manifests.load(storage.path(race.data_dir)).max_seq_length
    flags = [
        f"--data_dir={race.data_dir.absolute()}", f"--model_size={race.model_size}",
        f"--recipe={name}", "--precision=float32",
        *(f"--set={setting}={value}" for setting, value in race.changes(name).items())]
    curve = Curve(name=name, title=TITLES[name], steps=0)
    try:
        curve.steps = max(
            race.evaluations, round(seconds * tokens_per_second(flags) / per_step))
    except UserError as error:
        curve.failure = str(error)
        return curve
    every = curve.steps // race.evaluations
    ended = subprocess.run(
        [sys.executable, str(SCRIPT), *flags, f"--model_dir={directory / 'run'}",
         f"--num_train_steps={curve.steps}", f"--eval_every_steps={every}",
         f"--log_every_steps={every}", f"--eval_steps={race.eval_batches}",
         "--sample_every_steps=0", f"--save_checkpoints_steps={curve.steps}"],
        env=environment(race.threads), capture_output=True, text=True, errors="replace")
    if ended.returncode:
        curve.failure = reason_of_death(ended.returncode, ended.stderr)
    metrics = storage.path(directory) / "run" / METRICS_FILE
    curve.points = of_records(read_metrics(metrics), per_step) if metrics.exists() else []
    return curve


def _peer(name: str, race: Race, seconds: float, directory: pathlib.Path) -> Curve:
    from benchmarks.time_to_quality.examples import export  # TensorFlow: once flags are right.

    config = race.config("paper")
    length = manifests.load(storage.path(race.data_dir)).max_seq_length
    export(race.data_dir, directory, seed=config.training.seed, batch=race.batch,
           window=config.data.shuffle_window, steps=_MOST_STEPS, eval_batches=race.eval_batches,
           eval_batch=config.runtime.eval_batch_size)
    job = directory / "job.json"
    job.write_text(json.dumps({
        "workload": dataclasses.asdict(_workload(race, config, length)), "seconds": seconds,
        "evaluations": race.evaluations, "learning_rate": PAPER_RATE,
        "seed": config.training.seed}))
    curve = Curve(name=name, title=TITLES[name], steps=0)
    errors = directory / "errors"
    with errors.open("w") as log, subprocess.Popen(
            [str(race.peers_python.absolute()), "-m", "benchmarks.time_to_quality.hugging_face",
             str(job)], cwd=ROOT, env=environment(race.threads), text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=log) as process:
        for line in filter(lambda line: line.startswith("{"), process.stdout):
            reply = json.loads(line)
            if "steps" in reply:
                curve.steps = reply["steps"]
            else:
                curve.points.append(_point(reply, race.batch * length))
    if process.returncode:
        curve.failure = reason_of_death(process.returncode, errors.read_text(errors="replace"))
    return curve


def _workload(race: Race, config: PretrainingConfig, length: int) -> Workload:
    vocabulary = Vocabulary.load(storage.path(race.data_dir) / manifests.VOCABULARY_NAME)
    return Workload(
        case="time to quality", batch=race.batch, length=length, threads=race.threads,
        predictions=config.masking.max_predictions(length), vocab_size=vocabulary.size,
        discriminator=encoder_sizes(config.model.discriminator),
        generator=encoder_sizes(config.model.generator), mask_id=vocabulary.mask_id,
        special_ids=(vocabulary.pad_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id))


def _point(line: Mapping[str, Any], tokens_per_step: int) -> Point:
    """The same functions score the peer's logits as score ours."""
    with np.load(line["scores"]) as file:
        scores = {}
        for kind in (arrays.OWN, "unigram", "bigram"):
            scores |= ranking_scores(file[f"{kind}_replaced"], file[f"{kind}_logits"], kind)
    return Point(
        step=line["step"], seconds=line["seconds"], tokens=line["step"] * tokens_per_step,
        auc=scores[f"{arrays.OWN}_auc"], recall=scores[f"{arrays.OWN}_recall"],
        unigram_auc=scores["unigram_auc"], bigram_auc=scores["bigram_auc"],
        generator_loss=line["generator_loss"])
