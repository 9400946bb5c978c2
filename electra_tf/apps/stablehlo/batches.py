"""The batches of `electra_tf.data.pipeline`, read without TensorFlow: the same, in the same order.

A window is kept in memory. Every shard's checksum was compared with the manifest before, so the
checksums within it aren't.
"""

import itertools
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from electra_tf.apps.stablehlo.layout import Reading
from electra_tf.apps.stablehlo.philox import shuffled
from electra_tf.data.mixture import SHARES, Mixture, Source
from electra_tf.data.order import ShuffleWindow, part_of, windows
from electra_tf.data.row_places import SPECIAL, RowPlaces
from electra_tf.platform.errors import UserError

_HEADER = struct.Struct("<Q4x")
"""Of a TFRecord: the length of its content, and that number's checksum."""
_FOOTER = 4
_ID_TYPES = {2: np.dtype("<u2"), 4: np.dtype("<i4")}
_VARINT, _BYTES = 0, 2
"""Wire types of protocol buffers."""


class NumpyBatch(NamedTuple):
    """As `electra_tf.data.example.Batch`."""

    ids: np.ndarray
    """int32 [B, L]."""
    valid: np.ndarray
    """bool [B, L]."""
    segment_ids: np.ndarray
    """int32 [B, L]."""


class _StoredRow(NamedTuple):
    example: bytes
    first: int
    """As `RowPlaces.first_tokens`."""


def training_batches(records: Mixture, reading: Reading, *, batch_size: int, first_step: int,
                     last_step: int) -> Iterator[NumpyBatch]:
    """Yields the global batches of steps [first_step, last_step).

    Args:
        records: to read, of this machine.
        reading: seed, window, length and padding of the run.
        batch_size: B.
        first_step: a run that resumes at step t begins there.
        last_step: one past the last step.

    Raises:
        UserError: a shard is damaged.
    """
    places = RowPlaces(records.max_seq_length, reading.length)
    rows = _rows(records, reading, places, first_step * batch_size, last_step * batch_size)
    while batch := list(itertools.islice(rows, batch_size)):
        yield _parsed(batch, records, places, reading.pad_id)


