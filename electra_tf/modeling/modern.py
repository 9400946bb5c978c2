"""The layers of ModernBERT (Warner et al., "Smarter, Better, Faster, Longer", 2024).

Layer norm comes before attention and before the feed-forward network, which is a GeGLU. Positions
are rotary, and no layer has biases. All layers but every third attend to a window of tokens:

    x = x + attention(norm(x)),  x = x + (gelu(norm(x) W1) * norm(x) W2) W3

The first layer's attention has no norm, as the embeddings end with one; the last layer ends with
one. Pairs of texts differ by [SEP] alone, as there are no segments.
"""

import dataclasses
import functools
from typing import NamedTuple

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling import fused, parameter_shapes
from electra_tf.modeling.fused import dimensions
from electra_tf.modeling.layers import LayerFactory, LayerNorm, LayerOptions, matmul
from electra_tf.modeling.rng import Rng, Streams
from electra_tf.modeling.rotary import Rotation, rotation

DENSE_WINDOWS = 2
"""Windows up to which local attention computes and masks all L x L scores."""


class LayerInputs(NamedTuple):
    """The mask and the angles that a layer reads besides the hidden vectors."""

    mask_bias: tf.Tensor
    """Added to scores: [B, 1, 1, L] or [B, 1, Q, L], or [B, 1, N, S, 3 S] for attention in N blocks
    of S queries, whose keys are those of the block and its two neighbors."""
    rotation: Rotation  # Of L positions.


