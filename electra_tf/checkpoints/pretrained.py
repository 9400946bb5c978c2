"""A trained model independent of formats: weights, shape, vocabulary and normalization."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from electra_tf.checkpoints.run_directory import TASK, VOCABULARY_FILE, Identity, read_identity
from electra_tf.checkpoints.weights import Weights, read_checkpoint
from electra_tf.config.model import ModelConfig
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.text.tokenization import VOCABULARY_FACT, Normalization, TextSettings
from electra_tf.text.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pretrained:
    """A pre-trained or fine-tuned encoder and the other parts of its checkpoint."""

    source: str
    """Path or name, for messages."""
    model: ModelConfig
    text: TextSettings
    weights: Weights
    objective: str = "electra"
    """Name of the objective of pre-training; converted checkpoints are ELECTRA's."""
    task: Mapping[str, Any] | None = None
    """Facts of the task of fine-tuning, as in settings.json; None after pre-training."""
    task_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of fine-tuning by name: a run's section `task`, or those that build the head."""
    their_head: tuple[Any, Weights] | None = None
    """`hugging_face.Config` of a fine-tuned model, and its head, which `export/conversion.py`
    converts; `weights` are the encoder's alone."""


def read_run(model_dir: Path) -> Pretrained:
    """Returns the newest checkpoint of a run; `UserError` if there is none, or a damaged one."""
    saved = read_identity(model_dir)
    model = override(PretrainingConfig(), {
        name: value for name, value in saved.items() if name.startswith("model.")}).model
    weights, step = read_checkpoint(model_dir)
    return Pretrained(
        source=f"{model_dir}, step {step:,}", model=model, weights=weights,
        objective=saved.get("objective.name", Pretrained.objective),
        text=text_settings(model_dir), task=task_facts(saved),
        task_settings={name: saved[name] for name in saved if name.startswith("task.")})


def task_facts(saved: Identity) -> dict[str, Any] | None:
    """Returns the facts of the task that a run was fine-tuned for; None after pre-training."""
    return {name: value for name, value in saved.items() if name.startswith(TASK)} or None


def text_settings(model_dir: Path) -> TextSettings:
    """Returns a run's vocabulary and normalization; `UserError` if vocab.txt was changed."""
    saved = read_identity(model_dir)
    vocabulary = Vocabulary.load(model_dir / VOCABULARY_FILE)
    digest = saved.get(VOCABULARY_FACT)
    if vocabulary.sha256 != digest:
        raise UserError(f"{vocabulary.source} isn't the vocabulary that the run was trained with "
                        f"(SHA-256 {vocabulary.sha256[:12]}..., not {str(digest)[:12]}...): its "
                        "tokens would get other ids. Restore the file.")
    return TextSettings(vocabulary=vocabulary, normalization=Normalization.of_facts(saved))
