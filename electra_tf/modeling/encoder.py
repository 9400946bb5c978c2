"""The Transformer encoder of BERT (Devlin et al., 2019), as ELECTRA uses it."""

import functools
from collections.abc import Callable

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling import weight_table
from electra_tf.modeling.attention import SelfAttention, attention_bias
from electra_tf.modeling.fused import dimensions, dropout
from electra_tf.modeling.layers import (
    Build,
    Dense,
    EmbeddingTable,
    GeluDense,
    LayerNorm,
    Parts,
)
from electra_tf.modeling.randomness import Randomness, dropout_keys


class Embeddings(tf_keras.layers.Layer):
    """Sum of word, position and segment vectors, then layer norm and dropout.

    The generator and the discriminator share the whole layer or, with only the token embeddings
    tied, one `EmbeddingTable` of words (ELECTRA, section 3.2).
    """

    def __init__(self, path: str, config: EncoderConfig, build: Build,
                 words: EmbeddingTable | None = None):
        """Creates the tables; `words` is used instead of a new word table when given."""
        super().__init__(name=path, dtype=build.policy)
        self.dropout_rate = config.hidden_dropout
        parts = Parts(weight_table.embeddings(path, config), build, config.initializer_range)
        self.words = words or parts.table(f"{path}/word_embeddings")
        self.segments = parts.table(f"{path}/token_type_embeddings")
        self.positions = parts.table(f"{path}/position_embeddings")
        self.norm = parts.norm(f"{path}/LayerNorm")

    def call(self, ids: tf.Tensor, segment_ids: tf.Tensor,
             randomness: Randomness | None) -> tf.Tensor:
        """Maps tokens and segments, int32 [B, L], to vectors [B, L, E] of the compute type.

        `randomness` is None outside of training.
        """
        length = dimensions(ids)[1]
        # A matmul instead of a second lookup: its gradient sums rows without a scatter.
        segments = tf.one_hot(segment_ids, self.segments.table.shape[0], dtype=tf.float32)
        vectors = (self.words(ids) + self.positions.table[:length]
                   + tf.linalg.matmul(segments, self.segments.table))
        keys = dropout_keys(randomness, self.name, dimensions(ids)[0])
        return dropout(self.norm(vectors), self.dropout_rate, keys)


class EncoderLayer(tf_keras.layers.Layer):
    """Self-attention and feed-forward, each with dropout, residual sum and layer norm."""

    def __init__(self, path: str, config: EncoderConfig, build: Build):
        super().__init__(name=path, dtype=build.policy)
        parts = Parts(weight_table.layer(path, config), build, config.initializer_range)
        self.dropout_rate = config.hidden_dropout
        self.attention = SelfAttention(f"{path}/attention/self", config, parts)
        self.attention_output = parts.dense(f"{path}/attention/output/dense")
        self.attention_norm = parts.norm(f"{path}/attention/output/LayerNorm")
        self.intermediate = parts.dense(f"{path}/intermediate/dense", GeluDense)
        self.output_dense = parts.dense(f"{path}/output/dense")
        self.output_norm = parts.norm(f"{path}/output/LayerNorm")

    def call(self, x: tf.Tensor, bias: tf.Tensor, randomness: Randomness | None,
             positions: int | None = None) -> tf.Tensor:
        """Maps [B, L, H] to [B, L, H], or to [B, positions, H]; arguments as in `SelfAttention`."""
        attended = self.attention(x, bias, randomness, positions)
        x = x if positions is None else x[:, :positions]
        x = self._add_and_normalize(x, attended, self.attention_output, self.attention_norm,
                                    randomness, "attention")
        return self._add_and_normalize(x, self.intermediate(x), self.output_dense,
                                       self.output_norm, randomness, "output")

    def _add_and_normalize(self, x: tf.Tensor, branch: tf.Tensor, dense: Dense, norm: LayerNorm,
                           randomness: Randomness | None, stream: str) -> tf.Tensor:
        """Returns norm(x + dropout(dense(branch)))."""
        keys = dropout_keys(randomness, f"{self.name}/{stream}", dimensions(x)[0])
        return norm.add_and_normalize(x, dense.product(branch), tf.convert_to_tensor(dense.bias),
                                      self.dropout_rate, keys)


class Encoder(tf_keras.layers.Layer):
    """Token ids in, one hidden vector per position out."""

    def __init__(self, path: str, config: EncoderConfig, build: Build, embeddings: Embeddings,
                 mask: Callable[[tf.Tensor, tf.DType], tf.Tensor] = attention_bias):
        """Creates the projection and the layers above embeddings of its own or shared ones.

        `mask` makes the bias of `SelfAttention` from bool [B, L] and a type.
        """
        super().__init__(name=path, dtype=build.policy)
        self.config = config
        self.recompute = build.recompute
        self.mask = mask
        self.embeddings = embeddings
        project = f"{path}/embeddings_project"
        size = weight_table.encoder(path, config).get(f"{project}/kernel")
        self.embeddings_project = None if size is None else Dense(
            project, *size, seed=build.seed, policy=build.policy)
        self.encoder_layers = [EncoderLayer(f"{path}/encoder/layer_{index}", config, build)
                               for index in range(config.num_layers)]

    def call(self, ids: tf.Tensor, segment_ids: tf.Tensor, valid: tf.Tensor,
             randomness: Randomness | None = None, positions: int | None = None) -> tf.Tensor:
        """Maps ids and segments int32 [B, L], valid bool [B, L] to [B, L, H] of the compute type.

        The last layer may compute the first `positions` only: [B, positions, H]. Training needs a
        static shape and randomness for dropout.
        """
        return self.all_layers(ids, segment_ids, valid, randomness, positions)[-1]

    def first(self, ids: tf.Tensor, segment_ids: tf.Tensor, valid: tf.Tensor,
              randomness: Randomness | None = None) -> tf.Tensor:
        """Returns the vectors [B, H] of [CLS] alone; arguments as for `call`."""
        return tf.squeeze(self(ids, segment_ids, valid, randomness, positions=1), axis=1)

    def all_layers(self, ids: tf.Tensor, segment_ids: tf.Tensor, valid: tf.Tensor,
                   randomness: Randomness | None = None,
                   positions: int | None = None) -> list[tf.Tensor]:
        """Returns the embedding output and every layer's, first to last; arguments as above."""
        x = self.embeddings(ids, segment_ids, randomness)
        if self.embeddings_project is not None:
            x = self.embeddings_project(x)
        outputs = [x]
        bias = self.mask(valid, x.dtype)
        for layer in self.encoder_layers:
            run = functools.partial(
                layer, bias=bias, randomness=randomness,
                positions=positions if layer is self.encoder_layers[-1] else None)
            if self.recompute and randomness is not None:
                run = tf.recompute_grad(run)
            outputs.append(run(outputs[-1]))
        return outputs
