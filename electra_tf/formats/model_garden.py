"""Reads and writes checkpoints of Model Garden, which hold objects.

`bert_config.json` beside them has the dropout rates. `model` is an ElectraPretrainer, and
`encoder` its discriminator_network, a BertEncoder or BertEncoderV2.
"""

import re
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.checkpoints.run_directory import VOCABULARY_FILE
from electra_tf.checkpoints.weights import ENCODER, Weights, object_graph
from electra_tf.config.model import EncoderConfig, ModelConfig
from electra_tf.core.atomic_file import make_directory
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path
from electra_tf.formats import google
from electra_tf.formats.parts import (
    extract,
    infer_generator,
    join_networks,
    note_unused,
    require_pretrained,
)
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.modeling.parameter_shapes import full_encoder
from electra_tf.modeling.specs import discriminator, language_model

PREFIX = "electra"
_ENCODER, _GENERATOR = "discriminator_network", "generator_network"
_ENCODER_PATHS = (f"model/{_ENCODER}", _ENCODER, "encoder", "model")
"""Paths of the discriminator in checkpoints; trainers write "model" and "encoder"."""
_RENAMED = (
    ("^discriminator_predictions/dense_1/", "discriminator_head/"),
    ("^discriminator_predictions/dense/", "discriminator_projection/"),
    ("^generator_predictions/dense/", "masked_lm/dense/"),
    ("^generator_predictions/LayerNorm/", "masked_lm/layer_norm/"),
    ("^generator_predictions/output_bias", "masked_lm/bias"),
    ("^electra/", f"{_ENCODER}/"),
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


def garden_path(name: str) -> str:
    """Returns the attributes that lead from an ElectraPretrainer to a weight.

    >>> garden_path("electra/encoder/layer_3/output/dense/kernel")
    'discriminator_network/_transformer_layers/3/_output_dense/kernel'
    """
    for pattern, attributes in _RENAMED:
        name = re.sub(pattern, attributes, name)
    return name


def read(reader: Any, source: str) -> tuple[ModelConfig, Weights]:
    """Returns the shape of the networks, and their weights by our names."""
    # A checkpoint of a whole ElectraPretrainer, or of an encoder under one of several names.
    objects = _Objects(reader, source)
    encoder = next((path for path in _ENCODER_PATHS
                    if objects.node(f"{path}/_transformer_layers")), "")
    if not encoder:
        raise UserError(f"{source} holds no encoder of Model Garden (model or encoder).")
    parent = "model/" if encoder == _ENCODER_PATHS[0] else ""
    (weights, num_heads), generator_heads = objects.network(encoder, parent), None
    # A generator beside it, without embeddings that equal the discriminator's.
    if objects.node(parent + _GENERATOR):
        generator, generator_heads = objects.network(parent + _GENERATOR, parent)
        weights = join_networks(weights, generator, source)
    note_unused(objects.unread(), source)
    model = google.infer_model(weights, source, num_heads)
    return infer_generator(model, weights, source, generator_heads), weights


class _Objects:
    """The objects of a checkpoint, by the paths of attributes that lead to them."""

    def __init__(self, reader: Any, source: str):
        self._reader, self._source, self._nodes = reader, source, object_graph(reader)
        self._read: set[str] = set()

    def unread(self) -> list[str]:
        """Returns the names of weights that were not read; slots and counters are none."""
        return [key.removeprefix("model/").removesuffix("/.ATTRIBUTES/VARIABLE_VALUE")
                for key, shape in self._reader.get_variable_to_shape_map().items()
                if shape and key not in self._read and not re.search(
                    r"^optimizer/|/\.OPTIMIZER_SLOT/", key)]

    def node(self, path: str) -> Any:
        """Returns the object at a path of attributes; None if there is none."""
        node = self._nodes[0]
        for attribute in path.split("/"):
            ids = {child.local_name: child.node_id for child in node.children}
            if attribute not in ids:
                return None
            node = self._nodes[ids[attribute]]
        return node

    def network(self, encoder: str, parent: str) -> tuple[Weights, int]:
        """Returns the weights and the number of attention heads of a network.

        `encoder` is the path of its encoder, whose weights are named "electra/..."; the output
        layers are attributes of `parent`.
        """
        def value(path: str) -> np.ndarray:
            node = self.node(path)
            if node is None or not node.attributes:
                raise UserError(f"{self._source} lacks {path}: it is not an ELECTRA checkpoint.")
            self._read.add(node.attributes[0].checkpoint_key)
            return self._reader.get_tensor(node.attributes[0].checkpoint_key)

        # The encoder has as many layers as the checkpoint has numbered children.
        layers = self.node(f"{encoder}/_transformer_layers").children
        config = EncoderConfig(num_layers=sum(child.local_name.isdigit() for child in layers))
        network = (language_model("generator", config, full_encoder(config))
                   if encoder.endswith(_GENERATOR) else discriminator(config))
        # Output layers may be missing, as the projection of embeddings of the hidden size is.
        weights = {}
        for name in network.weights:
            in_encoder, path = name.startswith(ENCODER), garden_path(name)
            path = path.replace(_ENCODER, encoder, 1) if in_encoder else parent + path
            is_optional = "embeddings_project" in name or not in_encoder
            if not is_optional or self.node(path):
                weights[name] = _reshaped(path, value(path))

        # Model Garden can hold an output matrix that is not the table of words; ours can't.
        table = f"{parent}masked_lm/embedding_table"
        if encoder.endswith(_GENERATOR) and self.node(table) and not np.array_equal(
                value(table), weights[f"{ENCODER}embeddings/word_embeddings"]):
            raise UserError(f"{self._source}: {table} is not the generator's word embeddings; "
                            "output matrices of their own are not supported.")
        # Kernels of queries are [H, A, H / A], so that their second size is the number of heads.
        query = f"{encoder}/_transformer_layers/0/_attention_layer/_query_dense/kernel"
        return weights, value(query).shape[1]


def write(checkpoint: Checkpoint, directory: Path) -> None:
    """Writes a checkpoint that Model Garden's encoders and ElectraPretrainer restore.

    Both networks hold the embeddings, shared or not. The poolers, which ELECTRA does not train, get
    new values; the next-sentence head is left out.
    """
    # Our weights by Model Garden's paths, and poolers, which it requires.
    require_pretrained(checkpoint)
    values: dict[str, np.ndarray] = {}
    for network in ("discriminator", *["generator"] * checkpoint.has_generator):
        encoder, weights = extract(checkpoint, network)
        for name, value in weights.items():
            path = garden_path(name).replace(_ENCODER, f"{network}_network", 1)
            values[path] = _reshaped(path, value, encoder.num_heads)
        size, stddev = encoder.hidden_size, encoder.initializer_range
        pooler = f"{network}_network/_pooler_layer"
        values |= {f"{pooler}/bias": np.zeros(size, np.float32),
                   f"{pooler}/kernel": tf.random.stateless_truncated_normal(
                       [size, size], seed=[0, 0], stddev=stddev).numpy()}

    # A tree of modules with these paths, which TensorFlow saves as its checkpoint.
    root = tf.Module()
    for path, value in values.items():
        *parents, leaf = path.split("/")
        module = root
        for attribute in parents:
            if not hasattr(module, attribute):
                setattr(module, attribute, tf.Module())
            module = getattr(module, attribute)
        setattr(module, leaf, tf.Variable(value))
    if checkpoint.has_generator:
        root.masked_lm.embedding_table = root.generator_network._embedding_layer.embeddings
    make_directory(directory)
    tf.train.Checkpoint(model=root, encoder=root.discriminator_network).save(
        str(directory / PREFIX))
    checkpoint.text.save(directory / VOCABULARY_FILE)
    google.write_settings(checkpoint.config, directory)


def _reshaped(path: str, value: np.ndarray, *heads: int) -> np.ndarray:
    """Returns a weight with Model Garden's dimension of heads, or without it for no `heads`."""
    # [H, H] <-> [A, H / A, H] for outputs; [H, H] <-> [H, A, H / A] and [H] <-> [A, H / A] for
    # inputs.
    if path.endswith("_attention_layer/_output_dense/kernel"):
        return value.reshape(*heads, -1, value.shape[-1])
    if re.search("_attention_layer/_(query|key|value)_dense/", path):
        return value.reshape(*value.shape[:path.endswith("kernel")], *heads, -1)
    return value
