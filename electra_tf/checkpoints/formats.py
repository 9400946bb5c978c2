"""Reads networks in every format; `export/conversion.py` writes them."""

import dataclasses
import enum

from electra_tf.checkpoints import google, hub, model_garden
from electra_tf.checkpoints.hugging_face import networks as hugging_face
from electra_tf.checkpoints.pretrained import Pretrained, read_run
from electra_tf.checkpoints.run_directory import SETTINGS_FILE
from electra_tf.checkpoints.shapes import require_finite
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.text.tokenization import Normalization


class Format(enum.StrEnum):
    """Whose checkpoint it is."""

    RUN = "run"
    """A run's directory of this program."""
    GOOGLE = "google"
    """A TensorFlow 1 checkpoint of Google's code, with `vocab.txt` beside it."""
    HUGGING_FACE = "hugging_face"
    """A directory with config.json and a file of weights, or a pair of them."""
    MODEL_GARDEN = "model_garden"
    """A checkpoint of TensorFlow Model Garden's objects, with `vocab.txt` beside it."""


def format_of(path: Path) -> Format:
    """Returns whose checkpoint lies at a path; `UserError` if none does."""
    if (path / SETTINGS_FILE).exists():
        return Format.RUN
    if hugging_face.is_directory_of(path):
        return Format.HUGGING_FACE
    if (prefix := google.find(path)) is not None:
        return Format.MODEL_GARDEN if model_garden.is_checkpoint(prefix) else Format.GOOGLE
    raise UserError(f"{path} holds no checkpoint: neither {SETTINGS_FILE} (a run of this program), "
                    "nor config.json (Hugging Face), nor *.index (Google, Model Garden).")


def read(path: Path, *, generator: bool = True, vocab_file: Path | None = None,
         normalization: Normalization | None = None, num_heads: int | None = None) -> Pretrained:
    """Returns the networks at a path, whatever their format.

    Args:
        path: of a directory, the prefix of a TensorFlow 1 checkpoint, or the name of a model on
            the Hugging Face Hub, "owner/name" or "hf://owner/name@revision".
        generator: False neither downloads nor reads a generator of the Hub.
        vocab_file: for Google's and Model Garden's format, where no `vocab.txt` is beside it.
        normalization: likewise, where there is no manifest beside the vocabulary.
        num_heads: for Google's format; if None it is looked for beside it, or known by a published
            size.

    Raises:
        UserError: no checkpoint, a damaged one, another architecture; weights that are missing or
            left over, or no finite numbers; heads that can't be known.
    """
    if hub.is_name(path):
        directory, beside = hub.fetch(path, generator=generator)
        networks = dataclasses.replace(
            hugging_face.read(directory, beside, generator=generator), source=str(path))
    elif (form := format_of(path)) is Format.RUN:
        networks = read_run(path)
    elif form is Format.HUGGING_FACE:
        networks = hugging_face.read(path)
    elif form is Format.MODEL_GARDEN:
        networks = model_garden.read(
            google.find(path), vocab_file=vocab_file, normalization=normalization)
    else:
        networks = google.read(path, vocab_file=vocab_file, normalization=normalization,
                               num_heads=num_heads)
    require_finite(networks.weights, networks.source)
    return networks
