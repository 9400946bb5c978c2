"""Checkpoints of TensorFlow Model Garden: TensorFlow 2's objects, with `vocab.txt` beside them.

    model      ElectraPretrainer: discriminator_network, discriminator_projection,
               discriminator_head, and generator_network and masked_lm if there is a generator
    encoder    its discriminator_network: BertEncoder or BertEncoderV2

Reading and writing need no Model Garden: a checkpoint holds the names of attributes.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from electra_tf.checkpoints.weights import Weights, objects, with_generator
from electra_tf.config.model import EncoderConfig, ModelConfig
from electra_tf.modeling.weight_table import Shapes, binary_head, vocabulary_head, whole_encoder
from electra_tf.platform.errors import UserError

PREFIX = "electra"
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
"""Parts of our names, and their attributes; applied in this order."""


def theirs_of(name: str) -> str:
    """Returns the attributes that lead from an ElectraPretrainer to a weight.

    >>> theirs_of("generator/encoder/layer_3/output/dense/kernel")
    'generator_network/_transformer_layers/3/_output_dense/kernel'
    """
    for ours, theirs in _RENAMED:
        name = re.sub(ours, theirs, name)
    return name


def read(reader: Any, source: str) -> tuple[ModelConfig, Weights]:
    """Returns the shape of the networks, and their weights by our names."""
    found = _Objects(reader, source)
    place = next((place for place in _PLACES if found.node(f"{place}/_transformer_layers")), "")
    if not place:
        raise UserError(f"{source} holds no encoder of Model Garden (model or encoder).")
    above = "model/" if place == _PLACES[0] else ""
    sizes, weights = found.network(above, place, lambda config: binary_head(
        "discriminator_predictions", config))
    if not found.node(above + _GENERATOR):
        return ModelConfig(**sizes), weights
    own_sizes, own = found.network(above, above + _GENERATOR, lambda config: vocabulary_head(
        "generator_predictions", config))
    model, theirs = with_generator(sizes, own_sizes, own, weights, source)
    return model, weights | theirs


class _Objects:
    """The objects of a checkpoint, by the paths of attributes that lead to them."""

    def __init__(self, reader: Any, source: str):
        self._reader, self._source, self._nodes = reader, source, objects(reader)

    def network(self, above: str, place: str, head: Callable[[EncoderConfig], Shapes]
                ) -> tuple[dict[str, int], Weights]:
        """Returns the sizes of the encoder at `place`, and its weights as "electra/...".

        The weights of its head come by our names too; they are attributes of `above`.
        """
        sizes = self._sizes(place)
        config = ModelConfig(**sizes).discriminator
        weights = {}
        for name, shape in (whole_encoder(config) | head(config)).items():
            path = theirs_of(name)
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

    def _sizes(self, place: str) -> dict[str, int]:
        """Returns the sizes of an encoder by the names of our settings."""
        layers, first = f"{place}/_transformer_layers", f"{place}/_transformer_layers/0"
        hidden, heads, _ = self._value(f"{first}/_attention_layer/_query_dense/kernel").shape
        vocab_size, embedding_size = self._value(f"{place}/_embedding_layer/embeddings").shape
        return {
            "vocab_size": vocab_size, "embedding_size": embedding_size, "hidden_size": hidden,
            "num_heads": heads, "num_layers": sum(
                child.local_name.isdigit() for child in self.node(layers).children),
            "intermediate_size": self._value(f"{first}/_intermediate_dense/kernel").shape[1],
            "max_position_embeddings":
                self._value(f"{place}/_position_embedding_layer/embeddings").shape[0],
            "type_vocab_size": self._value(f"{place}/_type_embedding_layer/embeddings").shape[0]}

    def _value(self, path: str) -> np.ndarray:
        node = self.node(path)
        if node is None or not node.attributes:
            raise UserError(f"{self._source} lacks {path}: it is no ELECTRA checkpoint.")
        return self._reader.get_tensor(node.attributes[0].checkpoint_key)
