"""Initial values with which heads attend to adjacent tokens, and words resemble their like.

For relative positions it follows Trockman and Kolter ("Mimetic initialization of self-attention
layers", 2023); docs/explanation/short_runs.md has the reasons. Row p of the position table holds
a [sin(w p), ..., cos(w p), ...] in dimensions of its own. Keys of a head that attends to offset s
read sin(w p) and cos(w p), queries sin(w (p + s)) and cos(w (p + s)), so their product is largest
at q = p + s. The last heads of the first layer may compare words instead.
"""

import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from electra_tf.config.model import RANDOM, InitializationConfig, Positions
from electra_tf.core import storage
from electra_tf.core.errors import UserError
from electra_tf.modeling.encoder import Embeddings, Encoder, EncoderLayer
from electra_tf.modeling.layers import Dense
from electra_tf.modeling.modern import ModernLayer
from electra_tf.modeling.parameter_shapes import ENCODER
from electra_tf.modeling.rotary import frequencies

OFFSETS = (-1, 1, -2, 2, -3, 3, -4, 4)
"""Offsets in tokens that the heads attend to, from the first head on."""
_AT_ITSELF, _AT_CLS = 0.5, 0.8
"""Fractions of a match's logit that are subtracted at the token itself and added at [CLS]."""

_VECTORS = 0.8
"""Fraction of the variance of word embeddings that given vectors have; noise has the rest."""
_SLOW, _CONSTANT, _FAST = 0.03, 0.01, 0.1
"""Radians per token from which on rotary pairs distinguish offsets; up to which they compare words;
from which on they recognize the token itself."""


def initialize(model, config: InitializationConfig, cls_id: int) -> None:
    """Initializes all trained encoders of a new Keras model, in its strategy's scope.

    `cls_id` is the id of [CLS], to which tokens without a duplicate attend.
    """
    encoders = [part for part in model.submodules if isinstance(part, Encoder) and part.trainable]
    # Word embeddings come first, because heads that compare words are made for them.
    if config.word_vectors != RANDOM:
        _write_word_vectors(encoders, config.word_vectors)
    for encoder in encoders if config.scheme == "adjacent" else ():
        if encoder.config.positions == Positions.ROTARY:
            _initialize_rotary_heads(encoder, config, cls_id)
        else:
            _initialize_heads(encoder, config)


def _write_word_vectors(encoders: Sequence[Encoder], file: str) -> None:
    """Mixes the vectors of a NumPy file, [V, n], into the word embeddings of encoders.

    Tables of E < n dimensions take the first E. A token whose vector is 0 keeps its random one.
    Raises `UserError` if the file can't be read or has other than V rows.
    """
    path, vocab_size = storage.path(file), encoders[0].config.vocab_size
    try:
        vectors = np.load(io.BytesIO(path.read_bytes())).astype(np.float32)
    except OSError as error:
        raise storage.read_error(path, error) from error
    except (ValueError, EOFError) as error:
        raise UserError(f"initialization.word_vectors={file} isn't a NumPy file of numbers; write "
                        "it with numpy.save.") from error
    if vectors.ndim != 2 or len(vectors) != vocab_size or not np.isfinite(vectors).all():
        raise UserError(f"initialization.word_vectors={file} must hold a finite vector for each of "
                        f"the {vocab_size} tokens of the vocabulary. Received: {vectors.shape}")
    # Each word table once, which several encoders may share.
    for table, config in {id(encoder.embeddings.words.table):
                          (encoder.embeddings.words.table, encoder.config)
                          for encoder in encoders}.values():
        noise = table.numpy()
        width = noise.shape[1]
        unit = np.zeros_like(noise)
        unit[:, :vectors.shape[1]] = vectors[:, :width]
        lengths = np.linalg.norm(unit, axis=1, keepdims=True)
        # A rotation spreads the vectors' directions over all dimensions, which are alike in noise.
        rotation = np.linalg.qr(np.random.default_rng(0).normal(size=[width, width]))[0]
        unit = unit @ rotation.astype(np.float32) / np.where(lengths > 0, lengths, 1.0)
        scale = config.initializer_range * np.sqrt(width)
        table.assign(np.where(
            lengths > 0, np.sqrt(_VECTORS) * scale * unit + np.sqrt(1 - _VECTORS) * noise, noise))


