"""Examples of a directory of records as NumPy arrays: all of them in order, or a single one."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from electra_tf.data import manifest as manifests
from electra_tf.data.example import Batch, parse_examples
from electra_tf.data.manifest import Manifest, Shard
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.text.vocabulary import Vocabulary

_BATCH_TOKENS = 1 << 18
"""Positions that are looked at together: some megabytes, and NumPy's calls take no time."""
_BUFFER_BYTES = 1 << 20


class Rows(NamedTuple):
    """Consecutive examples, B of them, with L positions each."""

    first: int
    """Number of the first one, counted over those of the split that are read."""
    ids: np.ndarray
    """int32 [B, L], [PAD] past the end."""
    valid: np.ndarray
    """bool [B, L], False on padding."""
    segment_ids: np.ndarray
    """int32 [B, L], 1 in the second segment."""


class Place(NamedTuple):
    """Where an example is stored."""

    shard: Shard
    number: int
    """Of the example within its shard, from 0."""


@dataclasses.dataclass(frozen=True)
class Records:
    """A directory of records whose vocabulary and shards are there; see `open_records`."""

    data_dir: Path
    manifest: Manifest
    vocabulary: Vocabulary

    def examples(self, split: str) -> int:
        """Returns how many examples "train" or "eval" has."""
        return sum(shard.examples for shard in self.manifest.shards_of(split))

    def rows(self, split: str, limit: int) -> Iterator[Rows]:
        """Yields the first examples of every shard, `limit` of them together.

        Args:
            split: "train" or "eval".
            limit: examples, divided among the shards by their numbers of examples.

        Raises:
            UserError: a shard is damaged, or isn't what the manifest says.
        """
        first = 0
        for shard, count in self._parts(split, limit):
            for ids, valid, segment_ids in self._read(shard, count):
                yield Rows(first, ids, valid, segment_ids)
                first += len(ids)

    def place(self, split: str, number: int, limit: int) -> Place:
        """Returns where the example is that `rows(split, limit)` gives this number."""
        for shard, count in self._parts(split, limit):
            if number < count:
                return Place(shard, number)
            number -= count
        raise ValueError(f"example {number} of {split} is not among those that are read")

    def example(self, place: Place) -> Rows:
        """Returns one example, B = 1."""
        batch = next(iter(self._read(place.shard, place.number + 1, place.number)))
        return Rows(place.number, *batch)

    @functools.cached_property
    def _parse(self) -> Callable[[tf.Tensor], Batch]:
        """Takes string [B]."""
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def parse(serialized: tf.Tensor) -> Batch:
            return parse_examples(serialized, self.manifest.max_seq_length,
                                  self.manifest.token_bytes, self.vocabulary.pad_id)
        return parse

    def _parts(self, split: str, limit: int) -> list[tuple[Shard, int]]:
        """Returns the shards, and how many examples of each are read."""
        shards, whole = self.manifest.shards_of(split), max(1, self.examples(split))
        ends = itertools.accumulate(shard.examples for shard in shards)
        read = [min(limit, whole) * end // whole for end in (0, *ends)]
        return [(shard, stop - start)
                for shard, (start, stop) in zip(shards, itertools.pairwise(read), strict=True)]

    def _read(self, shard: Shard, stop: int, start: int = 0) -> Iterator[tuple]:
        path, records = self.data_dir / shard.name, self.manifest
        examples = (
            tf.data.TFRecordDataset(str(path), buffer_size=_BUFFER_BYTES)
            .skip(start).take(stop - start)
            .batch(max(1, _BATCH_TOKENS // records.max_seq_length))
            .prefetch(2))
        found = start
        try:
            for serialized in examples:
                ids, valid, segment_ids = (part.numpy() for part in self._parse(serialized))
                if ids.min() < 0 or ids.max() >= self.vocabulary.size:
                    raise _damaged(path, f"an id isn't among the {self.vocabulary.size:,} of the "
                                   "vocabulary")
                found += len(ids)
                yield ids, valid, segment_ids
        except tf.errors.DataLossError as error:
            raise _damaged(path, "a record is cut off or changed") from error
        except tf.errors.InvalidArgumentError as error:
            raise _damaged(path, f"after {found:,} examples comes none of ours") from error
        except tf.errors.OpError as error:
            raise _damaged(path, "it can't be read") from error
        if found < stop:
            raise _damaged(path, f"it has {found:,} examples instead of {shard.examples:,}")


def open_records(data_dir: Path) -> Records:
    """Returns the records of a directory, with their vocabulary.

    Raises:
        UserError: there is no finished build, its vocabulary is missing or another one, or a shard
            is missing or of another size.
    """
    manifest = manifests.load(data_dir)
    path = data_dir / manifests.VOCABULARY_NAME
    vocabulary = Vocabulary.load(path)
    if vocabulary.sha256 != manifest.vocabulary.sha256:
        raise UserError(
            f"{path} isn't the vocabulary of these records: it has {vocabulary.size:,} pieces, "
            f"theirs {manifest.vocabulary.size:,}, and another content; put theirs back, or build "
            "the records again.")
    manifests.verify_shards(data_dir, manifest, checksums=False)
    return Records(data_dir, manifest, vocabulary)


def text_of(rows: Rows, special: Sequence[int]) -> np.ndarray:
    """Returns bool [B, L]: tokens of the text, neither padding nor one of the `special` ids."""
    found = rows.valid.copy()
    for each in special:
        found &= rows.ids != each
    return found


def _damaged(path: Path, problem: str) -> UserError:
    return UserError(f"{path} isn't what {manifests.MANIFEST_NAME} says: {problem}; restore the "
                     "file, or build the records again with --overwrite.")
