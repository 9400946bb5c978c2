"""The encoder for inference: batches and lengths of any size, without computation for padding.

`Encoder` is made for training steps of a static shape. This module computes the same function in
patterns that TensorFlow's graph rewriting fuses: a layer norm is one oneDNN op, and so are matmul,
bias and GELU together. Matmuls read only the valid tokens; attention alone reads padded rows.
Sentences of 25 tokens in batches padded to 50 take less than half the time. Without padding,
`Encoder` in `inference_mode` still takes 1.25 to 1.39 times the CPU time in float32, the reason for
a second encoder. One gather arranges tokens by rows and heads and one reverses it; a transpose
would add 6 % for rows of 128 tokens.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from electra_tf.modeling.encoder import Encoder, EncoderLayer, create_encoder
from electra_tf.modeling.fused import LAYER_NORM_EPSILON, MASKED_SCORE
from electra_tf.modeling.layers import LayerNorm, LayerOptions
from electra_tf.modeling.rotary import Rotation, rotate

_CHUNK_TOKENS = 4096
"""Positions of a chunk, padding included: 8 rows of 512 or 128 rows of 32. Larger chunks are not
faster. The attention scores of 12 heads take 0.1 GB."""


class _TokenPositions:
    """Indices that map the T valid tokens of a batch to its rows and back."""

    def __init__(self, padding_mask: tf.Tensor, dtype: tf.DType, heads: int,
                 rotation: Callable[[tf.Tensor], Rotation | None]):
        """Computes the indices for bool [B, L] with a token in every row, and a share's heads.

        `rotation` returns the angles of L rotary positions, or None.
        """
        batch_size, length = self.size = tf.unstack(tf.shape(padding_mask))
        flat = tf.reshape(padding_mask, [-1])
        # int32 [T]: index of every token among all B * L positions, and within its row.
        self.rows = tf.cast(tf.squeeze(tf.where(flat), axis=1), tf.int32)
        self.columns = self.rows % length
        # int32 [B * L]: index of every position's token among the T, on padding the one before.
        self.tokens = tf.maximum(tf.cumsum(tf.cast(flat, tf.int32)) - 1, 0)
        # [B, 1, 1, L], added to attention scores: no query attends to padding.
        bias = tf.cast(tf.where(padding_mask, 0.0, MASKED_SCORE), dtype)
        self.bias = tf.reshape(bias, [batch_size, 1, 1, length])
        # int32 [3, B, heads, L]: index of every query, key and value among [T, 3, heads].
        parts = tf.reshape(tf.range(3 * heads), [3, 1, heads, 1])
        self.projected = tf.reshape(self.tokens, [1, batch_size, 1, length]) * (3 * heads) + parts
        # int32 [T, heads]: index of every token's part of each head among [B, heads, L].
        row_offsets = tf.expand_dims((self.rows - self.columns) * heads + self.columns, axis=1)
        self.attended = row_offsets + tf.range(heads) * length
        # [L, D] each, by which queries and keys are turned.
        angles = rotation(length)
        self.angles = None if angles is None else [tf.cast(table, dtype) for table in angles]


class InferenceEncoder(tf.Module):
    """A copy of a trained `Encoder` that computes its hidden vectors without dropout.

    Weights and arithmetic are float32 or bfloat16; softmax and norms use float32. `tensor_parallel`
    shares of every layer's heads and feed-forward units, which divide both, run in parallel
    (Shoeybi et al., 2019, section 3). With two shares one sentence uses two cores: 6.0 ms instead
    of 8.0 for ELECTRA-Small and 24 tokens.
    """

    def __init__(self, encoder: Encoder, dtype: tf.DType, tensor_parallel: int = 1):
        """Copies the weights of a trained encoder."""
        super().__init__(name="inference_encoder")
        self.config, self.dtype = encoder.config, dtype
        self._tensor_parallel = tensor_parallel
        embeddings, project = encoder.embeddings, encoder.embeddings_project
        self._words, self._segments = (
            _weight(part.table, dtype) for part in (embeddings.words, embeddings.segments))
        self._positions = (None if embeddings.positions is None
                           else _weight(embeddings.positions.table, dtype))
        self._rotation = encoder.rotation
        self._norm = _Norm(embeddings.norm, dtype)
        self._project = None if project is None else [
            _weight(part, dtype) for part in (project.kernel, project.bias)]
        self._layers = [_Layer(layer, dtype, tensor_parallel) for layer in encoder.encoder_layers]

    def assign(self, encoder: Encoder) -> None:
        """Copies the weights of an encoder of the same sizes."""
        others = InferenceEncoder(encoder, self.dtype, self._tensor_parallel)
        for variable, value in zip(self.variables, others.variables, strict=True):
            variable.assign(value)

    def __call__(self, ids: tf.Tensor, segment_ids: tf.Tensor, padding_mask: tf.Tensor,
                 rng: None = None) -> tf.Tensor:
        """Encodes a batch of any B and L like `Encoder`; padding repeats the vector before it."""
        x, positions = self._run_layers(ids, segment_ids, padding_mask)
        # [T, H] becomes [B, L, H].
        return tf.reshape(tf.gather(x, positions.tokens), [*positions.size, x.shape[-1]])

    def first(self, ids: tf.Tensor, segment_ids: tf.Tensor, padding_mask: tf.Tensor,
              rng: None = None) -> tf.Tensor:
        """Returns the vectors [B, H] of [CLS] alone; arguments as for `Encoder`."""
        return self._run_layers(ids, segment_ids, padding_mask, first_only=True)[0]

    def _run_layers(self, ids: tf.Tensor, segment_ids: tf.Tensor, padding_mask: tf.Tensor, *,
                    first_only: bool = False) -> tuple[tf.Tensor, _TokenPositions]:
        """Returns the vectors [T, H] of the tokens or [B, H] of every row's first, and indices."""
        # Indices of the T valid tokens among the B * L positions; all layers use them.
        positions = _TokenPositions(
            padding_mask, self.dtype, self.config.num_heads // self._tensor_parallel,
            self._rotation)

        # The sum of the tables' vectors in float32, [T, E], then the layer norm.
        def look_up(table: tf.Variable, indices: tf.Tensor) -> tf.Tensor:
            return tf.cast(tf.gather(table, indices), tf.float32)

        def gather_tokens(values: tf.Tensor) -> tf.Tensor:
            return tf.gather(tf.reshape(values, [-1]), positions.rows)

        x = look_up(self._words, gather_tokens(ids))
        if self._positions is not None:
            x += look_up(self._positions, positions.columns)
        x += look_up(self._segments, gather_tokens(segment_ids))
        x = self._norm(tf.cast(x, self.dtype))
        if self._project is not None:
            x = _affine(x, self._project)

        # Padding takes part in attention alone. The last layer may compute [CLS] only, [B, H].
        for layer in self._layers:
            x = layer(x, positions, first_only=first_only and layer is self._layers[-1])
        return x, positions