def _initialize_heads(encoder: Encoder, config: InitializationConfig) -> None:
    # Frequencies w, in radians per token, and the waves that they give in the position table.
    shape = encoder.config
    num_matching = config.duplicate_token_heads if encoder.name == ENCODER else 0
    waves = np.geomspace(  # At pi, sines of all positions would be 0.
        0.95 * np.pi, 2 * np.pi / config.longest_wavelength,
        max(1, int(config.position_share * shape.embedding_size / 2)))
    amplitude = config.position_amplitude * shape.initializer_range
    norm = _write_positions(encoder.embeddings, waves, amplitude)
    size = norm * amplitude  # Amplitude of the waves in a layer's input.

    # A head of D units has room for D / 2 frequencies, a sine and a cosine of each.
    head_size = shape.hidden_size // shape.num_heads
    count = min(len(waves), head_size // 2)
    if shape.hidden_size < shape.embedding_size:
        # A narrow projection keeps four units per frequency: sine and cosine, and two for words.
        count = min(count, shape.hidden_size // 4)
    # Indices of the frequencies that every head reads.
    used = np.unique(np.linspace(0, len(waves) - 1, max(count, 1)).round().astype(int))
    read = _readers(encoder.embeddings_project, np.concatenate([used, len(waves) + used]),
                    shape.hidden_size)

    # A head with few frequencies attends as sharply as one with D / 2 of them.
    gain = config.attention_gain * np.sqrt(head_size / 2 / len(used)) / size
    for index, layer in enumerate(encoder.encoder_layers[:config.layers]):
        heads = shape.num_heads - (num_matching if index == 0 else 0)
        weights = query, key = _QueriesOrKeys.of(layer)
        # Keys read sines and cosines of w p, queries those of w (p + offset), by a rotation.
        width = read.shape[1]
        for head, offset in zip(range(heads), OFFSETS, strict=False):
            first = head * head_size
            sine, cosine = (np.diag(wave(waves[used] * offset)) for wave in (np.sin, np.cos))
            rotation = np.block([[cosine, -sine], [sine, cosine]])
            query.kernel[:, first:first + width] += gain * read @ rotation
            key.kernel[:, first:first + width] += gain * read
        if index == 0 and num_matching:
            _duplicate_tokens(encoder, query, key, num_matching, waves, size, norm,
                              config.attention_gain**2 * head_size / 2)
        _assign(layer, weights, None)


def _initialize_rotary_heads(encoder: Encoder, config: InitializationConfig, cls_id: int) -> None:
    """Initializes heads whose queries and keys are turned by rotary positions.

    Biases alone attend to an offset s: with k = R(-s) q the score R(p) q . R(r) k of positions p
    and r is sum_j |q_j|^2 cos((r - p - s) w_j), largest at r = p + s. In ModernBERT's layers, which
    have no biases, they are the weights of an input that is the same for all tokens.
    """
    shape = encoder.config
    head_size = shape.hidden_size // shape.num_heads
    num_matching = config.duplicate_token_heads if encoder.name == ENCODER else 0
    turns = frequencies(head_size, shape.rotary_base)  # w_j in radians.
    fast = np.flatnonzero(turns > _SLOW)
    # |q_j| with which the logit of a neighbour of the offset is `attention_gain` below the
    # largest: |q_j|^2 sum_j (1 - cos(w_j)) / sqrt(D).
    length = np.sqrt(config.attention_gain * np.sqrt(head_size) / np.sum(1 - np.cos(turns[fast])))
    read_one = _write_constant(encoder) if shape.is_modern else None

    # Queries are (length, 0) in every fast pair, keys the same turned by -s w_j.
    for index, layer in enumerate(encoder.encoder_layers[:config.layers]):
        heads = shape.num_heads - (num_matching if index == 0 else 0)
        weights = query, key = _QueriesOrKeys.of(layer)
        for head, offset in zip(range(heads), OFFSETS, strict=False):
            first = head * head_size + fast
            query.bias[first] = length
            key.bias[first] = length * np.cos(offset * turns[fast])
            key.bias[first + head_size // 2] = -length * np.sin(offset * turns[fast])
        if index == 0 and num_matching:
            _duplicate_tokens_by_slow_pairs(encoder, query, key, num_matching, turns, cls_id,
                                            config.attention_gain**2 * head_size / 2)
        _assign(layer, weights, read_one)


class _QueriesOrKeys(NamedTuple):
    """Weights of a layer's queries or keys, which are changed in place; ModernBERT's bias is 0."""

    kernel: np.ndarray  # [H, H].
    bias: np.ndarray  # [H].

    @classmethod
    def of(cls, layer: EncoderLayer | ModernLayer) -> "tuple[_QueriesOrKeys, _QueriesOrKeys]":
        """Returns copies of a layer's weights, for queries and for keys."""
        if isinstance(layer, ModernLayer):
            query, key, _ = np.split(layer.projection.kernel.numpy(), 3, axis=1)
            return cls(query, np.zeros(len(query))), cls(key, np.zeros(len(key)))
        return tuple(cls(part.kernel.numpy(), part.bias.numpy())
                     for part in (layer.attention.query, layer.attention.key))


def _assign(layer: EncoderLayer | ModernLayer, weights: Sequence[_QueriesOrKeys],
            read_one: np.ndarray | None) -> None:
    """Writes a layer's queries and keys; `read_one` [H] maps the input of ModernBERT's to 1."""
    if isinstance(layer, ModernLayer):
        kernel = layer.projection.kernel.numpy()
        kernel[:, :2 * len(kernel)] = np.concatenate(
            [part.kernel + np.outer(read_one, part.bias) for part in weights], axis=1)
        layer.projection.kernel.assign(kernel)
        return
    for part, value in zip((layer.attention.query, layer.attention.key), weights, strict=True):
        part.kernel.assign(value.kernel)
        part.bias.assign(value.bias)


def _write_constant(encoder: Encoder) -> np.ndarray:
    """Gives all words the same value in dimension 0; returns [H], which maps a layer's input to 1.

    The value has a sixteenth of a vector's variance.
    """
    table = encoder.embeddings.words.table
    words = table.numpy()
    words[:, 0] = encoder.config.initializer_range * np.sqrt(words.shape[1]) / 4
    table.assign(words)
    # What the layer norm makes of it.
    normalized = (words[:, 0] - words.mean(axis=1)) / words.std(axis=1)
    read = _readers(encoder.embeddings_project, np.array([0]), encoder.config.hidden_size)
    return read[:, 0] / normalized.mean()


def _duplicate_tokens_by_slow_pairs(
        encoder: Encoder, query: _QueriesOrKeys, key: _QueriesOrKeys, heads: int,
        turns: np.ndarray, cls_id: int, product: float) -> None:
    """Initializes the last heads of the first layer as duplicate-token heads.

    Pairs that hardly turn within a row compare words. `product` is that of `_duplicate_tokens`.
    """
    # Dimensions of the slow pairs; the first ones of the fastest pairs.
    shape, tables = encoder.config, encoder.embeddings
    head_size = shape.hidden_size // shape.num_heads
    slow = np.flatnonzero(turns <= max(_CONSTANT, turns[-1 - len(turns) // 4]))
    slow = np.concatenate([slow, slow + head_size // 2])
    fast = np.flatnonzero(turns > _FAST)
    reader = _embedding_reader(encoder)
    words = tables.words.table.numpy().astype(np.float64)
    # Directions that heads leave out: those of segments, or of the constant.
    others = (np.eye(1, words.shape[1]) if tables.segments is None
              else tables.segments.table.numpy().astype(np.float64))
    segment = 0.0 if tables.segments is None else others[0]
    # The layer norm gives vectors the mean square 1.
    norm = 1 / np.sqrt(np.mean(words**2) + (0.0 if tables.segments is None else np.mean(others**2)))
    cls_vector = words[cls_id] + segment
    cls_vector /= np.sqrt(np.mean(cls_vector**2))
    count = max(1, min(len(slow), words.shape[1] - len(others)))

    for index in range(heads):
        # Queries and keys are the word vector in some directions, times the scale of a match.
        directions, square = _word_directions(norm * words, others, index, count)
        scale = np.sqrt(product / square)
        first = (shape.num_heads - heads + index) * head_size
        for part in (query, key):
            part.kernel[:, first + slow[:count]] += scale * reader @ directions.T
        # At the token itself sum_j |q_j|^2 cos(0) is subtracted from the match.
        query.bias[first + fast] = -np.sqrt(_AT_ITSELF * product / len(fast))
        key.bias[first + fast] = np.sqrt(_AT_ITSELF * product / len(fast))
        # Every query also resembles [CLS], which so gets a part of a match's score.
        cls = scale * cls_vector @ directions.T
        query.bias[first + slow[:count]] = _AT_CLS * product / np.sum(cls**2) * cls


def _write_positions(embeddings: Embeddings, waves: np.ndarray, amplitude: float) -> float:
    """Fills the position table, clears its dimensions in the others; returns the norm's factor."""
    # The waves have their dimensions alone: words and segments are 0 there.
    positions = embeddings.positions.table
    wave_dims = 2 * len(waves)
    squared_length = 0.0  # Mean squared length of the word and segment vectors.
    for part in (embeddings.words, embeddings.segments):
        table = part.table.numpy()
        table[:, :wave_dims] = 0.0
        part.table.assign(table)
        squared_length += np.mean(np.sum(table.astype(np.float64)**2, axis=1))

    # Row p is a [sin(w p), ..., cos(w p), ...].
    angles = np.arange(positions.shape[0])[:, np.newaxis] * waves
    values = np.zeros(positions.shape)
    values[:, :wave_dims] = amplitude * np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    positions.assign(values)

    # The layer norm divides by the deviation; sin^2 + cos^2 = 1 for every frequency.
    variance = (len(waves) * amplitude**2 + squared_length) / positions.shape[1]
    return 1 / np.sqrt(variance)


def _readers(projection: Dense | None, columns: np.ndarray, size: int) -> np.ndarray:
    """Returns [H, F], which maps a layer's input to F columns of embeddings; adapts narrow P."""
    if projection is None:
        return np.eye(size)[:, columns]
    kernel = projection.kernel.numpy().astype(np.float64)
    if kernel.shape[0] <= size:
        return np.linalg.pinv(kernel)[:, columns]
    # P [E, H] with H < E: orthonormal directions for the columns, which the other rows lose.
    directions = np.linalg.qr(kernel[columns].T)[0].T
    kernel -= kernel @ directions.T @ directions
    kernel[columns] = directions
    projection.kernel.assign(kernel)
    return directions.T


def _duplicate_tokens(
        encoder: Encoder, query: _QueriesOrKeys, key: _QueriesOrKeys, heads: int,
        waves: np.ndarray, size: float, norm: float, product: float) -> None:
    """Initializes the last heads of the first layer as duplicate-token heads.

    After the layer norm, which multiplies the tables by `norm`, waves have amplitude `size`.
    `product` is that of a query and its word's key elsewhere, sqrt(D) times the logit.
    """
    # Dimensions of the fast waves, and the map from a layer's input to the embeddings, [H, E].
    shape, tables = encoder.config, encoder.embeddings
    head_size = shape.hidden_size // shape.num_heads
    wave_dims = 2 * len(waves)
    fast = np.arange(min(len(waves), head_size // 8))
    columns = np.concatenate([fast, len(waves) + fast])
    reader = _embedding_reader(encoder)

    # Word and segment vectors without the waves' dimensions, [V, width] and [2, width].
    words, segments = (table.table.numpy().astype(np.float64)[:, wave_dims:]
                       for table in (tables.words, tables.segments))
    # At most as many orthonormal word directions as fit, orthogonal to all segments' vectors.
    width = segments.shape[1]
    count = max(1, min(head_size - len(columns), width - len(segments)))

    # A query's waves are minus its key's: at the token itself they take off a part of the match.
    position_scale = np.sqrt(_AT_ITSELF * product / len(fast)) / size
    for index in range(heads):
        directions, square = _word_directions(norm * words, segments, index, count)
        first = (shape.num_heads - heads + index) * head_size
        middle = first + len(directions)
        end = middle + len(columns)
        for kernel, sign in ((query.kernel, -1.0), (key.kernel, 1.0)):
            kernel[:, first:middle] += (
                np.sqrt(product / square) * reader[:, wave_dims:] @ directions.T)
            kernel[:, middle:end] += sign * position_scale * reader[:, columns]
        # The key of position 0 holds no sines and all cosines.
        query.bias[middle + len(fast):end] += _AT_CLS / _AT_ITSELF * position_scale * size


def _embedding_reader(encoder: Encoder) -> np.ndarray:
    """Returns [H, E], which maps the first layer's input to the embeddings."""
    projection = encoder.embeddings_project
    return (np.eye(encoder.config.hidden_size) if projection is None
            else np.linalg.pinv(projection.kernel.numpy().astype(np.float64)))


def _word_directions(words: np.ndarray, segments: np.ndarray, index: int,
                     count: int) -> tuple[np.ndarray, float]:
    """Returns orthonormal directions [count, width] of a duplicate-token head without segments.

    Maps word vectors [V, width] and segment vectors [2, width]; the second result is the mean
    squared length of a word in these directions, so that a match can be scaled.
    """
    # Each head takes the next dimensions of the word vectors, which are interchangeable.
    width = segments.shape[1]
    axes = np.eye(width)[np.arange(index * count, (index + 1) * count) % width]
    directions = np.linalg.qr(np.concatenate([segments, axes]).T)[0].T[len(segments):]
    return directions, np.mean(np.sum((words @ directions.T)**2, axis=1))
