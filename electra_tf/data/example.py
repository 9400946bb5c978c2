"""The schema of one pre-training example, a `tf.train.Example`; needs no TensorFlow."""

import functools
import re
import typing
from collections.abc import Sequence
from typing import Any

import numpy as np

_DTYPES = {2: np.dtype("<u2"), 4: np.dtype("<i4")}
_BYTES = 2
"""Wire type of a protocol buffer's field that begins with its length."""
_BEFORE_IDS = re.compile(
    rb"\nN\nN\n\x14first_segment_length\x12N\x1aN\nN(?P<boundary>N)\nN\n\x03ids\x12N\nN\nN"
    .replace(b"N", rb"[\x80-\xff]*[\x00-\x7f]"), re.DOTALL)
"""What `_before_ids` returns; N stands for a number of 7 bits a byte."""


class Batch(typing.NamedTuple):
    """A batch of B examples of L positions: NumPy arrays, or tensors with static shapes."""

    ids: Any
    """int32 [B, L], [PAD] past the end."""
    valid: Any
    """bool [B, L], False on padding."""
    segment_ids: Any
    """int32 [B, L], 0 for the first segment and for padding, 1 for the second segment."""


def id_dtype(token_bytes: int) -> np.dtype:
    """Returns the type of stored ids of 2 or 4 bytes, see `manifest.token_bytes_for`."""
    return _DTYPES[token_bytes]


def serialize_example(ids: Sequence[int], first_segment_length: int, token_bytes: int) -> bytes:
    """Returns one example as a serialized `tf.train.Example`; ids are raw, little-endian.

    `ids` are the tokens with [CLS] and [SEP], `first_segment_length` of them, 1 or more, the first
    segment's. Raises `ValueError` otherwise.
    """
    return serialize_stored(np.asarray(ids, id_dtype(token_bytes)).tobytes(),
                            first_segment_length, token_bytes)


def serialize_stored(raw: bytes, first_segment_length: int, token_bytes: int) -> bytes:
    """Returns an example whose ids are given as `id_dtype` stores them."""
    if not 1 <= first_segment_length <= len(raw) // token_bytes:
        raise ValueError(f"first_segment_length must be in [1, {len(raw) // token_bytes}]. "
                         f"Received: {first_segment_length}")
    return _before_ids(first_segment_length, len(raw)) + raw


def stored_ids(serialized: bytes, token_bytes: int) -> tuple[np.ndarray, int]:
    """Returns the ids of one serialized example and the length of its first segment.

    Raises `ValueError` for other bytes than those of `serialize_example`.
    """
    found = _BEFORE_IDS.match(serialized)
    if found:
        boundary = sum((byte & 127) << 7 * place for place, byte in enumerate(found["boundary"]))
        size = len(serialized) - found.end()
        if serialized[:found.end()] == _before_ids(boundary, size) and size % token_bytes == 0:
            if not 1 <= boundary <= size // token_bytes:
                raise ValueError(f"first_segment_length must be in [1, {size // token_bytes}]. "
                                 f"Received: {boundary}")
            return np.frombuffer(serialized, id_dtype(token_bytes), offset=found.end()), boundary
    raise ValueError(f"{len(serialized)} bytes are not an example of {token_bytes}-byte ids")


def checked_ids(serialized: bytes, token_bytes: int, most: int,
                vocab_size: int) -> tuple[np.ndarray, int]:
    """Returns what `stored_ids` does; `ValueError` also for too many or unknown ids."""
    ids, boundary = stored_ids(serialized, token_bytes)
    if len(ids) > most:
        raise ValueError(f"ids has {len(ids)} tokens; max_seq_length is {most}")
    if ids.max() >= vocab_size or ids.min() < 0:
        raise ValueError(f"ids has {ids[(ids < 0) | (ids >= vocab_size)][0]}, which isn't among "
                         f"the {vocab_size:,} of the vocabulary")
    return ids, boundary


@functools.lru_cache(maxsize=1 << 14)
def _before_ids(first_segment_length: int, size: int) -> bytes:
    """Returns all bytes of a `tf.train.Example` before the ids, its last `size` bytes.

    Deterministic serialization sorts keys. Protobuf takes 10 times as long.
    """
    boundary = (_field(1, b"first_segment_length")
                + _field(2, _field(3, _field(1, _number(first_segment_length)))))
    ids = _field(1, b"ids") + _field(2, _field(1, _field(1, b"", size), size), size)
    return _field(1, _field(1, boundary) + _field(1, ids, size), size)


def _field(number: int, content: bytes, following: int = 0) -> bytes:
    """Returns a field of a message, without the last `following` bytes of its content."""
    return bytes([number << 3 | _BYTES]) + _number(len(content) + following) + content


def _number(value: int) -> bytes:
    """Returns a number in bytes of 7 bits, the lowest first; all but the last have the top bit."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
