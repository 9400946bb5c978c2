"""Checkpoints of TensorFlow Model Garden: TensorFlow 2's objects, with `vocab.txt` beside them.

    model      ElectraPretrainer: discriminator_network, discriminator_projection,
               discriminator_head, and generator_network and masked_lm if there is a generator
    encoder    its discriminator_network: BertEncoder or BertEncoderV2

Reading and writing need no Model Garden: a checkpoint holds the names of attributes.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from tensorflow.core.protobuf import trackable_object_graph_pb2

from electra_tf.checkpoints.google import checked
from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.run_directory import VOCABULARY_FILE
from electra_tf.checkpoints.shapes import with_generator
from electra_tf.checkpoints.weights import GRAPH, Weights, reading
from electra_tf.config.model import ModelConfig
from electra_tf.modeling.weight_table import discriminator, vocabulary_head, whole_encoder
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.text.tokenization import Normalization, TextSettings

PREFIX = "electra"
_ENCODERS = ("model/discriminator_network", "discriminator_network", "encoder", "model")
"""Where checkpoints hold the discriminator; Model Garden's trainers write "model" and "encoder"."""
_RENAMED = (
    ("^discriminator_predictions/dense_1/", "discriminator_head/"),
    ("^discriminator_predictions/dense/", "discriminator_projection/"),
    ("^generator_predictions/dense/", "masked_lm/dense/"),
    ("^generator_predictions/LayerNorm/", "masked_lm/layer_norm/"),
    ("^generator_predictions/output_bias", "masked_lm/bias"),
    ("^electra/", "discriminator_network/"), ("^generator/", "generator_network/"),
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
"""Parts of our names, and their attributes; applied in this order."""


def theirs_of(name: str) -> str:
    """Returns the attributes that lead from an ElectraPretrainer to a weight.

    >>> theirs_of("generator/encoder/layer_3/output/dense/kernel")
    'generator_network/_transformer_layers/3/_output_dense/kernel'
    """
    for ours, theirs in _RENAMED:
        name = re.sub(ours, theirs, name)
    return name


def is_checkpoint(prefix: str) -> bool:
    """Returns whether a checkpoint holds objects; `UserError` for a damaged one."""
    with reading(prefix) as reader:
        return reader.has_tensor(GRAPH)


def read(prefix: str, *, vocab_file: Path | None = None,
         normalization: Normalization | None = None) -> Pretrained:
    """Returns the networks of a checkpoint, without the pooler and the next-sentence head.

    Takes the arguments of `google.read`; `UserError` for a damaged checkpoint, or another model's.
    """
    text = TextSettings.load(
        vocab_file or storage.path(prefix).parent / VOCABULARY_FILE, normalization)
    with reading(prefix) as reader:
        model, weights = _Objects(reader, prefix).networks()
    return checked(Pretrained(source=prefix, model=model, text=text, weights=weights))


class _Objects:
    """The objects of a checkpoint."""

    def __init__(self, reader: Any, source: str):
        self._reader, self._source = reader, source
        graph = trackable_object_graph_pb2.TrackableObjectGraph()
        graph.ParseFromString(reader.get_tensor(GRAPH))
        self._nodes = graph.nodes

    def networks(self) -> tuple[ModelConfig, Weights]:
        """Returns the shape of the networks and their weights by our names."""
        places = [place for place in _ENCODERS if self._node(f"{place}/_transformer_layers")]
        if not places:
            raise UserError(f"{self._source} holds no encoder of Model Garden (model or encoder).")
        encoder = places[0]
        above = encoder.removesuffix("discriminator_network")
        above = above if above != encoder else ""
        sizes = self._sizes(encoder)
        model = ModelConfig(**sizes)
        weights = {
            name: self._array(theirs_of(name).replace("discriminator_network", encoder, 1)
                              if name.startswith("electra/") else above + theirs_of(name), shape)
            for name, shape in discriminator(model.discriminator).weights.items()}
        if not self._node(f"{above}generator_network"):
            return model, weights
        own = self._sizes(f"{above}generator_network")
        config = ModelConfig(**own).discriminator
        alone = whole_encoder(config) | vocabulary_head("generator_predictions", config)
        found = {
            name: self._array(above + theirs_of(re.sub("^electra/", "generator/", name)), shape)
            for name, shape in alone.items()}
        model, theirs = with_generator(sizes, own, found, weights, self._source)
        return model, weights | theirs

    def _sizes(self, encoder: str) -> dict[str, int]:
        """Returns the sizes of an encoder by the names of our settings."""
        layers = self._node(f"{encoder}/_transformer_layers")
        first = f"{encoder}/_transformer_layers/0"
        hidden, heads, _ = self._shape(f"{first}/_attention_layer/_query_dense/kernel", 3)
        vocab_size, embedding_size = self._shape(f"{encoder}/_embedding_layer/embeddings", 2)
        return {
            "vocab_size": vocab_size, "embedding_size": embedding_size, "hidden_size": hidden,
            "num_heads": heads, "num_layers": sum(
                child.local_name.isdigit() for child in layers.children),
            "intermediate_size": self._shape(f"{first}/_intermediate_dense/kernel", 2)[1],
            "max_position_embeddings":
                self._shape(f"{encoder}/_position_embedding_layer/embeddings", 2)[0],
            "type_vocab_size": self._shape(f"{encoder}/_type_embedding_layer/embeddings", 2)[0]}

    def _node(self, path: str):
        """Returns the object at a path of attributes; None if there is none."""
        node = self._nodes[0]
        for part in path.split("/"):
            ids = [child.node_id for child in node.children if child.local_name == part]
            if not ids:
                return None
            node = self._nodes[ids[0]]
        return node

    def _value(self, path: str, fits: Callable[[tuple[int, ...]], bool]) -> np.ndarray:
        node = self._node(path)
        if node is None or not node.attributes:
            raise UserError(f"{self._source} lacks {path}: it is no ELECTRA checkpoint.")
        value = self._reader.get_tensor(node.attributes[0].checkpoint_key)
        if not fits(value.shape):
            raise UserError(f"{self._source}: {path} can't have the shape {value.shape}.")
        return value

    def _shape(self, path: str, rank: int) -> tuple[int, ...]:
        return self._value(path, lambda shape: len(shape) == rank and 0 not in shape).shape

    def _array(self, path: str, wanted: tuple[int, ...]) -> np.ndarray:
        """Returns a weight in our shape: heads stand in one dimension with their units."""
        return self._value(
            path, lambda shape: math.prod(shape) == math.prod(wanted)).reshape(wanted)
