r"""Initial values with which attention sees neighbours before any training.

A narrow network of normal(0, 0.02) weights can't see its neighbours: attention is uniform, what
passes through W_V W_O has a gain of about H x 0.02^2 (0.03 for H = 64, 0.10 for 256), and every
position has to find "one to the left" by itself, because positions begin as unrelated vectors. The
generator then copies the tokens it may read, for the rest it knows frequencies only, and the
discriminator, whose label depends on a token and its neighbours together, sees no gradient that
would lead it anywhere. Trained networks have heads that look at the previous and the next token.
Trockman and Kolter ("Mimetic initialization of self-attention layers", 2023) begin with attention
that resembles a trained network's; this does so for relative positions:

* Positions have dimensions of their own: the first 2F = position_share x E of the embeddings, where
  words and segments begin with zeros; positions are zero elsewhere. What a head finds there is
  the position alone, not words that happen to resemble one.
* There row p of the position table is a [sin(w_0 p), sin(w_1 p), ..., cos(w_0 p), cos(w_1 p), ...],
  F frequencies w falling geometrically from 0.95 pi to 2 pi / longest_wavelength, with
  a = position_amplitude x initializer_range.
* In the first layers, head h looks at offset s = OFFSETS[h]: its keys hold sin(w p) and cos(w p)
  of at most D/2 of the frequencies, its queries sin(w (p + s)) and cos(w (p + s)), so that their
  product, proportional to sum_w cos(w (p + s - q)), is largest at q = p + s; both so large that the
  logit there is attention_gain^2 sqrt(D) / 2 (they read the layer-normed sum of the three tables).
  These matrices are added to the usual normal ones. Heads past the last offset keep the usual
  values.
* Between embeddings and layers of another width stands a projection P [E, H]. With H >= E the
  matrices above come after its pseudo-inverse, so that heads read what the table holds, exactly.
  With H < E (a narrow generator) P can't keep everything: it is given orthonormal rows for the
  H / 4 frequencies that heads use at most, the others' rows are made orthogonal to these.

All are learned from there on like any weights: architecture, names and checkpoints don't change.
"""

import numpy as np

from electra_tf.config.initialization import InitializationConfig, Scheme
from electra_tf.modeling.embeddings import Embeddings
from electra_tf.modeling.encoder import Encoder, EncoderLayer
from electra_tf.modeling.layers import Dense

OFFSETS = (-1, 1, -2, 2, -3, 3, -4, 4)
"""Where heads look, in tokens; the first head at the previous one."""
_HIGHEST = 0.95 * np.pi
"""Radians per token. At pi the sine of every whole position is 0."""
_ROOM = 4
"""A projection to fewer dimensions keeps H / 4 frequencies: half of its dimensions."""


def initialize(model, config: InitializationConfig) -> None:
    """Gives all encoders of a new model that are trained the values of a scheme, in place.

    They are a function of the values that the weights were created with, so of (seed, name).

    Args:
        model: a Keras model, within the scope of the strategy that it was created in.
        config: the scheme.
    """
    if config.scheme is Scheme.NEIGHBOURS:
        for part in model.submodules:
            if isinstance(part, Encoder) and part.trainable:
                _look_at_neighbours(part, config)


def frequencies(count: int, longest_wavelength: float) -> np.ndarray:
    """Returns float64 [count], radians per token, falling geometrically."""
    return np.geomspace(_HIGHEST, 2 * np.pi / longest_wavelength, count)


def _look_at_neighbours(encoder: Encoder, config: InitializationConfig) -> None:
    shape = encoder.config
    waves = frequencies(max(1, int(config.position_share * shape.embedding_size / 2)),
                        config.longest_wavelength)
    size = _write_positions(encoder.embeddings, waves,
                            config.position_amplitude * shape.initializer_range)
    head_size = shape.hidden_size // shape.num_heads
    used = _used(len(waves), head_size // 2, shape.hidden_size
                 if shape.hidden_size < shape.embedding_size else None)
    read = _readers(encoder.embeddings_project, used, len(waves), shape.hidden_size)
    # A head with few frequencies looks as sharply as one with all that it has room for.
    gain = config.attention_gain * np.sqrt(head_size / 2 / len(used)) / size
    for layer in encoder.encoder_layers[:config.layers]:
        _point_heads(layer, gain * read, waves[used], shape.num_heads)
        for dense in (layer.attention.value, layer.attention_output):
            dense.kernel.assign(np.sqrt(config.value_gain) * dense.kernel.numpy())


def _write_positions(embeddings: Embeddings, waves: np.ndarray, amplitude: float) -> float:
    """Fills the position table and empties its dimensions of words and segments.

    Returns:
        The waves' amplitude after the layer norm, on average.
    """
    positions = embeddings.positions.table
    taken = 2 * len(waves)
    rest = 0.0
    for part in (embeddings.words, embeddings.segments):
        part.clear(taken)
        rest += np.mean(np.sum(part.table.numpy().astype(np.float64)**2, axis=1))
    angles = np.arange(positions.shape[0])[:, np.newaxis] * waves
    values = np.zeros(positions.shape)
    values[:, :taken] = amplitude * np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    positions.assign(values)
    variance = (len(waves) * amplitude**2 + rest) / positions.shape[1]
    return amplitude / np.sqrt(variance)


def _used(waves: int, room: int, narrow: int | None) -> np.ndarray:
    """Returns which frequencies a head reads, evenly spread.

    Args:
        waves: how many there are.
        room: most that a head has dimensions for.
        narrow: H where it is smaller than E.
    """
    count = min(waves, room, waves if narrow is None else narrow // _ROOM)
    return np.unique(np.linspace(0, waves - 1, max(count, 1)).round().astype(int))


def _readers(projection: Dense | None, used: np.ndarray, waves: int, size: int) -> np.ndarray:
    """Returns [H, 2F], what picks sines and then cosines of F frequencies out of a layer's input.

    Prepares the projection where it has fewer dimensions than the embeddings.
    """
    columns = np.concatenate([used, waves + used])
    if projection is None:
        return np.eye(size)[:, columns]
    kernel = projection.kernel.numpy().astype(np.float64)
    if kernel.shape[0] <= size:
        return np.linalg.pinv(kernel)[:, columns]
    directions = np.linalg.qr(kernel[columns].T)[0].T
    kernel -= kernel @ directions.T @ directions
    kernel[columns] = directions
    projection.kernel.assign(kernel)
    return directions.T


def _point_heads(layer: EncoderLayer, read: np.ndarray, waves: np.ndarray,
                 num_heads: int) -> None:
    """Adds to a layer's queries and keys what makes each head look at its offset."""
    query, key = layer.attention.query.kernel, layer.attention.key.kernel
    queries, keys = query.numpy(), key.numpy()
    size = read.shape[1]
    for head, offset in zip(range(num_heads), OFFSETS, strict=False):
        first = head * (queries.shape[1] // num_heads)
        queries[:, first:first + size] += read @ _rotation(waves * offset)
        keys[:, first:first + size] += read
    query.assign(queries)
    key.assign(keys)


def _rotation(angles: np.ndarray) -> np.ndarray:
    """Returns [2F, 2F]: takes sines and cosines of x, a row vector, to those of x + angle."""
    sine, cosine = np.diag(np.sin(angles)), np.diag(np.cos(angles))
    return np.block([[cosine, -sine], [sine, cosine]])
