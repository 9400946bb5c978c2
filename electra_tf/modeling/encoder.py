"""The Transformer encoder of BERT (Devlin et al., 2019), as ELECTRA uses it."""

import functools
from collections.abc import Callable

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling import weight_table
from electra_tf.modeling.attention import SelfAttention, attention_bias
from electra_tf.modeling.embeddings import Embeddings
from electra_tf.modeling.layers import Dense, GeluDense, LayerNorm
from electra_tf.modeling.randomness import Randomness, dropout_keys


class EncoderLayer(tf_keras.layers.Layer):
    """Self-attention and feed-forward, each with dropout, residual sum and layer norm."""

    def __init__(self, path: str, config: EncoderConfig, *, seed: int, policy: str):
        super().__init__(name=path, dtype=policy)
        shapes = weight_table.layer(path, config)
        self.dropout_rate = config.hidden_dropout
        self.attention = SelfAttention(f"{path}/attention/self", config, shapes, seed=seed,
                                       policy=policy)

        def dense(name: str, kind: type[Dense] = Dense) -> Dense:
            return kind(f"{path}/{name}", *shapes[f"{path}/{name}/kernel"], seed=seed,
                        policy=policy, stddev=config.initializer_range)

        def norm(name: str) -> LayerNorm:
            return LayerNorm(f"{path}/{name}", *shapes[f"{path}/{name}/gamma"], policy=policy)

        self.attention_output = dense("attention/output/dense")
        self.attention_norm = norm("attention/output/LayerNorm")
        self.intermediate = dense("intermediate/dense", GeluDense)
        self.output_dense = dense("output/dense")
        self.output_norm = norm("output/LayerNorm")

    def call(self, x: tf.Tensor, bias: tf.Tensor, randomness: Randomness | None,
             positions: int | None = None) -> tf.Tensor:
        """Maps [B, L, H] to [B, L, H]; `bias`, as in `SelfAttention`, hides keys.

        With `positions`, only so many are computed, from the first.
        """
        attended = self.attention(x, bias, randomness, positions)
        x = x if positions is None else x[:, :positions]
        x = self._add_and_normalize(x, attended, self.attention_output, self.attention_norm,
                                    randomness, "attention")
        return self._add_and_normalize(x, self.intermediate(x), self.output_dense,
                                       self.output_norm, randomness, "output")

    def _add_and_normalize(self, x: tf.Tensor, branch: tf.Tensor, dense: Dense, norm: LayerNorm,
                           randomness: Randomness | None, stream: str) -> tf.Tensor:
        """Returns norm(x + dropout(dense(branch)))."""
        keys = dropout_keys(randomness, f"{self.name}/{stream}", x.shape[0])
        return norm.add_and_normalize(x, dense.product(branch), tf.convert_to_tensor(dense.bias),
                                      self.dropout_rate, keys)


class Encoder(tf_keras.layers.Layer):
    """Token ids in, one hidden vector per position out."""

    def __init__(self, path: str, config: EncoderConfig, *, seed: int, policy: str,
                 embeddings: Embeddings, recompute: bool = False,
                 mask: Callable[[tf.Tensor, tf.DType], tf.Tensor] = attention_bias):
        """Creates the projection and the layers.

        Args:
            path: full name of the encoder.
            config: its sizes.
            seed: of the run.
            policy: Keras mixed-precision policy.
            embeddings: below the layers, shared or its own.
            recompute: in training, keep only what goes into a layer and compute the rest again
                for the gradient (Chen et al., 2016).
            mask: makes the bias of `SelfAttention` from bool [B, L] and a type.
        """
        super().__init__(name=path, dtype=policy)
        self.config = config
        self.recompute = recompute
        self.mask = mask
        self.embeddings = embeddings
        project = f"{path}/embeddings_project"
        size = weight_table.encoder(path, config).get(f"{project}/kernel")
        self.embeddings_project = None if size is None else Dense(
            project, *size, seed=seed, policy=policy)
        self.encoder_layers = [
            EncoderLayer(f"{path}/encoder/layer_{index}", config, seed=seed, policy=policy)
            for index in range(config.num_layers)
        ]

    def call(self, ids: tf.Tensor, segment_ids: tf.Tensor, valid: tf.Tensor,
             randomness: Randomness | None = None, positions: int | None = None) -> tf.Tensor:
        """Encodes a batch; training needs a static shape.

        Args:
            ids: int32 [B, L].
            segment_ids: int32 [B, L], 0 or 1.
            valid: bool [B, L], False on padding.
            randomness: for dropout; None outside of training.
            positions: how many the last layer computes, from the first; all if None.

        Returns:
            [B, L, H] of the compute type, or [B, positions, H].
        """
        return self.all_layers(ids, segment_ids, valid, randomness, positions)[-1]

    def first(self, ids: tf.Tensor, segment_ids: tf.Tensor, valid: tf.Tensor,
              randomness: Randomness | None = None) -> tf.Tensor:
        """Like `call`, but returns the vectors [B, H] of [CLS] alone."""
        return tf.squeeze(self(ids, segment_ids, valid, randomness, positions=1), axis=1)

    def all_layers(self, ids: tf.Tensor, segment_ids: tf.Tensor, valid: tf.Tensor,
                   randomness: Randomness | None = None,
                   positions: int | None = None) -> list[tf.Tensor]:
        """Like `call`, but returns the embedding output and every layer's, first to last."""
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
