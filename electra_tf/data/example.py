"""The TFRecord schema of one pre-training example."""

import functools
import typing
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

_DTYPES = {2: (np.dtype("<u2"), tf.uint16), 4: (np.dtype("<i4"), tf.int32)}


class Batch(typing.NamedTuple):
    """A batch of examples with static shapes; B examples of L positions."""

    ids: tf.Tensor
    """int32 [B, L], [PAD] past the end."""
    valid: tf.Tensor
    """bool [B, L], False on padding."""
    segment_ids: tf.Tensor
    """int32 [B, L], 0 for the first segment and for padding, 1 for the second segment."""


def id_dtype(token_bytes: int) -> np.dtype:
    """Returns how ids of 2 or 4 bytes are stored, see `manifest.token_bytes_for`."""
    return _DTYPES[token_bytes][0]


def serialize_example(ids: Sequence[int], first_segment_length: int, token_bytes: int) -> bytes:
    """Returns one example as a serialized `tf.train.Example`.

    Args:
        ids: the tokens with [CLS] and [SEP], without padding.
        first_segment_length: how many tokens belong to segment 0, with [CLS] and its [SEP]; the
            number of all tokens if there is one segment.
        token_bytes: 2 or 4, see `manifest.token_bytes_for`. Ids are stored raw, little-endian.

    Raises:
        ValueError: `first_segment_length` is not in [1, len(ids)].
    """
    return serialize_stored(np.asarray(ids, id_dtype(token_bytes)).tobytes(),
                            first_segment_length, token_bytes)


def serialize_stored(raw: bytes, first_segment_length: int, token_bytes: int) -> bytes:
    """Like `serialize_example`, of ids as `id_dtype` stores them.

    Raises:
        ValueError: `first_segment_length` is not in [1, number of ids].
    """
    if not 1 <= first_segment_length <= len(raw) // token_bytes:
        raise ValueError(f"first_segment_length must be in [1, {len(raw) // token_bytes}]. "
                         f"Received: {first_segment_length}")
    return _before_ids(first_segment_length, len(raw)) + raw


@functools.lru_cache(maxsize=1 << 14)
def _before_ids(first_segment_length: int, size: int) -> bytes:
    """Returns all bytes of a `tf.train.Example` but the ids, `size` bytes at its very end.

    Their key sorts last, and deterministic serialization sorts. Protobuf takes 10 times as long as
    putting the two together.
    """
    return tf.train.Example(features=tf.train.Features(feature={
        "ids": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes(size)])),
        "first_segment_length": tf.train.Feature(
            int64_list=tf.train.Int64List(value=[first_segment_length])),
    })).SerializeToString(deterministic=True)[:-size]


def stored_ids(serialized: bytes, token_bytes: int) -> tuple[np.ndarray, int]:
    """Returns the ids of one serialized example, and the length of its first segment.

    Args:
        serialized: by `serialize_example`.
        token_bytes: 2 or 4, as written.

    Raises:
        google.protobuf.message.DecodeError: it is none.
        ValueError: its fields aren't ours.
    """
    features = tf.train.Example.FromString(serialized).features.feature
    raw = features["ids"].bytes_list.value
    boundary = features["first_segment_length"].int64_list.value
    if len(raw) != 1 or len(boundary) != 1:
        raise ValueError("an example has one string of ids and one boundary")
    return np.frombuffer(raw[0], id_dtype(token_bytes)), boundary[0]


def parse_examples(
    serialized: tf.Tensor, max_seq_length: int, token_bytes: int, pad_id: int
) -> Batch:
    """Parses a batch of serialized examples in one op and pads them.

    Args:
        serialized: string [B].
        max_seq_length: L.
        token_bytes: 2 or 4, as written.
        pad_id: id of [PAD].

    Returns:
        A `Batch`; its shapes are static where B is.

    Raises:
        tf.errors.InvalidArgumentError: (when it runs) an example is longer than `max_seq_length`
            or its fields contradict each other; nothing is truncated.
    """
    parsed = tf.io.parse_example(serialized, {
        "ids": tf.io.FixedLenFeature([], tf.string),
        "first_segment_length": tf.io.FixedLenFeature([], tf.int64),
    })
    sizes = tf.strings.length(parsed["ids"])
    first = tf.cast(parsed["first_segment_length"], tf.int32)
    with tf.control_dependencies(_checks(sizes, first, max_seq_length, token_bytes)):
        ids = tf.io.decode_raw(parsed["ids"], _DTYPES[token_bytes][1], little_endian=True,
                               fixed_length=max_seq_length * token_bytes)
    ids = tf.ensure_shape(tf.cast(ids, tf.int32), [serialized.shape[0], max_seq_length])
    positions = tf.range(max_seq_length)[tf.newaxis, :]
    valid = positions < (sizes // token_bytes)[:, tf.newaxis]
    segment_ids = tf.cast(valid & (positions >= first[:, tf.newaxis]), tf.int32)
    return Batch(ids=tf.where(valid, ids, pad_id), valid=valid, segment_ids=segment_ids)


def _checks(sizes: tf.Tensor, first: tf.Tensor, max_seq_length: int, token_bytes: int) -> list:
    lengths = sizes // token_bytes
    return [
        tf.debugging.assert_less_equal(
            lengths, max_seq_length,
            message=f"an example is longer than max_seq_length={max_seq_length}; "
                    "rebuild the records with that length, or ask for the records' length"),
        tf.debugging.assert_equal(
            lengths * token_bytes, sizes,
            message=f"an example does not hold {token_bytes}-byte ids; rebuild the records"),
        tf.debugging.assert_less_equal(
            first, lengths, message="a first segment ends past its example; rebuild the records"),
    ]
