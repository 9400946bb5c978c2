"""The Transformer encoder of BERT (Devlin et al., 2019), as ELECTRA uses it."""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig, Positions
from electra_tf.modeling import fused, parameter_shapes
from electra_tf.modeling.fused import dimensions
from electra_tf.modeling.layers import (
    Dense,
    EmbeddingTable,
    LayerFactory,
    LayerOptions,
    Pair,
    matmul,
)
from electra_tf.modeling.modern import LayerInputs, ModernLayer, layer_inputs
from electra_tf.modeling.parameter_shapes import ENCODER
from electra_tf.modeling.rng import Rng, Streams, dropout_keys
from electra_tf.modeling.rotary import Rotation, rotation


def attention_bias(padding_mask: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Maps bool [B, L] to [B, 1, 1, L]: 0 for valid keys, -10000 for padding."""
    mask_bias = (1.0 - tf.cast(padding_mask, dtype)) * tf.cast(fused.MASKED_SCORE, dtype)
    # TensorFlow Lite has no tf.newaxis for unknown sizes.
    return tf.expand_dims(tf.expand_dims(mask_bias, 1), 1)


class Embeddings(tf_keras.layers.Layer):
    """The sum of word, position and segment vectors, then layer norm and dropout.

    Rotary positions have no table, and ModernBERT has no segments either. The generator and the
    discriminator share the whole layer or, with only the token embeddings tied, one
    `EmbeddingTable` of words (ELECTRA, section 3.2).
    """

    def __init__(self, path: str, config: EncoderConfig, options: LayerOptions,
                 words: EmbeddingTable | None = None):
        """Creates the tables; `words`, if given, replaces a new word table."""
        super().__init__(name=path, dtype=options.policy)
        self.dropout_rate = config.hidden_dropout
        layers = LayerFactory(parameter_shapes.embeddings(path, config), options,
                              config.initializer_range, config.layer_norm_epsilon)
        self.words = words or layers.table(f"{path}/word_embeddings")
        self.segments = (None if config.is_modern
                         else layers.table(f"{path}/token_type_embeddings"))
        self.positions = (layers.table(f"{path}/position_embeddings")
                          if config.positions == Positions.LEARNED else None)
        self.norm = layers.norm(f"{path}/LayerNorm")

    def call(self, ids: tf.Tensor, segment_ids: tf.Tensor, rng: Rng | None) -> tf.Tensor:
        """Maps tokens and segments, int32 [B, L], to vectors [B, L, E] of the compute type.

        `rng` is for dropout, None outside of training.
        """
        length = dimensions(ids)[1]
        vectors = self.words(ids)
        if self.positions is not None:
            vectors += self.positions.table[:length]
        if self.segments is not None:
            # The gradient of a matmul sums rows without the scatter that a lookup's needs. An
            # encoder of one segment reads both segments of records as that one.
            count = self.segments.table.shape[0]
            segments = tf.one_hot(tf.minimum(segment_ids, count - 1), count, dtype=tf.float32)
            vectors += tf.linalg.matmul(segments, self.segments.table)
        keys = dropout_keys(rng, self.name, dimensions(ids)[0])
        return fused.dropout(self.norm(vectors), self.dropout_rate, keys)


class SelfAttention(tf_keras.layers.Layer):
    """The dense layers of attention for queries, keys and values; `run_layer` runs them."""

    def __init__(self, path: str, config: EncoderConfig, layers: LayerFactory):
        """Creates the three dense layers."""
        super().__init__(name=path, dtype=layers.options.policy)
        self.num_heads = config.num_heads
        self.query, self.key, self.value = (
            layers.dense(f"{path}/{name}") for name in ("query", "key", "value"))

    def parameters(self) -> list[Pair]:
        """Returns W and b of queries, keys and values; those of queries are divided by sqrt(D)."""
        kernel, bias = self.query.parameters()
        scale = tf.cast((kernel.shape[0] // self.num_heads)**-0.5, kernel.dtype)
        return [(kernel * scale, bias * scale), self.key.parameters(), self.value.parameters()]

    def probabilities(self, x: tf.Tensor, mask_bias: tf.Tensor,
                      rotation: Rotation | None = None) -> tf.Tensor:
        """Returns the attention weights before dropout, float32 [B, A, L, L]."""
        # softmax(Q K^T / sqrt(D) + mask), in float32 also where training computes in bfloat16.
        query, key = _project(tf.cast(x, tf.float32), self.parameters()[:2], self.num_heads,
                              rotation, rotated=2)
        return tf.nn.softmax(tf.matmul(query, key, transpose_b=True) + tf.cast(mask_bias,
                                                                               tf.float32))


class EncoderLayer(tf_keras.layers.Layer):
    """Self-attention and a feed-forward network, each with dropout, residual sum and layer norm."""

    def __init__(self, path: str, config: EncoderConfig, options: LayerOptions):
        super().__init__(name=path, dtype=options.policy)
        layers = LayerFactory(parameter_shapes.layer(path, config), options,
                              config.initializer_range)
        self.config = config
        self.attention = SelfAttention(f"{path}/attention/self", config, layers)
        self.attention_output = layers.dense(f"{path}/attention/output/dense")
        self.attention_norm = layers.norm(f"{path}/attention/output/LayerNorm")
        self.intermediate = layers.dense(f"{path}/intermediate/dense")
        self.output_dense = layers.dense(f"{path}/output/dense")
        self.output_norm = layers.norm(f"{path}/output/LayerNorm")

    def call(self, x: tf.Tensor, mask_bias: tf.Tensor, rng: Rng | None,
             positions: int | None = None, rotation: Rotation | None = None) -> tf.Tensor:
        """Maps [B, L, H] to [B, L, H], or to [B, positions, H] if only the first positions attend.

        `mask_bias` [B, 1, 1, L] or [B, 1, L, L] is added to the scores. `rng` is for dropout,
        None outside of training. `rotation` has the angles of L rotary positions.
        """
        weights = LayerWeights(*self.attention.parameters(), *(part.parameters() for part in (
            self.attention_output, self.attention_norm, self.intermediate, self.output_dense,
            self.output_norm)))
        streams = None if rng is None else rng.streams(
            self.attention.name, f"{self.name}/attention", f"{self.name}/output")
        return run_layer(x, mask_bias, weights, streams, self.config, positions, rotation)


class LayerWeights(NamedTuple):
    """The weights of an `EncoderLayer`, as pairs (kernel, bias) or (gamma, beta).

    The first three are those of `SelfAttention.parameters`.
    """

    query: Pair
    key: Pair
    value: Pair
    attention_output: Pair
    attention_norm: Pair
    intermediate: Pair
    output_dense: Pair
    output_norm: Pair


@fused.traced_once
def run_layer(x: tf.Tensor, mask_bias: tf.Tensor, weights: LayerWeights, streams: Streams | None,
              config: EncoderConfig, positions: int | None, rotation: Rotation | None) -> tf.Tensor:
    """Computes an `EncoderLayer`, as a function of its weights: one graph for all layers.

    `streams` are those of dropout in attention, after it and at the end; the other arguments are
    those of `EncoderLayer`. With a graph for each layer ELECTRA-Small starts seconds later.
    """
    # The keys of the three dropout masks, uint32 [B, 2] each.
    keys = [None] * 3 if streams is None else streams.dropout_keys(dimensions(x)[0])

    # softmax(Q K^T / sqrt(D)) V per head, D = H / A (Vaswani et al., 2017, section 3.2).
    if positions is None:
        query, key, value = _project(x, weights[:3], config.num_heads, rotation, rotated=2)
    else:
        first = None if rotation is None else rotation.first(positions)
        (query,) = _project(x[:, :positions], weights[:1], config.num_heads, first, rotated=1)
        key, value = _project(x, weights[1:3], config.num_heads, rotation, rotated=1)
        x = x[:, :positions]
    scores = tf.matmul(query, key, transpose_b=True)  # [B, A, Q, L], Q queries of each head.
    heads = fused.attend(scores, mask_bias, value, config.attention_dropout, keys[0])

    # The heads side by side, [B, Q, H], and x = layer_norm(x + dropout(heads W + b)).
    kernel, bias = weights.attention_output
    branch = matmul(tf.reshape(tf.transpose(heads, [0, 2, 1, 3]), dimensions(x)), kernel)
    x = fused.residual_norm(
        x, branch, bias, *weights.attention_norm, config.hidden_dropout, keys[1])

    # The feed-forward network, x = layer_norm(x + dropout(gelu(x W1 + b1) W2 + b2)).
    kernel, bias = weights.intermediate
    expanded = fused.gelu(matmul(x, kernel), bias)
    kernel, bias = weights.output_dense
    branch = matmul(expanded, kernel)
    return fused.residual_norm(
        x, branch, bias, *weights.output_norm, config.hidden_dropout, keys[2])


def _project(x: tf.Tensor, projections: Sequence[Pair], num_heads: int,
             rotation: Rotation | None, *, rotated: int) -> list[tf.Tensor]:
    """Maps [B, L, H] to queries, keys or values, [B, A, L, D] for each of the projections.

    Rotary positions turn the first `rotated` of them.

    They come from one matmul, transposed so that each is contiguous. The split and its gradient
    then copy no data.
    """
    # One matmul [B * L, H] x [H, P * H] for the P projections, then [P, B, A, L, D].
    kernels, biases = zip(*projections, strict=True)
    joint = tf.matmul(tf.reshape(x, [-1, x.shape[-1]]), tf.concat(kernels, axis=1))
    return tf.unstack(fused.split_heads(
        joint, tf.concat(biases, axis=0), len(projections), num_heads, dimensions(x)[1], rotation,
        rotated))


class Encoder(tf_keras.layers.Layer):
    """A Transformer that maps token ids to one hidden vector per position."""

    def __init__(self, path: str, config: EncoderConfig, options: LayerOptions,
                 embeddings: Embeddings,
                 mask: Callable[[tf.Tensor, tf.DType], tf.Tensor] = attention_bias):
        """Creates the projection and the layers above the embeddings.

        `mask` returns the bias of `EncoderLayer` for valid tokens, bool [B, L], and a data type.
        """
        super().__init__(name=path, dtype=options.policy)
        self.config = config
        self.recompute = options.recompute
        self.mask = mask
        self.embeddings = embeddings
        project = f"{path}/embeddings_project"
        size = parameter_shapes.encoder(path, config).get(f"{project}/kernel")
        self.embeddings_project = None if size is None else Dense(
            project, *size, options, has_bias=not config.is_modern)
        paths = [f"{path}/encoder/layer_{index}" for index in range(config.num_layers)]
        self.encoder_layers = [
            ModernLayer(path, config, options, index) if config.is_modern
            else EncoderLayer(path, config, options) for index, path in enumerate(paths)]

    def assign(self, encoder: "Encoder") -> None:
        """Copies the weights of an encoder of the same sizes."""
        # By name, because Keras lists the weights of frozen layers last.
        weights = {variable.name: variable for variable in encoder.variables}
        for variable in self.variables:
            variable.assign(weights[variable.name])

    def rotation(self, length: int | tf.Tensor) -> Rotation | None:
        """Returns the angles of the first positions; None for learned positions."""
        config = self.config
        if config.positions == Positions.LEARNED:
            return None
        return rotation(config.max_position_embeddings, config.hidden_size // config.num_heads,
                        config.rotary_base).first(length)

    def call(self, ids: tf.Tensor, segment_ids: tf.Tensor, padding_mask: tf.Tensor,
             rng: Rng | None = None, positions: int | None = None) -> tf.Tensor:
        """Maps ids and segments int32 [B, L], padding_mask bool [B, L] to [B, L, H] of the compute
        type.

        With `positions` the last layer computes only the first ones, [B, positions, H]. Training
        needs a static shape, and `rng` for dropout.
        """
        return self.all_layers(ids, segment_ids, padding_mask, rng, positions)[-1]

    def first(self, ids: tf.Tensor, segment_ids: tf.Tensor, padding_mask: tf.Tensor,
              rng: Rng | None = None) -> tf.Tensor:
        """Returns the vectors [B, H] of [CLS] alone; arguments as for `call`."""
        return tf.squeeze(self(ids, segment_ids, padding_mask, rng, positions=1), axis=1)

    def all_layers(self, ids: tf.Tensor, segment_ids: tf.Tensor, padding_mask: tf.Tensor,
                   rng: Rng | None = None,
                   positions: int | None = None) -> list[tf.Tensor]:
        """Returns the embedding output and every layer's, first to last; arguments as above."""
        # Token vectors [B, L, E], projected to [B, L, H] if E differs from H.
        x = self.embeddings(ids, segment_ids, rng)
        if self.embeddings_project is not None:
            x = self.embeddings_project(x)

        # Every layer reads the output of the one below it.
        outputs = [x]
        if self.config.is_modern:
            inputs = layer_inputs(self.config, padding_mask, x.dtype, positions)
        else:
            inputs = [LayerInputs(self.mask(padding_mask, x.dtype), self.rotation(
                dimensions(ids)[1]))] * len(self.encoder_layers)
        for layer, (mask_bias, angles) in zip(self.encoder_layers, inputs, strict=True):
            run = functools.partial(
                layer, mask_bias=mask_bias, rng=rng, rotation=angles,
                positions=positions if layer is self.encoder_layers[-1] else None)
            if self.recompute and rng is not None:
                run = tf.recompute_grad(run)
            outputs.append(run(outputs[-1]))
        return outputs


def create_encoder(config: EncoderConfig, options: LayerOptions, path: str = ENCODER) -> Encoder:
    """Creates an encoder with embeddings of its own; by default the one that is fine-tuned."""
    return Encoder(path, config, options, Embeddings(f"{path}/embeddings", config, options))
