"""A trained model apart from any format: weights, their shape, and how it reads text."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.run_directory import VOCABULARY_FILE, read_identity
from electra_tf.checkpoints.weights import ENCODER, Weights, read_step, read_weights, write_weights
from electra_tf.config.model import ModelConfig
from electra_tf.config.objectives import OBJECTIVES
from electra_tf.config.overrides import flatten, override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.normalization import Normalization
from electra_tf.text.tokenization import VOCABULARY_FACT, TextSettings
from electra_tf.text.vocabulary import Vocabulary

HEAD_SETTINGS = ("task.hidden_layer", "task.feature_based", "task.ends_given_starts",
                 "task.answerability")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pretrained:
    """A pre-trained encoder, and whatever else was trained with it."""

    source: str
    """Where it comes from, for people."""
    model: ModelConfig
    text: TextSettings
    weights: Weights
    """By full name."""
    objective: str = "electra"
    """Name of the objective of pre-training; converted checkpoints are ELECTRA's."""
    task: TaskSpec | None = None
    """What it was fine-tuned for; None if it wasn't."""
    head_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of fine-tuning, by name, that decide the form of the head."""

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
        text=text_settings(model_dir), weights=read_weights(model_dir), task=task_of(saved),
        head_settings={name: saved[name] for name in HEAD_SETTINGS if name in saved})
    if not found.encoder_weights:
        raise UserError(f"the checkpoint in {model_dir} holds no {ENCODER}... weights.")
    return found


def write_run(networks: Pretrained, directory: Path) -> None:
    """Writes a directory that `read_run` reads, with a checkpoint of step 0.

    Another run can begin with it; it can't be continued itself, for no optimizer is there.
    """
    facts = networks.text.facts() | {"initial": networks.source}
    if networks.task is None:
        config = PretrainingConfig(model=networks.model,
                                   objective=OBJECTIVES[networks.objective].settings)
        settings = {name: value for name, value in flatten(config).items()
                    if name.startswith(("model.", "objective."))}
        identity = settings | facts
    else:
        # Here, because it takes all kinds of tasks, which pre-training doesn't need.
        from electra_tf.tasks.recipes import recipe
        config = override(recipe(networks.task.name, networks.model),
                          networks.head_settings)
        identity = run_directory.identity(config, facts | networks.task.facts())
    run_directory.claim(directory, identity)
    networks.text.save(directory / VOCABULARY_FILE)
    write_weights(networks.weights, directory)


def task_of(saved: run_directory.Identity) -> TaskSpec | None:
    """Returns what a run was fine-tuned for; None if it wasn't."""
    return TaskSpec.of_facts(saved) if "task_name" in saved else None


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
    if vocabulary.size != saved["model.vocab_size"]:
        raise UserError(f"{vocabulary.source} has {vocabulary.size} entries, but the run was "
                        f"trained with {saved['model.vocab_size']}; restore the file.")
    digest = saved.get(VOCABULARY_FACT)
    if vocabulary.sha256 != digest:
        raise UserError(f"{vocabulary.source} isn't the vocabulary that the run was trained with "
                        f"(SHA-256 {vocabulary.sha256[:12]}..., not {str(digest)[:12]}...): its "
                        "tokens would get other ids. Restore the file.")
    return TextSettings(vocabulary=vocabulary, normalization=Normalization.of_facts(saved))
