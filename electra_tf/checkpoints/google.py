"""TensorFlow checkpoints of others: Google's ELECTRA code, whose names are ours, and Model Garden.

Google's don't say how many attention heads a network has. `bert_config.json` beside one may, in
BERT's form: we write it, and others have.
"""

import dataclasses
import os
from typing import Annotated

import tensorflow as tf
from annotated_types import Ge

from electra_tf.checkpoints import model_garden
from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.run_directory import VOCABULARY_FILE
from electra_tf.checkpoints.weights import GRAPH, SLOTS, Weights, reading, require_networks
from electra_tf.config.model import ModelConfig, Tying
from electra_tf.platform import storage, strict_json
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import MIB, Path
from electra_tf.text.tokenization import Normalization, TextSettings

PREFIX = "model.ckpt"
CONFIG_FILE, HEADS = "bert_config.json", "num_attention_heads"
_PUBLISHED_HEADS = {(256, 12): 4, (768, 12): 12, (1024, 24): 16}
"""(Hidden size, layers) of the published models -> attention heads, which no weight tells."""
_QUERY = "encoder/layer_0/attention/self/query/bias"


def find(path: Path) -> str | None:
    """Returns the prefix of the checkpoint that a path is or holds; None if there is none."""
    if storage.path(f"{path}.index").exists():
        return str(path)
    newest = tf.train.latest_checkpoint(str(path))
    if newest is not None and (path / f"{os.path.basename(newest)}.index").exists():
        return str(path / os.path.basename(newest))
    found = sorted(path.glob("*.index"))
    return str(found[0]).removesuffix(".index") if len(found) == 1 else None


def read(prefix: str, vocab_file: Path | None = None,
         normalization: Normalization | None = None, num_heads: int | None = None) -> Pretrained:
    """Returns the networks of a checkpoint, without Adam's slots and other heads.

    Args:
        prefix: of the checkpoint's files.
        vocab_file: `vocab.txt` beside the checkpoint if None.
        normalization: of text; that of the manifest beside the vocabulary if None, or uncased.
        num_heads: of Google's discriminator; if None it is that of `bert_config.json` beside the
            checkpoint, or the published model's of this size.

    Raises:
        UserError: a damaged checkpoint, not exactly ELECTRA's weights, or unknown heads.
    """
    directory = storage.path(prefix).parent
    text = TextSettings.load(vocab_file or directory / VOCABULARY_FILE, normalization)
    with reading(prefix) as reader:
        if reader.has_tensor(GRAPH):
            model, weights = model_garden.read(reader, prefix)
        else:
            weights = {name: reader.get_tensor(name)
                       for name in reader.get_variable_to_shape_map()
                       if not name.endswith(SLOTS) and name != "global_step"}
            model = model_of_weights(weights, prefix, num_heads or _heads_beside(directory))
    if model.vocab_size != text.vocabulary.size:
        raise UserError(f"{text.vocabulary.source} has {text.vocabulary.size} entries, {prefix} "
                        f"{model.vocab_size}.")
    require_networks(weights, model, prefix)
    return Pretrained(source=prefix, model=model, text=text, weights=weights)


def model_of_weights(weights: Weights, source: str, num_heads: int | None = None) -> ModelConfig:
    """Returns the shape of networks from their weights, with or without a generator.

    `num_heads` is the encoder's; a published model's is known by its size. Raises `UserError` for
    no encoder, sizes that don't go together, or unknown heads.
    """
    def shape(name: str) -> tuple[int, ...]:
        found = weights[name].shape if name in weights else ()
        if len(found) != (2 if name.endswith("_embeddings") else 1) or 0 in found:
            raise UserError(f"{source} has no {name} of a possible shape; it is no ELECTRA "
                            "checkpoint.")
        return found

    def layers(path: str) -> int:
        return sum(name.startswith(f"{path}/encoder/layer_") and name.endswith("self/query/bias")
                   for name in weights)

    vocab_size, embedding_size = shape("electra/embeddings/word_embeddings")
    hidden_size, num_layers = shape(f"electra/{_QUERY}")[0], layers("electra")
    generator = {}
    if f"generator/{_QUERY}" in weights:
        generator = {"generator_width": shape(f"generator/{_QUERY}")[0] / hidden_size,
                     "generator_depth": layers("generator") / num_layers}
        if "generator/embeddings/word_embeddings" in weights:
            generator["tying"] = Tying.NONE
        elif "generator/embeddings/position_embeddings" in weights:
            generator["tying"] = Tying.TOKEN_EMBEDDINGS
    elif "generator_predictions/output_bias" in weights:
        generator = {"tying": Tying.EVERYTHING, "generator_width": 1.0}
    num_heads = num_heads or _PUBLISHED_HEADS.get((hidden_size, num_layers))
    if num_heads is None:
        raise UserError(
            f"{source} doesn't say how many attention heads it has, and {num_layers} layers of "
            f"{hidden_size} units are no published model's. Convert it: python -m "
            f"electra_tf.apps.tools.convert_checkpoint --from={source} --to=NEW_DIRECTORY "
            "--to_format=run --num_heads=HEADS")
    return ModelConfig(
        vocab_size=vocab_size, embedding_size=embedding_size, hidden_size=hidden_size,
        num_layers=num_layers, num_heads=num_heads,
        intermediate_size=shape("electra/encoder/layer_0/intermediate/dense/bias")[0],
        max_position_embeddings=shape("electra/embeddings/position_embeddings")[0],
        type_vocab_size=shape("electra/embeddings/token_type_embeddings")[0], **generator)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Config:
    __pydantic_config__ = strict_json.OPEN

    num_attention_heads: Annotated[int, Ge(1)]


def _heads_beside(directory: Path) -> int | None:
    path = directory / CONFIG_FILE
    if not path.exists():
        return None
    return strict_json.read(path, _Config, most=MIB, fix=(
        f"mend {HEADS}, or give --num_heads to electra_tf.apps.tools.convert_checkpoint."
    )).num_attention_heads
