"""A trained model independent of its format, and the functions that read and write every format.

Each format has a module with this name, which is imported when a model of that format is read or
written.
"""

import dataclasses
import enum
import importlib
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.checkpoints.run_directory import CHECKPOINTS, SETTINGS_FILE
from electra_tf.checkpoints.weights import Weights
from electra_tf.config.model import ModelConfig, Tying
from electra_tf.core import hub, storage
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path
from electra_tf.modeling.parameter_shapes import RESTORER
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.normalization import Normalization, TextSettings

BERT_TRAINING_NAMES = {"hidden_dropout": "hidden_dropout_prob",
                       "attention_dropout": "attention_probs_dropout_prob",
                       "initializer_range": "initializer_range"}
"""Setting that only affects training -> its name in the files of BERT and Hugging Face."""
BERT_NAMES = {
    "vocab_size": "vocab_size", "embedding_size": "embedding_size", "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers", "num_heads": "num_attention_heads",
    "intermediate_size": "intermediate_size", "max_position_embeddings": "max_position_embeddings",
    "type_vocab_size": "type_vocab_size"} | BERT_TRAINING_NAMES
"""The same, with the sizes."""
GENERATOR_BIAS = "generator_predictions/output_bias"


class Format(enum.StrEnum):
    """Format of the checkpoint; that of Google has `vocab.txt` beside it."""

    RUN = "run"
    GOOGLE = "google"
    HUGGING_FACE = "hugging_face"

    @property
    def module(self) -> Any:
        """The module of `electra_tf.formats` with its functions `read` and `write`."""
        return importlib.import_module(f"electra_tf.formats.{self}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pooling:
    """Pooling, normalization and length of the vectors that `embed` returns."""

    modes: tuple[str, ...] = ("mean",)
    """Names from `POOLING_MODES`; their vectors are concatenated in this order."""
    normalize: bool = False
    """Divide vectors by their Euclidean norm."""
    max_length: int | None = None
    """Tokens to which texts are cut, [CLS] and [SEP] included; None: what the encoder reads."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A pre-trained or fine-tuned encoder and the other parts of its checkpoint."""

    source: str
    """Path or name, for messages."""
    config: ModelConfig
    """Without a generator, its settings of the generator have no meaning."""
    text: TextSettings
    weights: Weights
    """All weights by our names; those of a task's head are named "head/..."."""
    objective: str = "electra"
    """Name of the objective of pre-training; converted checkpoints are ELECTRA's."""
    task: TaskSpec | None = None
    """The task of fine-tuning; None after pre-training."""
    task_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of fine-tuning by name: a run's section `task`, or those that build the head."""
    pooling: Pooling = Pooling()
    """Vectors of texts: their tokens' mean, or what sentence-transformers' files say."""

    @property
    def has_generator(self) -> bool:
        """True if it has a masked language model; Electric's generator is none."""
        output = "generator/encoder/layer_0/attention/output/dense/kernel"
        return GENERATOR_BIAS in self.weights and (
            output in self.weights or self.config.tying is Tying.EVERYTHING)

    @property
    def has_discriminator(self) -> bool:
        """True if it has the head that returns a logit, or an energy, for every token."""
        return "discriminator_predictions/dense/kernel" in self.weights

    @property
    def has_restorer(self) -> bool:
        """True if its encoder has a head that predicts original tokens, without copying."""
        return f"{RESTORER}_predictions/output_bias" in self.weights and (
            "copy_predictions/dense/kernel" not in self.weights)

    @property
    def has_both(self) -> bool:
        """True if it has both networks."""
        return self.has_generator and self.has_discriminator


def read(path: Path, *, encoder_only: bool = False, with_task: bool = True,
         vocab_file: Path | None = None, normalization: Normalization | None = None,
         num_heads: int | None = None, text_columns: Sequence[str] = ()) -> Checkpoint:
    """Returns the model at a path, in any format.

    `path` is a directory, the prefix of a TensorFlow checkpoint, or the name of a model on the
    Hugging Face Hub, "owner/name" or "hf://owner/name@revision". In Hugging Face's format,
    `encoder_only` leaves out a generator and a task's head, `with_task=False` the head alone, and
    `text_columns` are those of the one or two texts that a fine-tuned model reads. For checkpoints
    of Google, `vocab_file`, `normalization` and `num_heads` replace what the files beside them say.
    Raises `UserError` for damage, missing or unknown weights, and values that aren't finite.
    """
    # Read the format that the files show.
    form = Format.HUGGING_FACE if hub.is_model_name(path) else _find_format(path)
    if form is Format.RUN:
        checkpoint = form.module.read(path)
    elif form is Format.HUGGING_FACE:
        checkpoint = form.module.read(path, encoder_only=encoder_only, with_task=with_task,
                                      text_columns=text_columns)
    elif form is Format.GOOGLE:
        prefix = _find_prefix(path)
        folder = storage.path(prefix).parent
        if folder.name == CHECKPOINTS and (folder.parent / SETTINGS_FILE).exists():
            raise UserError(f"{path} is a checkpoint of a run; name the run's directory, "
                            f"{folder.parent}.")
        checkpoint = form.module.read(prefix, vocab_file, normalization, num_heads)
    else:
        raise UserError(f"{path} holds no checkpoint: neither {SETTINGS_FILE} (a run of this "
                        "program), nor config.json (Hugging Face), nor *.index (Google)."
                        f"{_advice(path)}")

    # What holds for every format.
    of_google = {"vocab_file": vocab_file, "lower_case": normalization, "num_heads": num_heads}
    if form is not Format.GOOGLE and any(value is not None for value in of_google.values()):
        name = next(name for name, value in of_google.items() if value is not None)
        raise UserError(f"{path} says itself what --{name} says for a checkpoint of Google's code; "
                        "leave it out.")
    if text_columns and (form is not Format.HUGGING_FACE or checkpoint.task is None):
        raise UserError(f"{path} is no fine-tuned model in Hugging Face's format; leave out "
                        f"--text_columns={','.join(text_columns)}.")
    for name, value in checkpoint.weights.items():
        if not np.isfinite(value).all():
            raise UserError(f"{checkpoint.source}: {name} holds values that are not finite, "
                            "perhaps because training diverged; use another checkpoint.")
    return checkpoint


def write(checkpoint: Checkpoint, directory: Path, form: Format) -> None:
    """Writes a model into a new directory; refuses weights that the format cannot hold."""
    form.module.write(checkpoint, directory)


def _find_format(path: Path) -> Format | None:
    """Returns the format of the checkpoint that a path is or holds; None if there is none."""
    if (path / SETTINGS_FILE).exists():
        return Format.RUN
    if any((path / name).exists() for name in (
            "config.json", "discriminator/config.json", "modules.json", "adapter_config.json")):
        return Format.HUGGING_FACE
    return None if _find_prefix(path) is None else Format.GOOGLE


def _advice(path: Path) -> str:
    """Returns the end of a message: what to name instead of a path; the newest checkpoint first."""
    if path.is_file():
        # A file's directory, or what a directory holds one or two levels below.
        found = [path.parent] if _find_format(path.parent) else []
    else:  # The last pattern is of the Hub's cache.
        found = [entry for pattern in ("*", "*/*", "*/snapshots/*") for entry in path.glob(pattern)
                 if entry.is_dir() and os.access(entry, os.X_OK) and _find_format(entry)]
    names = [str(entry) for entry in sorted(found, key=os.path.getmtime, reverse=True)
             if entry.parent not in found and entry.name != "variables"]  # Of a SavedModel.
    return f" Name {' or '.join(names[:5])}." if names else ""


def _find_prefix(path: Path) -> str | None:
    """Returns the prefix of the checkpoint that a path is or holds; None if there is none.

    The path may also be a file of the checkpoint: PREFIX.index, .meta or .data-00000-of-00001.
    """
    # The prefix itself, the newest checkpoint of a directory, or its only one.
    path = storage.path(re.sub(r"\.(index|meta|data-\d+-of-\d+)$", "", str(path)))
    if storage.path(f"{path}.index").exists():
        return str(path)
    newest = tf.train.latest_checkpoint(str(path))
    if newest is not None and (path / f"{os.path.basename(newest)}.index").exists():
        return str(path / os.path.basename(newest))
    indices = list(path.glob("*.index"))
    return str(indices[0]).removesuffix(".index") if len(indices) == 1 else None
