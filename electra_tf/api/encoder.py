"""The encoder as a layer of tf_keras."""

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tf_keras
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

from electra_tf.checkpoints.weights import ENCODER
from electra_tf.config.model import EncoderConfig, ModelConfig
from electra_tf.core import storage
from electra_tf.core.errors import UserError, shown
from electra_tf.core.settings import require
from electra_tf.export.atomic_directory import atomic_directory
from electra_tf.formats import hugging_face
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.modeling.encoder import Encoder, create_encoder
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.layers import LayerOptions
from electra_tf.modeling.rng import Rng
from electra_tf.tasks.in_memory import refuse_columns, to_list
from electra_tf.text.normalization import Normalization, TextSettings
from electra_tf.text.rows import RowEncoder, Tokens
from electra_tf.text.vocabulary import Vocabulary

HUGGING_FACE_NAMES = {
    "input_ids": "ids", "token_type_ids": "segment_ids", "attention_mask": "padding_mask"}
"""Hugging Face's names of the parts of `Tokens`."""


class EncoderOutputs(NamedTuple):
    """The vectors of all layers and attention weights, with the names of transformers."""

    last_hidden_state: tf.Tensor  # float32 [B, L, H], with the mask of Keras.
    hidden_states: Sequence[tf.Tensor] = ()  # Of the embeddings and each layer, [B, L, H].
    attentions: Sequence[tf.Tensor] = ()  # Of each layer, [B, A, L, L].