def inference_encoder(encoder: Encoder, dtype: tf.DType,
                      tensor_parallel: int = 1) -> InferenceEncoder | Encoder:
    """Returns a copy of a trained encoder that answers; arguments as for `InferenceEncoder`.

    That of ModernBERT's layers computes padding, too, and is for `inference_mode`.
    """
    if not encoder.config.is_modern:
        return InferenceEncoder(encoder, dtype, tensor_parallel)
    policy = "mixed_bfloat16" if dtype is tf.bfloat16 else "float32"
    copy = create_encoder(encoder.config, LayerOptions(seed=0, policy=policy))
    copy.assign(encoder)
    return copy


class _Layer(tf.Module):
    """An `EncoderLayer` over a list of tokens [T, H]."""

    def __init__(self, layer: EncoderLayer, dtype: tf.DType, tensor_parallel: int):
        super().__init__(name="layer")
        self._shares = [_Share(layer, dtype, tensor_parallel, index)
                        for index in range(tensor_parallel)]
        self._attention_bias = _weight(layer.attention_output.bias, dtype)
        self._attention_norm = _Norm(layer.attention_norm, dtype)
        self._output_bias = _weight(layer.output_dense.bias, dtype)
        self._output_norm = _Norm(layer.output_norm, dtype)

    def __call__(self, x: tf.Tensor, positions: _TokenPositions, *, first_only: bool) -> tf.Tensor:
        """Maps [T, H] to [T, H] or, with `first_only`, to [B, H] for every row's first token."""
        # Attention, the residual sum and the layer norm.
        attended = [share.attend(x, positions, first_only=first_only) for share in self._shares]
        if first_only:
            batch_size, length = positions.size
            x = tf.gather(x, tf.gather(positions.tokens, tf.range(batch_size) * length))
        x = self._attention_norm(x + _sum(attended, self._attention_bias))

        # The feed-forward network, likewise.
        expanded = [share.feed_forward(x) for share in self._shares]
        return self._output_norm(x + _sum(expanded, self._output_bias))