def layer_inputs(config: EncoderConfig, padding_mask: tf.Tensor, dtype: tf.DType,
                 positions: int | None) -> list[LayerInputs]:
    """Returns the inputs of every layer for bool [B, L]; other arguments as for `ModernLayer`."""
    # Angles of layers with global and with local attention.
    length = dimensions(padding_mask)[1]
    longest = length if isinstance(length, int) else config.max_position_embeddings
    angles = [rotation(longest, config.hidden_size // config.num_heads, base).first(length)
              for base in (config.rotary_base, config.local_rotary_base)]

    # [B, 1, 1, L] hides padding from all; local layers also hide what is beyond the window.
    valid = tf.expand_dims(tf.expand_dims(padding_mask, 1), 1)
    reach = config.attention_window // 2
    everywhere = LayerInputs(_bias(valid, dtype), angles[0])
    nearby = LayerInputs(_local_bias(valid, reach, dtype), angles[1])
    inputs = [nearby if config.is_local(index) else everywhere
              for index in range(config.num_layers)]
    if positions is not None and config.is_local(config.num_layers - 1):
        inputs[-1] = LayerInputs(_bias(valid & _within(reach, positions, length), dtype), angles[1])
    return inputs


def _local_bias(valid: tf.Tensor, reach: int, dtype: tf.DType) -> tf.Tensor:
    """Returns the bias of attention to `reach` tokens on each side; `valid` is [B, 1, 1, L]."""
    length = dimensions(valid)[3]
    if isinstance(length, int) and length <= DENSE_WINDOWS * 2 * reach:
        return _bias(valid & _within(reach, length, length), dtype)
    # [B, 1, N, 1, 3 S] and [S, 3 S], where key S is at the position of query 0.
    size = min(reach, length) if isinstance(length, int) else tf.minimum(reach, length)
    keys = _with_neighbors(_blocks(tf.transpose(valid, [0, 1, 3, 2]), size))
    return _bias(tf.transpose(keys, [0, 1, 2, 4, 3]) & _within(reach, size, 3 * size, size), dtype)


def _within(reach: int, queries: int | tf.Tensor, keys: int | tf.Tensor,
            offset: int | tf.Tensor = 0) -> tf.Tensor:
    """Returns bool [Q, K], True where key k is at most `reach` tokens from query q + offset."""
    distance = tf.expand_dims(tf.range(queries) + offset, axis=1) - tf.range(keys)
    return (distance <= reach) & (distance >= -reach)


def _bias(attended: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    return tf.where(attended, tf.zeros([], dtype), tf.cast(fused.MASKED_SCORE, dtype))


def _blocks(x: tf.Tensor, size: int | tf.Tensor) -> tf.Tensor:
    """Pads [B, A, L, D] to whole blocks and cuts it, [B, A, N, S, D]."""
    batch_size, heads, length, width = dimensions(x)
    count = -(-length // size)
    # TensorFlow Serving does not link the op Pad.
    padding = tf.zeros([batch_size, heads, count * size - length, width], x.dtype)
    x = tf.concat([x, padding], axis=2)
    return tf.reshape(x, [batch_size, heads, count, size, width])


def _with_neighbors(blocks: tf.Tensor) -> tf.Tensor:
    """Joins every block of [B, A, N, S, D] with its neighbors, [B, A, N, 3 S, D]; 0 at the ends.

    With TensorFlow's own gradient, local attention takes two to five times as long.
    """
    @fused.with_gradient
    def join(blocks):
        edge = tf.zeros_like(blocks[:, :, :1])
        before = tf.concat([edge, blocks[:, :, :-1]], axis=2)
        after = tf.concat([blocks[:, :, 1:], edge], axis=2)
        return tf.concat([before, blocks, after], axis=3), _neighbors_gradient

    return join(blocks)


@fused.fused
def _neighbors_gradient(dy):
    before, own, after = tf.split(tf.cast(dy, tf.float32), 3, axis=3)
    of_next, of_previous = (
        tf.pad(part, [[0, 0], [0, 0], ends, [0, 0], [0, 0]])
        for part, ends in ((before[:, :, 1:], [0, 1]), (after[:, :, :-1], [1, 0])))
    return fused.rounded(own + of_next + of_previous, dy.dtype)


class ModernLayer(tf_keras.layers.Layer):
    """Self-attention and a GeGLU, each after a layer norm, with dropout and a residual sum."""

    def __init__(self, path: str, config: EncoderConfig, options: LayerOptions, index: int):
        """Creates the layer with this index; weights before residual sums are smaller."""
        super().__init__(name=path, dtype=options.policy)
        layers = LayerFactory(parameter_shapes.modern_layer(path, config, index), options,
                              config.initializer_range, config.layer_norm_epsilon)
        outputs = dataclasses.replace(layers, stddev=config.output_initializer_range)
        self.config = config
        self.attention_norm = layers.norm(f"{path}/attention/LayerNorm") if index > 0 else None
        self.projection = layers.dense(f"{path}/attention/self/qkv")
        self.attention_output = outputs.dense(f"{path}/attention/output/dense")
        self.intermediate_norm = layers.norm(f"{path}/intermediate/LayerNorm")
        self.intermediate = layers.dense(f"{path}/intermediate/dense")
        self.output_dense = outputs.dense(f"{path}/output/dense")
        self.final_norm = (layers.norm(f"{path}/{parameter_shapes.FINAL_NORM}")
                           if index == config.num_layers - 1 else None)

    def call(self, x: tf.Tensor, mask_bias: tf.Tensor, rng: Rng | None,
             positions: int | None = None, rotation: Rotation | None = None) -> tf.Tensor:
        """Maps [B, L, H] to [B, L, H], or to [B, positions, H] if only the first positions attend.

        `mask_bias` and `rotation` are those of `LayerInputs`. `rng` is for dropout, None outside of
        training.
        """
        config = self.config
        kernel, _ = self.projection.parameters()
        scale = [(config.hidden_size // config.num_heads)**-0.5] * config.hidden_size
        # Queries are divided by sqrt(D).
        kernel *= tf.constant(scale + [1.0] * (2 * config.hidden_size), kernel.dtype)
        weights = ModernWeights(_gamma(self.attention_norm), kernel, *(
            part.parameters()[0] for part in (
                self.attention_output, self.intermediate_norm, self.intermediate,
                self.output_dense)), _gamma(self.final_norm))
        streams = None if rng is None else rng.streams(
            *(f"{self.name}/{part}" for part in ("attention/self", "attention", "output")))
        return run_modern_layer(x, mask_bias, weights, streams, config, positions, rotation)


def _gamma(norm: LayerNorm | None) -> tf.Tensor | None:
    return None if norm is None else norm.parameters()[0]


class ModernWeights(NamedTuple):
    """The weights of a `ModernLayer`: kernels, and gammas [H] of its norms."""

    attention_norm: tf.Tensor | None
    projection: tf.Tensor  # [H, 3 H], of queries, keys and values.
    attention_output: tf.Tensor
    intermediate_norm: tf.Tensor
    intermediate: tf.Tensor  # [H, 2 I].
    output_dense: tf.Tensor
    final_norm: tf.Tensor | None


@fused.traced_once
def run_modern_layer(x: tf.Tensor, mask_bias: tf.Tensor, weights: ModernWeights,
                     streams: Streams | None, config: EncoderConfig, positions: int | None,
                     rotation: Rotation) -> tf.Tensor:
    """Computes a `ModernLayer` as a function of its weights: one graph for layers of one form.

    `streams` are those of dropout in attention, after it and at the end.
    """
    # The keys of the three dropout masks, uint32 [B, 2] each.
    keys = [None] * 3 if streams is None else streams.dropout_keys(dimensions(x)[0])

    # softmax(Q K^T / sqrt(D) + mask) V per head, [B, A, Q, D].
    epsilon, gamma = config.layer_norm_epsilon, weights.attention_norm
    normalized = x if gamma is None else fused.layer_norm(x, gamma, tf.zeros_like(gamma), epsilon)
    project = functools.partial(_project, num_heads=config.num_heads, rotation=rotation)
    if positions is None:
        query, key, value = project(normalized, weights.projection, "qkv")
    else:
        hidden = x.shape[-1]
        key, value = project(normalized, weights.projection[:, hidden:], "kv")
        x = x[:, :positions]
        (query,) = project(normalized[:, :positions], weights.projection[:, :hidden], "q")
    if mask_bias.shape.rank == 5:
        heads = _attend_in_blocks(query, key, value, mask_bias, config.attention_dropout, keys[0])
    else:
        scores = tf.matmul(query, key, transpose_b=True)
        heads = fused.attend(scores, mask_bias, value, config.attention_dropout, keys[0])

    # The heads side by side, [B, Q, H], x = x + dropout(heads W), and its norm.
    heads = tf.reshape(tf.transpose(heads, [0, 2, 1, 3]), dimensions(x))
    x, normalized = fused.residual_then_norm(
        x, matmul(heads, weights.attention_output), weights.intermediate_norm,
        config.hidden_dropout, keys[1], epsilon)

    # x = x + dropout(GeGLU), and the norm above all layers.
    # Two matmuls take less time than a split of one.
    value, gate = (matmul(normalized, kernel)
                   for kernel in tf.split(weights.intermediate, 2, axis=1))
    branch = matmul(fused.geglu(value, gate), weights.output_dense)
    if weights.final_norm is None:
        return x + fused.dropout(branch, config.hidden_dropout, keys[2])
    return fused.residual_then_norm(
        x, branch, weights.final_norm, config.hidden_dropout, keys[2], epsilon)[1]


def _project(x: tf.Tensor, kernel: tf.Tensor, parts: str, *, num_heads: int,
             rotation: Rotation) -> list[tf.Tensor]:
    """Maps [B, L, H] to the `parts` of "qkv", [B, A, L, D] each; positions turn q and k."""
    length = dimensions(x)[1]
    joint = tf.matmul(tf.reshape(x, [-1, x.shape[-1]]), kernel)
    return tf.unstack(fused.split_heads(
        joint, tf.zeros(kernel.shape[1:], kernel.dtype), len(parts), num_heads, length,
        rotation.first(length), len(parts.removesuffix("v"))))


def _attend_in_blocks(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, mask_bias: tf.Tensor,
                      rate: float, keys: tf.Tensor | None) -> tf.Tensor:
    """Returns attention's output [B, A, L, D], at a cost that is linear in L.

    Each block of queries reads the keys of three blocks, as `mask_bias` [B, 1, N, S, 3 S] says.
    """
    batch_size, heads, length, size = dimensions(query)
    query, key, value = (_blocks(part, dimensions(mask_bias)[3]) for part in (query, key, value))
    # [B, A, N, S, D] x [B, A, N, 3 S, D].
    scores = tf.matmul(query, _with_neighbors(key), transpose_b=True)
    output = fused.attend(scores, mask_bias, _with_neighbors(value), rate, keys)
    return tf.reshape(output, [batch_size, heads, -1, size])[:, :, :length]
