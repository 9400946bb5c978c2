"""Reads single examples of a directory of records, and counts over all of them."""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from electra_tf.data import manifest as manifests
from electra_tf.data import pipeline, reader
from electra_tf.data.example import Batch
from electra_tf.data.manifest import Manifest
from electra_tf.data.records import SPLITS, Shard
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.text.vocabulary import Vocabulary


class Place(NamedTuple):
    """The place of an example in the records."""

    shard: Shard
    number: int
    """Number of the example within its shard, from 0."""


@dataclasses.dataclass(frozen=True)
class RecordsDirectory:
    """A directory of records with its vocabulary and all shards; see `open_records`."""

    data_dir: Path
    manifest: Manifest
    vocabulary: Vocabulary

    def examples(self, split: str) -> int:
        """Returns the number of examples of "train" or "eval"."""
        return self.manifest.examples(split)

    def batches(self, split: str) -> Iterator[Batch]:
        """Yields the examples of "train" or "eval" in order; `UserError` for a damaged shard."""
        for shard in self.manifest.shards_of(split):
            yield from self._read(shard, 0, shard.examples)

    def place(self, split: str, number: int) -> Place:
        """Returns the place of the example that `batches(split)` yields after `number` others."""
        for shard in self.manifest.shards_of(split):
            if number < shard.examples:
                return Place(shard, number)
            number -= shard.examples
        raise ValueError(f"{split} has no example of this number")

    def example(self, place: Place) -> Batch:
        """Returns one example, B = 1."""
        return next(self._read(place.shard, place.number, place.number + 1))

    def _read(self, shard: Shard, start: int, stop: int) -> Iterator[Batch]:
        records = self.manifest.records(self.data_dir)
        for serialized in reader.serialized_examples(records, shard, start=start, stop=stop):
            parsed = pipeline.parse_examples(serialized, records, self.vocabulary.pad_id)
            yield Batch(*(part.numpy() for part in parsed))


def open_records(data_dir: Path) -> RecordsDirectory:
    """Returns the records of a directory, with their vocabulary.

    An unfinished build, a missing or different vocabulary, and a shard that is missing or of
    another size are refused with a `UserError`.
    """
    manifest = manifests.load(data_dir)
    path = data_dir / manifests.VOCABULARY_NAME
    vocabulary = Vocabulary.load(path)
    if vocabulary.sha256 != manifest.vocabulary.sha256:
        raise UserError(f"{path} isn't the vocabulary of these records: it has "
                        f"{vocabulary.size:,} pieces, theirs {manifest.vocabulary.size:,}; put "
                        "theirs back, or build the records again.")
    manifests.verify_shards(data_dir, manifest, checksums=False)
    return RecordsDirectory(data_dir, manifest, vocabulary)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitCounts:
    """Counts over the examples of "train" or "eval"."""

    lengths: np.ndarray
    """int64 [L + 1]: examples of each number of tokens."""
    pieces: np.ndarray
    """int64 [V]: frequency of each piece."""
    hashes: np.ndarray
    """int64 [examples], equal for examples of equal tokens."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Survey:
    """The counts over a directory of records."""

    records: RecordsDirectory
    splits: dict[str, SplitCounts]
    """By "train" and "eval"."""
    copies: int
    """Training examples that are equal to an earlier one."""
    leaked: int
    """Held-out examples that are also training examples."""

    @property
    def pieces(self) -> np.ndarray:
        """int64 [V]: frequency of each piece in all examples."""
        return sum(counts.pieces for counts in self.splits.values())


def survey(records: RecordsDirectory) -> Survey:
    """Counts over all examples of a directory; memory holds a hash of 8 bytes for each."""
    splits = {split: _counted(records, split) for split in SPLITS}
    train, held_out = (splits[split].hashes for split in ("train", "eval"))
    return Survey(records=records, splits=splits, copies=train.size - np.unique(train).size,
                  leaked=int(np.isin(held_out, train).sum()))


def _counted(records: RecordsDirectory, split: str) -> SplitCounts:
    lengths = np.zeros(records.manifest.max_seq_length + 1, np.int64)
    pieces, hashes = np.zeros(records.vocabulary.size, np.int64), [np.zeros(0, np.int64)]
    for ids, valid, _ in records.batches(split):
        lengths += np.bincount(np.count_nonzero(valid, axis=1), minlength=lengths.size)
        pieces += np.bincount(ids[valid], minlength=pieces.size)
        hashes.append(np.array([hash(row.tobytes()) for row in ids]))
    return SplitCounts(lengths=lengths, pieces=pieces, hashes=np.concatenate(hashes))
