"""Reads networks in every format; `export/conversion.py` writes them."""

import dataclasses
import enum

from electra_tf.checkpoints import google, hub, hugging_face, model_garden
from electra_tf.checkpoints.pretrained import Pretrained, read_run
from electra_tf.checkpoints.run_directory import SETTINGS_FILE
from electra_tf.checkpoints.weights import require_finite
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.text.normalization import Normalization


class Format(enum.StrEnum):
    """Whose checkpoint it is; those of Google and Model Garden have `vocab.txt` beside them."""

    RUN = "run"
    GOOGLE = "google"
    HUGGING_FACE = "hugging_face"
    MODEL_GARDEN = "model_garden"


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
        path: of a directory, the prefix of a TensorFlow checkpoint, or the name of a model on the
            Hugging Face Hub, "owner/name" or "hf://owner/name@revision".
        generator: False neither downloads nor reads a generator of the Hub.
        vocab_file: see `google.read`, as for the next two.
        normalization: of text.
        num_heads: of the discriminator.

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
        networks = model_garden.read(google.find(path), vocab_file, normalization)
    else:
        networks = google.read(google.find(path), vocab_file, normalization, num_heads)
    require_finite(networks.weights, networks.source)
    return networks