class _Share(tf.Module):
    """Some heads and feed-forward units of a layer, which adds up the results of all shares."""

    def __init__(self, layer: EncoderLayer, dtype: tf.DType, tensor_parallel: int, index: int):
        super().__init__(name="share")
        # The share's columns of queries, keys and values, and its feed-forward units.
        attention, intermediate = layer.attention, layer.intermediate
        hidden, wide = intermediate.kernel.shape
        heads, units = (slice(index * size // tensor_parallel,
                              (index + 1) * size // tensor_parallel) for size in (hidden, wide))

        # One matmul for all three, [H, 3 * H / shares].
        parts = attention.query, attention.key, attention.value
        self._head_size = hidden // attention.num_heads
        self._project = [
            _weight(tf.concat([getattr(part, name)[..., heads] for part in parts], axis=-1), dtype)
            for name in ("kernel", "bias")]
        self._output = _weight(layer.attention_output.kernel[heads], dtype)
        self._expand = [_weight(part[..., units], dtype)
                        for part in (intermediate.kernel, intermediate.bias)]
        self._contract = _weight(layer.output_dense.kernel[units], dtype)

    def attend(self, x: tf.Tensor, positions: _TokenPositions, *, first_only: bool) -> tf.Tensor:
        """Maps [T, H] to the share's part of the attention's output; shapes as in `_Layer`."""
        # [T, 3 * heads * D], gathered by rows of the batch, with padding, for each head.
        vectors = tf.reshape(_affine(x, self._project), [-1, self._head_size])
        query, key, value = tf.unstack(tf.gather(vectors, positions.projected))  # [B, heads, L, D].
        if positions.angles is not None:
            query, key = (rotate(part, *positions.angles) for part in (query, key))
        if first_only:
            query = query[:, :, :1]

        # softmax(Q K^T / sqrt(D) + mask) V, [B, heads, L, D].
        scale = tf.constant(self._head_size**-0.5, query.dtype)
        # In this order matmul, scale and bias become one op.
        weights = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) * scale + positions.bias)
        heads = tf.matmul(weights, value)

        # Back to tokens without padding, the heads of each side by side, [T, heads * D].
        if not first_only:
            heads = tf.gather(tf.reshape(heads, [-1, self._head_size]), positions.attended)
        return tf.matmul(tf.reshape(heads, [-1, self._output.shape[0]]), self._output)

    def feed_forward(self, x: tf.Tensor) -> tf.Tensor:
        """Maps [T, H] to the share's part of the feed-forward network's output, [T, H]."""
        return tf.matmul(tf.nn.gelu(_affine(x, self._expand), approximate=False), self._contract)


class _Norm(tf.Module):
    """A layer norm of rows, written as the batch norm of a transposed batch.

    TensorFlow replaces this pattern by oneDNN's layer norm if the number of rows is unknown:
    0.29 ms instead of 1.8 for [4096, 256] in bfloat16 on two cores.
    """

    def __init__(self, norm: LayerNorm, dtype: tf.DType):
        super().__init__(name="norm")
        self._gamma, self._beta = _weight(norm.gamma, dtype), _weight(norm.beta, dtype)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        # Every row is a channel of [1, R, H, 1], whose mean and variance the batch norm takes.
        shape = tf.shape(x)
        empty = tf.constant([], tf.float32)
        normalized = tf.raw_ops.FusedBatchNormV3(
            x=tf.reshape(x, [1, shape[0], x.shape[-1], 1]), scale=tf.fill([shape[0]], 1.0),
            offset=tf.fill([shape[0]], 0.0), mean=empty, variance=empty,
            epsilon=LAYER_NORM_EPSILON, data_format="NCHW", is_training=True).y
        return tf.reshape(normalized, shape) * self._gamma + self._beta


def _sum(parts: Sequence[tf.Tensor], bias: tf.Variable) -> tf.Tensor:
    """Sums the parts of all shares and a bias, which fuses with the first part's matmul."""
    return tf.add_n([tf.nn.bias_add(parts[0], bias), *parts[1:]])


def _affine(x: tf.Tensor, weights: Sequence[tf.Variable]) -> tf.Tensor:
    kernel, bias = weights
    return tf.nn.bias_add(tf.matmul(x, kernel), bias)


def _weight(value: tf.Tensor, dtype: tf.DType) -> tf.Variable:
    return tf.Variable(tf.cast(value, dtype), trainable=False)


def map_in_chunks(compute: Callable[..., Any], tensors: Sequence[tf.Tensor], outputs: Any,
                  max_rows: int | None = None) -> Any:
    """Applies a function to tensors [R, L, ...], some rows at a time, and joins the results.

    `compute` maps tensors of r rows to a structure of tensors of r rows; `outputs` has their
    `tf.TensorSpec`s. Without `max_rows`, chunks have 4,096 positions.
    """
    # The number of chunks, at least one, and their equal number of rows.
    count, length = tf.unstack(tf.shape(tensors[0])[:2])
    if max_rows is None:
        max_rows = tf.maximum(_CHUNK_TOKENS // tf.maximum(length, 1), 1)
    chunks = tf.maximum(-(-count // max_rows), 1)
    size = -(-count // chunks)

    # [R, ...] becomes [chunks, size, ...] and, after the function, [R, ...] again.
    def cut(values: tf.Tensor) -> tf.Tensor:
        # Repeated rows fill the last chunk; `join` drops them.
        filled = tf.gather(values, tf.range(chunks * size) % tf.maximum(count, 1))
        return tf.reshape(filled, tf.concat([[chunks, size], tf.shape(values)[1:]], axis=0))

    def join(values: tf.Tensor, spec: tf.TensorSpec) -> tf.Tensor:
        flat = tf.reshape(values, tf.concat([[chunks * size], tf.shape(values)[2:]], axis=0))
        return tf.ensure_shape(flat[:count], spec.shape)

    results = tf.map_fn(lambda part: compute(*part), tuple(map(cut, tensors)),
                        parallel_iterations=1, fn_output_signature=outputs)
    return tf.nest.map_structure(join, results, outputs)
