"""Reads TensorFlow checkpoints of Google's ELECTRA code, whose names are ours, and of Model Garden.

Checkpoints of the ELECTRA code do not contain the number of attention heads. `bert_config.json`
beside them can have it, as in BERT's releases; `export/conversion.py` writes this file.

Checkpoints of Model Garden hold objects, of which only the names of attributes are needed:

    model      ElectraPretrainer: discriminator_network, discriminator_projection,
               discriminator_head, and generator_network and masked_lm if there is a generator
    encoder    its discriminator_network: BertEncoder or BertEncoderV2
"""

import dataclasses
import os
import re
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import tensorflow as tf
from annotated_types import Ge

from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.run_directory import VOCABULARY_FILE
from electra_tf.checkpoints.weights import (
    GRAPH,
    SLOTS,
    Weights,
    objects,
    reading,
    require_networks,
    with_generator,
)
from electra_tf.config.model import EncoderConfig, ModelConfig, Tying
from electra_tf.modeling.weight_table import Shapes, binary_head, vocabulary_head, whole_encoder
from electra_tf.platform import storage, strict_json
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import MIB, Path
from electra_tf.text.tokenization import Normalization, TextSettings

PREFIX, GARDEN_PREFIX = "model.ckpt", "electra"
CONFIG_FILE, HEADS = "bert_config.json", "num_attention_heads"
_PUBLISHED_HEADS = {(256, 12): 4, (768, 12): 12, (1024, 24): 16}
"""(Hidden size, layers) of the published models -> attention heads, which no shape shows."""
_QUERY = "encoder/layer_0/attention/self/query/bias"
_ENCODER, _GENERATOR = "discriminator_network", "generator_network"
_PLACES = (f"model/{_ENCODER}", _ENCODER, "encoder", "model")
"""Names of the discriminator in checkpoints; trainers write "model" and "encoder"."""
_RENAMED = (
    ("^discriminator_predictions/dense_1/", "discriminator_head/"),
    ("^discriminator_predictions/dense/", "discriminator_projection/"),
    ("^generator_predictions/dense/", "masked_lm/dense/"),
    ("^generator_predictions/LayerNorm/", "masked_lm/layer_norm/"),
    ("^generator_predictions/output_bias", "masked_lm/bias"),
    ("^electra/", f"{_ENCODER}/"), ("^generator/", f"{_GENERATOR}/"),
    ("embeddings/word_embeddings", "_embedding_layer/embeddings"),
    ("embeddings/position_embeddings", "_position_embedding_layer/embeddings"),
    ("embeddings/token_type_embeddings", "_type_embedding_layer/embeddings"),
    ("embeddings/LayerNorm/", "_embedding_norm_layer/"),
    ("embeddings_project/", "_embedding_projection/"),
    (r"encoder/layer_(\d+)/", r"_transformer_layers/\1/"),
    ("attention/self/(query|key|value)/", r"_attention_layer/_\1_dense/"),
    ("attention/output/dense/", "_attention_layer/_output_dense/"),
    ("attention/output/LayerNorm/", "_attention_layer_norm/"),
    ("/intermediate/dense/", "/_intermediate_dense/"), ("/output/dense/", "/_output_dense/"),
    ("/output/LayerNorm/", "/_output_layer_norm/"))
"""Parts of our names -> names of attributes; replaced in this order."""


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
    """Returns the networks of a checkpoint, without Adam's slots.

    `vocab_file` is `vocab.txt` beside the checkpoint if None; `normalization` is the vocabulary's
    manifest's, or uncased; `num_heads` is that of `bert_config.json` beside the checkpoint, or the
    published model's of this size. Refuses weights that aren't exactly ELECTRA's.
    """
    directory = storage.path(prefix).parent
    text = TextSettings.load(vocab_file or directory / VOCABULARY_FILE, normalization)
    with reading(prefix) as reader:
        if reader.has_tensor(GRAPH):
            model, weights = _read_garden(reader, prefix)
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

    Refuses weights without an encoder, and sizes of no published model without `num_heads`.
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


def garden_path(name: str) -> str:
    """Returns the attributes that lead from an ElectraPretrainer to a weight.

    >>> garden_path("generator/encoder/layer_3/output/dense/kernel")
    'generator_network/_transformer_layers/3/_output_dense/kernel'
    """
    for ours, theirs in _RENAMED:
        name = re.sub(ours, theirs, name)
    return name


def _read_garden(reader: Any, source: str) -> tuple[ModelConfig, Weights]:
    """Returns the shape of the networks, and their weights by our names."""
    found = _Objects(reader, source)
    place = next((place for place in _PLACES if found.node(f"{place}/_transformer_layers")), "")
    if not place:
        raise UserError(f"{source} holds no encoder of Model Garden (model or encoder).")
    above = "model/" if place == _PLACES[0] else ""
    sizes, weights = found.network(above, place, "discriminator_predictions", binary_head)
    if not found.node(above + _GENERATOR):
        return ModelConfig(**sizes), weights
    own_sizes, own = found.network(
        above, above + _GENERATOR, "generator_predictions", vocabulary_head)
    model, theirs = with_generator(sizes, own_sizes, own, weights, source)
    return model, weights | theirs


class _Objects:
    """The objects of a checkpoint, by the paths of attributes that lead to them."""

    def __init__(self, reader: Any, source: str):
        self._reader, self._source, self._nodes = reader, source, objects(reader)

    def network(self, above: str, place: str, head: str,
                shapes: Callable[[str, EncoderConfig], Shapes]) -> tuple[dict[str, int], Weights]:
        """Returns the sizes of the encoder at `place`, and its weights as "electra/...".

        The weights of its head come by our names too; they are attributes of `above`.
        """
        layers = f"{place}/_transformer_layers"
        hidden, heads, _ = self._value(f"{layers}/0/_attention_layer/_query_dense/kernel").shape
        vocab_size, embedding_size = self._value(f"{place}/_embedding_layer/embeddings").shape
        sizes = {
            "vocab_size": vocab_size, "embedding_size": embedding_size, "hidden_size": hidden,
            "num_heads": heads, "num_layers": sum(
                child.local_name.isdigit() for child in self.node(layers).children),
            "intermediate_size": self._value(f"{layers}/0/_intermediate_dense/kernel").shape[1]}
        for name, layer in (("max_position_embeddings", "position"), ("type_vocab_size", "type")):
            sizes[name] = len(self._value(f"{place}/_{layer}_embedding_layer/embeddings"))
        config = ModelConfig(**sizes).discriminator
        weights = {}
        for name, shape in (whole_encoder(config) | shapes(head, config)).items():
            path = garden_path(name)
            path = (path.replace(_ENCODER, place, 1) if name.startswith("electra/")
                    else above + path)
            weights[name] = self._value(path).reshape(shape)  # Heads have a dimension there.
        return sizes, weights

    def node(self, path: str) -> Any:
        """Returns the object at a path of attributes; None if there is none."""
        node = self._nodes[0]
        for part in path.split("/"):
            ids = [child.node_id for child in node.children if child.local_name == part]
            if not ids:
                return None
            node = self._nodes[ids[0]]
        return node

    def _value(self, path: str) -> np.ndarray:
        node = self.node(path)
        if node is None or not node.attributes:
            raise UserError(f"{self._source} lacks {path}: it is no ELECTRA checkpoint.")
        return self._reader.get_tensor(node.attributes[0].checkpoint_key)
