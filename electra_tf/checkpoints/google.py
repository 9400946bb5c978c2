"""Checkpoints of Google's ELECTRA code: TensorFlow 1's format, the names that are ours too.

They don't say how many attention heads a network has. `bert_config.json` beside one may, in BERT's
form: we write it, and others have.
"""

import dataclasses
import os
from typing import Annotated

import tensorflow as tf
from annotated_types import Ge

from electra_tf.checkpoints import directory as checkpoints
from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.run_directory import VOCABULARY_FILE
from electra_tf.checkpoints.shapes import model_of_weights, require_networks
from electra_tf.checkpoints.weights import reading
from electra_tf.platform import storage, strict_json
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import MIB, Path
from electra_tf.text.tokenization import Normalization, TextSettings

PREFIX = "model.ckpt"
CONFIG_FILE, HEADS = "bert_config.json", "num_attention_heads"
_SLOTS = ("/adam_m", "/adam_v")
_OTHERS = frozenset({"global_step"})


def find(path: Path) -> str | None:
    """Returns the prefix of the checkpoint that a path is or holds; None if there is none."""
    if storage.path(f"{path}.index").exists():
        return str(path)
    with checkpoints.found_by_tensorflow(str(path / "checkpoint")) as pointer:
        newest = tf.train.latest_checkpoint(os.path.dirname(pointer))
    if newest is not None and (path / f"{os.path.basename(newest)}.index").exists():
        return str(path / os.path.basename(newest))
    found = sorted(path.glob("*.index"))
    return str(found[0]).removesuffix(".index") if len(found) == 1 else None


def read(path: Path, *, vocab_file: Path | None = None,
         normalization: Normalization | None = None, num_heads: int | None = None) -> Pretrained:
    """Returns the networks of a checkpoint, without Adam's slots and the step.

    Args:
        path: of a directory, or a checkpoint's prefix.
        vocab_file: `vocab.txt` beside the checkpoint if None.
        normalization: of text; that of the manifest beside the vocabulary if None, or uncased.
        num_heads: of the discriminator; if None it is that of `bert_config.json` beside the
            checkpoint, or the published model's of this size.

    Raises:
        UserError: no checkpoint, a damaged one, not exactly ELECTRA's weights, or a number of
            heads that nothing tells.
    """
    prefix = find(path)
    if prefix is None:
        raise UserError(f"{path} holds no TensorFlow checkpoint.")
    directory = storage.path(prefix).parent
    text = TextSettings.load(vocab_file or directory / VOCABULARY_FILE, normalization)
    with reading(prefix) as reader:
        names = [name for name in reader.get_variable_to_shape_map()
                 if not name.endswith(_SLOTS) and name not in _OTHERS]
        weights = {name: reader.get_tensor(name) for name in names}
    model = model_of_weights(weights, prefix, num_heads=num_heads or _heads_beside(directory))
    return checked(Pretrained(source=prefix, model=model, text=text, weights=weights))


def checked(networks: Pretrained) -> Pretrained:
    """Returns networks with exactly ELECTRA's weights; `UserError` for others."""
    vocabulary, size = networks.text.vocabulary, networks.model.vocab_size
    if size != vocabulary.size:
        raise UserError(
            f"{vocabulary.source} has {vocabulary.size} entries, {networks.source} {size}.")
    require_networks(networks.weights, networks.model, networks.source)
    return networks


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Config:
    """What we read of `bert_config.json`."""

    __pydantic_config__ = strict_json.OPEN

    num_attention_heads: Annotated[int, Ge(1)]


def _heads_beside(directory: Path) -> int | None:
    """Returns what `bert_config.json` says; None if there is none."""
    path = directory / CONFIG_FILE
    if not path.exists():
        return None
    return strict_json.read(path, _Config, most=MIB, fix=(
        f"mend {HEADS}, or give --num_heads to electra_tf.apps.tools.convert_checkpoint."
    )).num_attention_heads
