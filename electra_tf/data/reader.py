"""Reads records as NumPy arrays without TensorFlow: training batches, or shards in their order.

The reader compares the checksum of every record and names a damaged file. It keeps one window of
`order` in memory while it yields the window's rows.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from electra_tf.data import tfrecord
from electra_tf.data.example import Batch, checked_ids
from electra_tf.data.manifest import Manifest, Shard, misfit
from electra_tf.data.mixture import Source
from electra_tf.data.order import SPECIAL, Order, RowPlaces, ShuffleWindow, part_of, permutation
from electra_tf.platform.storage import Path

TOKENS_TOGETHER = 1 << 18
"""Positions of the examples that are read together: some megabytes."""


class _Row(NamedTuple):
    """The tokens of a row, and how many of them belong to the first segment."""

    ids: np.ndarray
    boundary: int


def training_batches(order: Order, *, pad_id: int, batch_size: int, first_step: int,
                     last_step: int) -> Iterator[Batch]:
    """Yields the global batches of steps [first_step, last_step), those of `pipeline`.

    Args:
        order: of the run.
        pad_id: id that fills up short rows.
        batch_size: B.
        first_step: a run that resumes at step t begins there.
        last_step: one past the last step.

    Raises:
        UserError: a shard is damaged, or isn't what the manifest says.
    """
    rows = _rows(order, first_step * batch_size, last_step * batch_size)
    while batch := list(itertools.islice(rows, batch_size)):
        yield _stacked(batch, order.places.length, pad_id)


def examples(directory: Path, manifest: Manifest, shard: Shard, *, pad_id: int, start: int = 0,
             stop: int | None = None) -> Iterator[Batch]:
    """Yields examples [start, stop) of a shard in their order, some thousand in a batch.

    Args:
        directory: of the shard.
        manifest: of the directory.
        shard: one of the manifest's.
        pad_id: id that fills up short examples.
        start: number of the first example.
        stop: one past the last; by default the number of examples of the shard.

    Raises:
        UserError: the shard is damaged, or isn't what the manifest says.
    """
    for rows in _examples(directory, manifest, shard, start,
                          shard.examples if stop is None else stop):
        yield _stacked(rows, manifest.max_seq_length, pad_id)


def _rows(order: Order, start: int, stop: int) -> Iterator[_Row]:
    streams = [_stream(source, windows, order.places) for source, windows in zip(
        order.records.sources, order.streams(start, stop), strict=True)]
    if len(streams) == 1:
        return streams[0]
    blocks, members = order.blocks(start, stop), order.members
    choices = itertools.chain.from_iterable(
        members[permutation(len(members), (order.seed, block))] for block in blocks)
    skipped = start - blocks.start * len(members)
    return itertools.islice((next(streams[choice]) for choice in choices),
                            skipped, skipped + stop - start)


def _stream(source: Source, windows: Iterator[ShuffleWindow],
            places: RowPlaces) -> Iterator[_Row]:
    shards = source.manifest.shards_of("train")
    for window in windows:
        stored = [example for shard in (shards[number] for number in window.shards)
                  for some in _examples(source.data_dir, source.manifest, shard,
                                        *part_of(shard.examples, window.part, window.parts))
                  for example in some]
        order = permutation(window.rows, (window.seed, window.rows))
        for number in order[window.start:window.stop]:
            example, row = divmod(number, places.rows)
            yield _cut(stored[example], places.first_tokens(row, window.seed), places)


def _examples(directory: Path, manifest: Manifest, shard: Shard, start: int,
              stop: int) -> Iterator[list[_Row]]:
    """Yields examples [start, stop) of a shard, checked, some thousand together."""
    path, found = directory / shard.name, start
    together = max(1, TOKENS_TOGETHER // manifest.max_seq_length)
    try:
        for contents in tfrecord.read(path, start, stop, together):
            yield [_row(content, found + number, path, manifest)
                   for number, content in enumerate(contents)]
            found += len(contents)
    except OSError as error:
        raise misfit(path, f"it can't be read ({error.strerror})") from error
    except ValueError as error:
        raise misfit(path, f"{error} (record {found:,} or a later one)") from error
    if found < stop:
        raise misfit(path, f"it has {found:,} examples instead of {shard.examples:,}")


def _row(content: bytes, number: int, path: Path, manifest: Manifest) -> _Row:
    try:
        return _Row(*checked_ids(content, manifest.token_bytes, manifest.max_seq_length,
                                 manifest.vocabulary.size))
    except ValueError as error:
        raise misfit(path, f"record {number:,}: {error}") from error


def _cut(example: _Row, first: int, places: RowPlaces) -> _Row:
    """Returns one row of an example, as `pipeline.cut` does."""
    if places.length == places.built:
        return example
    ids, boundary = example
    held = min(max(len(ids) - 1 - first, 0), places.length - SPECIAL)
    if not held:
        return _Row(ids[:0], 0)
    row = np.concatenate([ids[:1], ids[first:first + held], ids[-1:]])
    return _Row(row, boundary - first + 1 if first < boundary < first + held else len(row))


def _stacked(rows: Sequence[_Row], length: int, pad_id: int) -> Batch:
    """Pads rows to `length`."""
    positions = np.arange(length)
    valid = positions < np.array([len(row.ids) for row in rows])[:, np.newaxis]
    ids = np.full(valid.shape, pad_id, np.int32)
    ids[valid] = np.concatenate([row.ids for row in rows])
    second = valid & (positions >= np.array([row.boundary for row in rows])[:, np.newaxis])
    return Batch(ids=ids, valid=valid, segment_ids=second.astype(np.int32))
