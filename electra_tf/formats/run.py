"""Reads and writes a run's directory: settings.json, vocab.txt and sealed checkpoints."""

import dataclasses
import re
from typing import Any

import tensorflow as tf

from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.manager import CheckpointManager
from electra_tf.checkpoints.weights import read_checkpoint
from electra_tf.config.finetuning import SCRATCH
from electra_tf.config.model import COOCCURRENCE, Tying
from electra_tf.config.objectives import OBJECTIVES
from electra_tf.config.overrides import flatten, override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core import storage, strict_json
from electra_tf.core.storage import Path
from electra_tf.formats.pretrained import BERT_TRAINING_NAMES, GENERATOR_BIAS, Checkpoint, Pooling
from electra_tf.tasks.registry import recipe
from electra_tf.tasks.task import Kind, TaskSpec


def read(model_dir: Path) -> Checkpoint:
    """Returns the newest checkpoint of a run; `UserError` if there is none, or a damaged one."""
    saved = run_directory.read_identity(model_dir)
    model = override(PretrainingConfig(), {
        name: value for name, value in saved.items() if name.startswith("model.")}).model

    # The task, the weights, and settings of the head and predictions; a threshold that was searched
    # is in the results.
    task = TaskSpec.from_dict(saved, model_dir)
    weights, step = read_checkpoint(model_dir)
    if GENERATOR_BIAS in weights and not any(name.startswith("generator/") for name in weights):
        # Masked language modelling trains one encoder, whatever the settings of a generator are.
        model = dataclasses.replace(model, tying=Tying.EVERYTHING)
    settings = {name: value for name, value in saved.items() if name.startswith("task.")
                or (name, value) == ("training.precision", "float32")}  # Others need a device.
    path = model_dir / run_directory.RESULTS_FILE
    if task and path.exists():
        results = strict_json.read(path, Any, max_bytes=run_directory.MAX_RESULT_BYTES)
        if "threshold" in results:  # It was searched on dev.
            name = "no_answer" if task.kind is Kind.QUESTION_ANSWERING else "label"
            settings[f"task.{name}_threshold"] = results["threshold"]

    # The vectors of a model of sentence embeddings.
    pooling = Checkpoint.pooling
    if task and task.kind is Kind.SENTENCE_EMBEDDINGS:
        pooling = Pooling(modes=(settings["task.pooling"],), normalize=True,
                          max_length=settings["task.max_seq_length"])
    return Checkpoint(
        source=f"{model_dir}, step {step:,}", config=model, weights=weights,
        objective=saved.get("objective.name", Checkpoint.objective),
        text=run_directory.text_settings(model_dir), task=task, task_settings=settings,
        pooling=pooling)


def initialization(source: Path) -> dict[str, Any]:
    """Returns the settings of the weights with which an encoder's training began, by name.

    They are those of the run at `source`, or of the run in which its initial weights began. The
    result is empty if the weights came from elsewhere, or from a run that was removed.
    """
    # From run to initial run, until one began with new weights.
    visited: set[Path] = set()
    while source not in visited and (source / run_directory.SETTINGS_FILE).exists():
        visited.add(source)
        saved = run_directory.read_identity(source)
        initial = str(saved.get("initial") or SCRATCH)
        if initial == SCRATCH or initial.startswith(run_directory.FIRST_STAGE):
            names = [name for name in saved if name.startswith("initialization.")]
            known = {name: saved[name] for name in (*names, "model.initializer_range") if names}
            if known.get("initialization.word_vectors") == COOCCURRENCE:
                known["initialization.word_vectors"] = str(
                    source / run_directory.WORD_VECTORS_FILE)
            return known
        source = storage.path(re.sub(r", step [\d,]+$", "", initial))
    return {}


def write(checkpoint: Checkpoint, directory: Path) -> None:
    """Writes a run's directory with a checkpoint of step 0, without an optimizer's state."""
    # Settings of a run: the networks' alone after pre-training, the whole recipe after fine-tuning.
    facts = checkpoint.text.to_dict() | {"initial": checkpoint.source}
    if checkpoint.task is None:
        config = PretrainingConfig(model=checkpoint.config,
                                   objective=OBJECTIVES[checkpoint.objective])
        identity = facts | {name: value for name, value in flatten(config).items()
                            if name.startswith(("model.", "objective."))}
    else:
        # The recipe has dropout rates of its own.
        config = override(recipe(checkpoint.task.name, checkpoint.config), {
            f"model.{name}": getattr(checkpoint.config, name) for name in BERT_TRAINING_NAMES
        } | checkpoint.task_settings)
        identity = run_directory.identity(config, facts | checkpoint.task.to_dict())
    run_directory.open_run_dir(directory, identity)
    checkpoint.text.save(directory / run_directory.VOCABULARY_FILE)
    # Weights by our names, and step 0.
    holder = tf.Module()
    holder.weights = [tf.Variable(value, name=name) for name, value in checkpoint.weights.items()]
    step = tf.Variable(0, dtype=tf.int64, name="step")
    CheckpointManager(tf.train.Checkpoint(weights=holder, step=step),
                      directory / run_directory.CHECKPOINTS, keep=1).save(0)
