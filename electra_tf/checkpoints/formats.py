"""Reads networks in every format; `export/conversion.py` writes them."""

import dataclasses

from electra_tf.checkpoints import google, hub, hugging_face
from electra_tf.checkpoints.pretrained import Pretrained, read_run
from electra_tf.checkpoints.run_directory import SETTINGS_FILE
from electra_tf.checkpoints.weights import require_finite
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.text.tokenization import Normalization


def read(path: Path, *, generator: bool = True, vocab_file: Path | None = None,
         normalization: Normalization | None = None, num_heads: int | None = None) -> Pretrained:
    """Returns the networks at a path, in any format.

    `path` is a directory, the prefix of a TensorFlow checkpoint, or the name of a model on the
    Hugging Face Hub, "owner/name" or "hf://owner/name@revision". `generator=False` neither
    downloads nor reads a generator of the Hub. The other arguments are those of `google.read`.
    Raises `UserError` for damage, missing or unknown weights, and values that aren't finite.
    """
    if hub.is_name(path):
        directory, beside = hub.fetch(path, generator=generator)
        networks = dataclasses.replace(
            hugging_face.read(directory, beside, generator=generator), source=str(path))
    elif (path / SETTINGS_FILE).exists():
        networks = read_run(path)
    elif hugging_face.is_directory_of(path):
        networks = hugging_face.read(path)
    elif (prefix := google.find(path)) is not None:
        networks = google.read(prefix, vocab_file, normalization, num_heads)
    else:
        raise UserError(f"{path} holds no checkpoint: neither {SETTINGS_FILE} (a run of this "
                        "program), nor config.json (Hugging Face), nor *.index (Google, Model "
                        "Garden).")
    require_finite(networks.weights, networks.source)
    return networks
