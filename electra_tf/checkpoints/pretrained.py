"""A trained model apart from any format: weights, their shape, and how it reads text."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.run_directory import VOCABULARY_FILE, read_identity
from electra_tf.checkpoints.weights import ENCODER, Weights, read_step, read_weights
from electra_tf.config.model import ModelConfig
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.text.normalization import Normalization
from electra_tf.text.tokenization import VOCABULARY_FACT, TextSettings
from electra_tf.text.vocabulary import Vocabulary

HEAD_SETTINGS = ("task.hidden_layer", "task.ends_given_starts", "task.answerability")


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnconvertedHead:
    """An output layer in Hugging Face's form; `export/hugging_face_heads.py` converts it."""

    config: Any
    """`hugging_face.files.Config`, which names the layer's class and labels."""
    weights: Weights
    """By their names."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pretrained:
    """A pre-trained encoder and the other parts of its checkpoint."""

    source: str
    """Human-readable origin."""
    model: ModelConfig
    text: TextSettings
    weights: Weights
    """By full name."""
    objective: str = "electra"
    """Name of the objective of pre-training; converted checkpoints are ELECTRA's."""
    task: Mapping[str, Any] | None = None
    """Facts of the task that it was fine-tuned for, as settings.json holds them; else None."""
    head_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of fine-tuning, by name, that decide the form of the head."""
    unconverted_head: UnconvertedHead | None = None
    """Head of a fine-tuned Hugging Face model, whose `weights` are the encoder's alone."""

    @property
    def encoder_weights(self) -> Weights:
        """The encoder's alone."""
        return {name: value for name, value in self.weights.items() if name.startswith(ENCODER)}


def read_run(model_dir: Path) -> Pretrained:
    """Returns the newest checkpoint of a run, of pre-training or of fine-tuning.

    Raises:
        UserError: no run or no checkpoint is there, or a file of it is damaged.
    """
    saved = read_identity(model_dir)
    found = Pretrained(
        source=f"{model_dir}, step {read_step(model_dir):,}", model=model_of(saved),
        objective=saved.get("objective.name", Pretrained.objective),
        text=text_settings(model_dir), weights=read_weights(model_dir), task=task_facts(saved),
        head_settings={name: saved[name] for name in HEAD_SETTINGS if name in saved})
    if not found.encoder_weights:
        raise UserError(f"the checkpoint in {model_dir} holds no {ENCODER}... weights.")
    return found


def task_facts(saved: run_directory.Identity) -> dict[str, Any] | None:
    """Returns the facts of the task that a run was fine-tuned for; None after pre-training."""
    return {name: value for name, value in saved.items()
            if name.startswith(run_directory.TASK)} or None


def model_of(saved: run_directory.Identity) -> ModelConfig:
    """Returns the shape of a run's networks."""
    return override(PretrainingConfig(), {
        name: value for name, value in saved.items() if name.startswith("model.")}).model


def text_settings(model_dir: Path) -> TextSettings:
    """Returns how the run in a directory reads text.

    Raises:
        UserError: its vocabulary is missing, or isn't the one that it was trained with.
    """
    saved = read_identity(model_dir)
    vocabulary = Vocabulary.load(model_dir / VOCABULARY_FILE)
    digest = saved.get(VOCABULARY_FACT)
    if vocabulary.sha256 != digest:
        raise UserError(f"{vocabulary.source} isn't the vocabulary that the run was trained with "
                        f"(SHA-256 {vocabulary.sha256[:12]}..., not {str(digest)[:12]}...): its "
                        "tokens would get other ids. Restore the file.")
    return TextSettings(vocabulary=vocabulary, normalization=Normalization.of_facts(saved))
