"""The encoder as a layer of tf_keras."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling.encoder import Encoder, own_encoder
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.layers import Build
from electra_tf.modeling.randomness import Randomness
from electra_tf.platform.errors import UserError
from electra_tf.text.rows import RowEncoder, Tokens
from electra_tf.text.tokenization import Normalization, TextSettings
from electra_tf.text.vocabulary import Vocabulary


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

    Example:
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
        longest = config.max_position_embeddings
        if len(vocabulary) != config.vocab_size:
            raise UserError(f"vocabulary must have config.vocab_size={config.vocab_size} tokens. "
                            f"Received: {len(vocabulary)}")
        if max_length is not None and not 3 <= max_length <= longest:
            raise UserError(f"max_length must be in [3, {longest}]. Received: {max_length}")
        self.config, self._seed = config, seed
        self._text = TextSettings(vocabulary=Vocabulary(tuple(vocabulary)),
                                  normalization=Normalization(**normalization))
        self._rows = RowEncoder(self._text, max_length or longest)
        self._encoder = encoder or own_encoder(
            config, Build(seed=seed, policy=self.dtype_policy.name))
        self._training_calls = self.add_weight(
            name="training_calls", shape=[], dtype=tf.int64, initializer="zeros", trainable=False)
        self.built = True

    @tf.autograph.experimental.do_not_convert  # AutoGraph would change the type of errors.
    def call(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        """Encodes texts or ids.

        Args:
            inputs: Texts, string [B]; or token ids, integers [B, L], ragged or padded with [PAD];
                or a mapping with "ids" and optionally "segment_ids" and "valid", [B, L] each.
            training: True applies dropout.

        Returns:
            float32 [B, L, H], with the mask of Keras.
        """
        tokens = self.tokens(inputs)
        randomness = Randomness(
            seed=self._seed, step=self._training_calls.assign_add(1),
            first_example=tf.zeros([], tf.int64)) if training else None
        with inference_mode():
            hidden = tf.cast(self._encoder(*tokens, randomness), tf.float32)
        hidden._keras_mask = tokens.valid
        return hidden

    def tokens(self, inputs: Any) -> Tokens:
        """Returns the ids, segment ids and valid positions, [B, L] each, that `call` encodes."""
        if not isinstance(inputs, Mapping):
            if isinstance(inputs, tf.RaggedTensor):
                inputs = inputs.to_tensor(self._text.vocabulary.pad_id)
            inputs = tf.convert_to_tensor(inputs)
            if inputs.dtype == tf.string:
                if inputs.shape.rank and inputs.shape[1:].num_elements() != 1:
                    raise UserError(f"texts must have shape [B]. Received: {inputs.shape}")
                return self._rows.encode(tf.reshape(inputs, [-1]))
            inputs = {"ids": inputs}
        if "ids" not in inputs or inputs.keys() - set(Tokens._fields):
            raise UserError("inputs must have the key ids, and may have segment_ids and valid. "
                            f"Received: {', '.join(map(str, inputs))}")
        ids, longest = tf.convert_to_tensor(inputs["ids"]), self.config.max_position_embeddings
        if not ids.dtype.is_integer or ids.shape.rank != 2 or (ids.shape[1] or 0) > longest:
            raise UserError("ids must be integers [B, L], as Input([None], dtype='int32') has, "
                            f"with L at most {longest}. Received: {ids.dtype.name} {ids.shape}")
        if ids.shape[1] is None:
            with tf.control_dependencies([tf.debugging.assert_less_equal(
                    tf.shape(ids)[1], longest, "rows of ids are longer than the encoder reads")]):
                ids = tf.identity(ids)
        segment_ids = inputs.get("segment_ids", tf.zeros_like(ids))
        valid = inputs.get("valid", ids != self._text.vocabulary.pad_id)
        return Tokens(*map(tf.cast, (ids, segment_ids, valid), (tf.int32, tf.int32, tf.bool)))

    @property
    def blocks(self) -> list[Any]:
        """The layers from the embeddings up; a layer with `trainable = False` is frozen."""
        network = self._encoder
        return [block for block in (network.embeddings, network.embeddings_project,
                                    *network.encoder_layers) if block is not None]

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of an equal layer, without weights, for `from_config`."""
        return super().get_config() | {
            "config": dataclasses.asdict(self.config),
            "vocabulary": list(self._text.vocabulary.tokens),
            "normalization": dataclasses.asdict(self._text.normalization),
            "max_length": self._rows.max_length, "seed": self._seed}