@tf_keras.utils.register_keras_serializable("electra_tf")
class ElectraEncoder(tf_keras.layers.Layer):
    """An ELECTRA encoder for tf_keras models: texts or token ids in, one vector per token out.

    It trains under `fit` with dropout, accepts batches and rows of any size, and is saved and
    loaded with the model around it, vocabulary included. `electra_tf.load` returns a trained one.

    Args:
        config: Sizes, as an `EncoderConfig` or its fields.
        vocabulary: WordPiece tokens in the order of their ids.
        normalization: Fields of `Normalization`.
        max_length: Longest row in tokens, to which texts are cut; by default what `config` allows.
        encoder: The network with its weights; a new one is created by default.
        seed: Seed of initial weights and dropout.
        **options: Name and data type, for `tf_keras.layers.Layer`.

    Examples:
        >>> texts = tf_keras.Input([], dtype=tf.string)
        >>> vectors = electra.encoder(texts)               # [B, L, H]
        >>> model = tf_keras.Model(texts, tf_keras.layers.Dense(2)(vectors[:, 0]))
        >>> model(tf.constant(["A text.", "Another."])).shape
        TensorShape([2, 2])
    """

    def __init__(self, config: EncoderConfig | Mapping[str, Any], vocabulary: Sequence[str],
                 normalization: Mapping[str, Any], *, max_length: int | None = None,
                 encoder: Encoder | None = None, seed: int = 0, **options: Any):
        super().__init__(**options)
        config = config if isinstance(config, EncoderConfig) else EncoderConfig(**config)
        positions = config.max_position_embeddings
        require(len(vocabulary) == config.vocab_size, "vocabulary",
                f"a list of config.vocab_size={config.vocab_size} tokens", len(vocabulary))
        max_length = positions if max_length is None else max_length
        require(3 <= max_length <= positions, "max_length", f"in [3, {positions}]", max_length)
        self.config, self._seed = config, seed
        self._text = TextSettings(vocabulary=Vocabulary(tuple(vocabulary)),
                                  normalization=Normalization(**normalization))
        self._row_encoder = RowEncoder(self._text, max_length, config.type_vocab_size)
        self._encoder = encoder or create_encoder(
            config, LayerOptions(seed=seed, policy=self.dtype_policy.name))
        self._training_calls = self.add_weight(
            name="training_calls", shape=[], dtype=tf.int64, initializer="zeros", trainable=False)
        self.built = True

    @tf.autograph.experimental.do_not_convert  # AutoGraph would change the type of errors.
    def call(self, inputs: Any, training: bool | None = None, *,
             output_hidden_states: bool = False,
             output_attentions: bool = False) -> tf.Tensor | EncoderOutputs:
        """Encodes texts or ids.

        Args:
            inputs: Texts, string [B]; pairs of texts, string [B, 2] or two tensors of string [B];
                token ids, integers [B, L], ragged or padded with [PAD]; or a mapping with "ids" and
                optionally "segment_ids" and "padding_mask", [B, L] each, also by the names of
                Hugging Face: "input_ids", "token_type_ids", "attention_mask". In Python, `["a",
                "b"]` is two texts and `[("a", "b")]` is one pair. Graphs leave out bytes of texts
                that are not UTF-8, as Google's code does; outside of graphs they are an error.
            training: True applies dropout.
            output_hidden_states: True also returns the vectors of the embeddings and every layer.
            output_attentions: True also returns the attention weights, before dropout.

        Returns:
            float32 [B, L, H], with the mask of Keras. If more is asked for, a named tuple of
            `last_hidden_state`, `hidden_states`, [B, L, H] each, and `attentions`, [B, A, L, L]
            each; the last two are empty tuples if they are not asked for.
        """
        tokens = self.tokens(inputs)
        rng = Rng(
            seed=self._seed, step=self._training_calls.assign_add(1),
            first_example=tf.zeros([], tf.int64)) if training else None
        if output_attentions and self.config.is_modern:
            raise UserError("output_attentions needs all scores of a layer, which local attention "
                            f"of model.architecture={self.config.architecture} does not compute; "
                            "leave it out.")
        # The vectors of every layer, and its attention weights.
        with inference_mode():
            layers, attentions = self._encoder.all_layers(*tokens, rng), ()
            if output_attentions:
                bias = self._encoder.mask(tokens.padding_mask, tf.float32)
                rotation = self._encoder.rotation(tf.shape(tokens.ids)[1])
                attentions = tuple(block.attention.probabilities(inputs, bias, rotation)
                                   for block, inputs in zip(self._encoder.encoder_layers, layers,
                                                            strict=False))
        vectors = tuple(tf.cast(layer, tf.float32) for layer in layers)
        vectors[-1]._keras_mask = tokens.padding_mask
        if not (output_hidden_states or output_attentions):
            return vectors[-1]
        return EncoderOutputs(vectors[-1], vectors if output_hidden_states else (), attentions)

    def save_pretrained(self, directory: str | os.PathLike[str]) -> None:
        """Writes a new directory in Hugging Face's format.

        transformers' AutoModel, converters and `run_finetuning.py --init_checkpoint` read it.
        """
        weights = {variable.name[variable.name.rindex(ENCODER):].split(":")[0]: variable.numpy()
                   for variable in self._encoder.variables}  # Without outer scopes.
        with atomic_directory(storage.path(directory)) as unfinished:
            hugging_face.write_encoder(Checkpoint(
                source=self.name, config=ModelConfig(**dataclasses.asdict(self.config)),
                text=self._text, weights=weights), unfinished)

    def tokens(self, inputs: Any) -> Tokens:
        """Returns the ids, segment ids and the padding mask, [B, L] each, that `call` encodes."""
        if _is_in_keras_3(inputs):
            raise UserError("ElectraEncoder is a layer of tf_keras, and a model of Keras 3 (keras, "
                            "tf.keras) would not train it; use tf_keras for the whole model.")
        # Texts, or a tensor of ids, or parts by name.
        pad_id = self._text.vocabulary.pad_id
        if not isinstance(inputs, Mapping):
            columns = columns_of(inputs, pad_id)
            if columns[0].dtype == tf.string:
                return self._row_encoder.encode(*columns)
            inputs = {"ids": columns[0]}
        named = {HUGGING_FACE_NAMES.get(name, name): value for name, value in inputs.items()}
        if len(named) < len(inputs) or "ids" not in named or named.keys() - set(Tokens._fields):
            raise UserError("inputs must have the key ids, and may have segment_ids and "
                            f"padding_mask (or {', '.join(HUGGING_FACE_NAMES)}). Received: "
                            f"{', '.join(map(str, inputs))}")

        # Ids [B, L], whose length may be known only when the graph runs.
        ids, max_length = _to_tensor(named["ids"], pad_id), self.config.max_position_embeddings
        if not ids.dtype.is_integer or ids.shape.rank != 2 or (ids.shape[1] or 0) > max_length:
            raise UserError("ids must be integers [B, L], as Input([None], dtype='int32') has, "
                            f"with L at most {max_length}. Received: {ids.dtype.name} {ids.shape}")
        if ids.shape[1] is None:
            with tf.control_dependencies([tf.debugging.assert_less_equal(
                    tf.shape(ids)[1], max_length,
                    "rows of ids are longer than the encoder reads")]):
                ids = tf.identity(ids)

        # The other parts, which default to one segment and to [PAD] as padding.
        segment_ids = _to_tensor(named.get("segment_ids", tf.zeros_like(ids)))
        padding_mask = _to_tensor(named.get("padding_mask", ids != pad_id))
        for name, values in (("segment_ids", segment_ids), ("padding_mask", padding_mask)):
            if not values.shape.is_compatible_with(ids.shape):
                raise UserError(f"{name} must have the shape of ids, {ids.shape}. Received: "
                                f"{values.shape}")
        return Tokens(_require_range(ids, self.config.vocab_size, "ids"),
                      _require_range(segment_ids, self.config.type_vocab_size, "segment_ids"),
                      tf.cast(padding_mask, tf.bool))

    @property
    def blocks(self) -> list[Any]:
        """The layers from the embeddings up; a layer with `trainable = False` is frozen."""
        network = self._encoder
        return [block for block in (network.embeddings, network.embeddings_project,
                                    *network.encoder_layers) if block is not None]

    def __repr__(self) -> str:
        return f"<ElectraEncoder {self.name!r}, a layer of tf_keras; use tf_keras for its model>"

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of an equal layer, without weights, for `from_config`."""
        return super().get_config() | {
            "config": dataclasses.asdict(self.config),
            "vocabulary": list(self._text.vocabulary.tokens),
            "normalization": dataclasses.asdict(self._text.normalization),
            "max_length": self._row_encoder.max_length, "seed": self._seed}


def columns_of(inputs: Any, pad_id: int) -> Sequence[tf.Tensor]:
    """Returns a tensor of ids, or one or two columns of texts, string [B]; raises `UserError`."""
    if isinstance(inputs, tuple) and any(isinstance(value, str | bytes) for value in inputs):
        raise UserError("a tuple of strings is ambiguous; write [('a', 'b')] for one pair of texts "
                        f"and ['a', 'b'] for two texts. Received: {shown(inputs)}")
    refuse_columns(inputs)
    if isinstance(inputs, list | tuple) and inputs and all(
            isinstance(value, tf.Tensor | np.ndarray) and value.shape != () for value in inputs):
        columns = list(map(_to_tensor, inputs))
        if columns[0].dtype == tf.string:
            texts = [_flatten_texts(column) for column in columns]
            if len(texts) != 2 or not texts[0].shape.is_compatible_with(texts[1].shape):
                raise UserError("a list of tensors must be the first and the second texts of "
                                "pairs, string [B] each; give texts as one tensor. Received: "
                                f"shapes {', '.join(str(column.shape) for column in columns)}")
            return texts
    values = _to_tensor(inputs, pad_id)
    if values.dtype != tf.string:
        return [values]
    if values.shape.rank == 2 and values.shape[1] == 2:
        return tf.unstack(values, axis=1)
    return [_flatten_texts(values)]


def _flatten_texts(texts: tf.Tensor) -> tf.Tensor:
    if texts.shape.rank is None:
        return tf.ensure_shape(texts, [None])
    if texts.shape.rank and texts.shape[1:].num_elements() != 1:
        raise UserError("texts must have shape [B], or [B, 2] for pairs, or be two tensors [B]. "
                        f"Received: {texts.shape}")
    return tf.reshape(texts, [-1])


def _is_in_keras_3(inputs: Any) -> bool:
    """Returns True for inputs of Keras 3, and inside its layers and training steps."""
    state = sys.modules.get("keras.src.backend.common.global_state")
    in_layer = state is not None and state.get_global_attribute("current_call_ctx") is not None
    graph = tf.compat.v1.get_default_graph()
    # In Keras 3 this function runs a step.
    while hasattr(graph, "outer_graph") and graph.name != "one_step_on_data":
        graph = graph.outer_graph
    return in_layer or hasattr(graph, "outer_graph") or any(
        type(value).__module__.startswith("keras.") for value in tf.nest.flatten(inputs))


def _to_tensor(values: Any, padding: int = 0) -> tf.Tensor:
    """Returns a tensor; rows of a ragged tensor of integers are padded."""
    try:
        if isinstance(values, tf.RaggedTensor) and values.dtype.is_integer:
            return values.to_tensor(padding)
        tensor = tf.convert_to_tensor(values)
    except (TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError("inputs must be texts, or rows of ids of one length or in a RaggedTensor. "
                        f"Received: {shown(values)} ({reason})") from error
    if tensor.dtype == tf.string and GraphOrParentsInXlaContext(
            tf.compat.v1.get_default_graph()):
        raise UserError("XLA has no strings, and TensorFlow would abort: leave out "
                        "jit_compile=True, or give ids by dataset.map(electra.tokenizer).")
    if tensor.dtype == tf.string and tensor.shape.rank and tf.executing_eagerly():
        to_list(tensor)  # Decodes texts.
    return tensor


def _require_range(values: tf.Tensor, size: int, name: str) -> tf.Tensor:
    """Returns integers as int32; they must be from 0 to `size` - 1, as the graph checks later."""
    values = tf.cast(values, tf.int64)
    in_range = tf.reduce_all((values >= 0) & (values < size))
    message = f"{name} must be from 0 to {size - 1}. Received:"
    if tf.executing_eagerly() and not in_range:
        raise UserError(f"{message} {values.numpy().min()} to {values.numpy().max()}")
    with tf.control_dependencies([tf.debugging.Assert(in_range, [message, values])]):
        return tf.cast(values, tf.int32)
