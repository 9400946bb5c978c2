"""The encoder as a layer of tf_keras."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling.electra import electra_encoder
from electra_tf.modeling.encoder import Encoder
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.randomness import Randomness
from electra_tf.text.normalization import Normalization
from electra_tf.text.rows import RowEncoder, Tokens
from electra_tf.text.tokenization import TextSettings
from electra_tf.text.vocabulary import Vocabulary


@tf_keras.utils.register_keras_serializable("electra_tf")
class ElectraEncoder(tf_keras.layers.Layer):
    """An ELECTRA encoder for tf_keras models: texts or token ids in, one vector per token out.

    It trains under `fit` with dropout, takes batches and rows of any size, and is saved and loaded
    with the model around it, vocabulary included. Get a trained one from `electra_tf.load`.

    Args:
        config: sizes, as an `EncoderConfig` or its fields.
        vocabulary: WordPiece tokens in the order of their ids.
        normalization: fields of `Normalization`.
        max_length: longest row in tokens; longer texts are cut. Defaults to the longest row that
            the encoder can read.
        encoder: the network, with its weights; a new one is created by default.
        seed: of initial weights and dropout.
        **options: name and data type, for `tf_keras.layers.Layer`.

    Example:
        >>> import tensorflow as tf, tf_keras
        >>> texts = tf_keras.Input([], dtype=tf.string)
        >>> vectors = electra.encoder(texts)               # [B, L, H]
        >>> scores = tf_keras.layers.Dense(2)(vectors[:, 0])
        >>> classifier = tf_keras.Model(texts, scores)
        >>> classifier(tf.constant(["A text.", "Another."])).shape
        TensorShape([2, 2])
    """

    def __init__(self, config: EncoderConfig | Mapping[str, Any], vocabulary: Sequence[str],
                 normalization: Mapping[str, bool], *, max_length: int | None = None,
                 encoder: Encoder | None = None, seed: int = 0, **options: Any):
        options.setdefault("name", "electra_encoder")
        super().__init__(**options)
        config = config if isinstance(config, EncoderConfig) else EncoderConfig(**config)
        self.config, self._seed = config, seed
        self._text = TextSettings(vocabulary=Vocabulary(tuple(vocabulary)),
                                  normalization=Normalization(**normalization))
        self._rows = RowEncoder(self._text, max_length or config.max_position_embeddings)
        self._encoder = encoder or electra_encoder(config, seed=seed, policy="float32")
        self._training_calls = self.add_weight(
            name="training_calls", shape=[], dtype=tf.int64, initializer="zeros", trainable=False)
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        """Encodes texts or ids.

        Args:
            inputs: texts, string [B]; or token ids, int [B, L], padded with the vocabulary's
                [PAD]; or a mapping with "ids" and optionally "segment_ids" and "valid".
            training: apply dropout.

        Returns:
            float32 [B, L, H], with the mask of Keras.
        """
        tokens = self.tokens(inputs)
        randomness = self._randomness() if training else None
        with inference_mode():
            hidden = self._encoder(*tokens, randomness)
        hidden = tf.cast(hidden, tf.float32)
        hidden._keras_mask = tokens.valid
        return hidden

    def tokens(self, inputs: Any) -> Tokens:
        """Returns the ids, segment ids and valid positions, [B, L] each, that `call` encodes."""
        if not isinstance(inputs, Mapping):
            inputs = tf.convert_to_tensor(inputs)
            if inputs.dtype == tf.string:
                return self._rows.encode(tf.reshape(inputs, [-1]))
            inputs = {"ids": inputs}
        ids = tf.cast(inputs["ids"], tf.int32)
        segment_ids = inputs.get("segment_ids")
        valid = inputs.get("valid")
        return Tokens(
            ids, tf.zeros_like(ids) if segment_ids is None else tf.cast(segment_ids, tf.int32),
            ids != self._text.vocabulary.pad_id if valid is None else tf.cast(valid, tf.bool))

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` creates an equal layer from, without weights."""
        return super().get_config() | {
            "config": dataclasses.asdict(self.config),
            "vocabulary": list(self._text.vocabulary.tokens),
            "normalization": dataclasses.asdict(self._text.normalization),
            "max_length": self._rows.max_length, "seed": self._seed}

    def _randomness(self) -> Randomness:
        call = self._training_calls.assign_add(1)
        return Randomness(seed=self._seed, step=call, first_example=tf.zeros([], tf.int64))