def _rows(records: Mixture, reading: Reading, places: RowPlaces, start: int,
          stop: int) -> Iterator[_StoredRow]:
    if len(records.sources) == 1:
        return _stream(records.sources[0], reading, places, start=start, stop=stop,
                       window_examples=reading.shuffle_window)
    first_block, last_block = start // SHARES, -(-stop // SHARES)
    streams = [
        _stream(source, reading, places, stream=number, start=first_block * source.share,
                stop=last_block * source.share,
                window_examples=-(-reading.shuffle_window * source.share // SHARES))
        for number, source in enumerate(records.sources)]
    members = np.repeat(np.arange(len(streams)), [source.share for source in records.sources])
    choices = itertools.chain.from_iterable(
        shuffled(members, (reading.seed, block)) for block in range(first_block, last_block))
    return itertools.islice((next(streams[choice]) for choice in choices),
                            start % SHARES, start % SHARES + stop - start)


def _stream(source: Source, reading: Reading, places: RowPlaces, *, start: int, stop: int,
            window_examples: int, stream: int = 0) -> Iterator[_StoredRow]:
    shards = source.shards("train")
    for window in windows([examples for _, examples in shards], seed=reading.seed,
                          window_rows=window_examples, start=start, stop=stop, rows=places.rows,
                          stream=stream):
        yield from _shuffled_window(window, [shards[number] for number in window.shards], places)


def _shuffled_window(window: ShuffleWindow, shards: Sequence[tuple[str, int]],
                     places: RowPlaces) -> Iterator[_StoredRow]:
    examples = [example for path, size in shards
                for example in _records(path, *part_of(size, window.part, window.parts))]
    order = shuffled(range(window.rows), (window.seed, window.rows))
    if len(examples) * places.rows != window.rows:
        raise UserError(f"{shards[0][0]} or a shard after it holds fewer examples than its "
                        "manifest says; copy the records again or build them again.")
    for number in order[window.start:window.stop]:
        example, row = divmod(number, places.rows)
        yield _StoredRow(examples[example], places.first_tokens(row, window.seed))


def _records(path: str, first: int, last: int) -> list[bytes]:
    """Returns records [first, last) of a TFRecord file."""
    with open(path, "rb") as file:
        content = file.read()
    found, place = [], 0
    for number in range(last):
        if place == len(content):
            break
        if place + _HEADER.size > len(content):
            raise _damaged(path)
        (size,) = _HEADER.unpack_from(content, place)
        begin = place + _HEADER.size
        place = begin + size + _FOOTER
        if place > len(content):
            raise _damaged(path)
        if number >= first:
            found.append(content[begin:begin + size])
    return found


def _damaged(path: str) -> UserError:
    return UserError(f"the records are damaged: {path} isn't whole; copy them again or build them "
                     "again.")


def _parsed(rows: list[_StoredRow], records: Mixture, places: RowPlaces,
            pad_id: int) -> NumpyBatch:
    shape = len(rows), places.length
    batch = NumpyBatch(np.full(shape, pad_id, np.int32), np.zeros(shape, bool),
                       np.zeros(shape, np.int32))
    for index, row in enumerate(rows):
        try:
            ids, boundary = stored_ids(row.example, records.token_bytes)
        except (ValueError, IndexError) as error:
            raise UserError(f"the records are damaged: {error}; build them again.") from error
        segments = (np.arange(len(ids)) >= boundary).astype(np.int32)
        if places.length < places.built:
            ids, segments = _cut(ids, segments, row.first, places)
        batch.ids[index, :len(ids)] = ids
        batch.valid[index, :len(ids)] = True
        batch.segment_ids[index, :len(ids)] = segments
    return batch


def _cut(ids: np.ndarray, segments: np.ndarray, first: int,
         places: RowPlaces) -> tuple[np.ndarray, np.ndarray]:
    """Returns one row of an example, as `Cutting` cuts it."""
    held = min(max(len(ids) - 1 - first, 0), places.length - SPECIAL)
    if not held:
        return ids[:0], segments[:0]
    row = np.concatenate([ids[:1], ids[first:first + held], ids[-1:]])
    text = segments[first:first + held] - segments[first]
    return row, np.concatenate([[0], text, text[-1:]])


def stored_ids(serialized: bytes, token_bytes: int) -> tuple[np.ndarray, int]:
    """As `electra_tf.data.example.stored_ids`; ValueError or IndexError for what is none."""
    features = _first(serialized, 1)
    by_name = {}
    for number, entry in _fields(features):
        if number == 1:
            by_name[_first(entry, 1)] = _first(entry, 2)
    if by_name.keys() != {b"ids", b"first_segment_length"}:
        raise ValueError("an example has other fields than ids and first_segment_length")
    raw = _first(_first(by_name[b"ids"], 1), 1)
    numbers = _first(_first(by_name[b"first_segment_length"], 3), 1)
    boundary = numbers if isinstance(numbers, int) else _varint(numbers, 0)[0]
    return np.frombuffer(raw, _ID_TYPES[token_bytes]), boundary


def _first(message: bytes, wanted: int) -> bytes | int:
    """Returns the first field of a number."""
    for number, value in _fields(message):
        if number == wanted:
            return value
    raise ValueError(f"an example lacks a field {wanted}")


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yields number and value of every field of a protocol buffer's message."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        if tag & 7 == _VARINT:
            value, place = _varint(message, place)
        elif tag & 7 == _BYTES:
            size, place = _varint(message, place)
            value, place = message[place:place + size], place + size
        else:
            raise ValueError("an example has a field of another type")
        if place > len(message):
            raise ValueError("an example is cut short")
        yield tag >> 3, value


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """Returns the number that begins at a place, and the place after it."""
    value = shift = 0
    while True:
        byte = message[place]
        value, place, shift = value | (byte & 127) << shift, place + 1, shift + 7
        if byte < 128:
            return value, place
