"""Examples of a directory of records as NumPy arrays: all of them in order, or a single one."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from electra_tf.data import manifest as manifests
from electra_tf.data import reader
from electra_tf.data.manifest import Manifest, Shard
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.text.vocabulary import Vocabulary


class Rows(NamedTuple):
    """Consecutive examples, B of them, with L positions each."""

    first: int
    """Number of the first one in its split."""
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

    def rows(self, split: str) -> Iterator[Rows]:
        """Yields the examples of "train" or "eval" in order.

        Raises:
            UserError: a shard is damaged, or isn't what the manifest says.
        """
        first = 0
        for shard in self.manifest.shards_of(split):
            yield from self._read(shard, first, 0, shard.examples)
            first += shard.examples

    def place(self, split: str, number: int) -> Place:
        """Returns where the example is that `rows(split)` gives this number."""
        for shard in self.manifest.shards_of(split):
            if number < shard.examples:
                return Place(shard, number)
            number -= shard.examples
        raise ValueError(f"{split} has no example of this number")

    def example(self, place: Place) -> Rows:
        """Returns one example, B = 1."""
        return next(self._read(place.shard, place.number, place.number, place.number + 1))

    def _read(self, shard: Shard, first: int, start: int, stop: int) -> Iterator[Rows]:
        """Yields examples [start, stop) of a shard, counted from `first` on."""
        for batch in reader.examples(self.data_dir, self.manifest, shard, start=start, stop=stop,
                                     pad_id=self.vocabulary.pad_id):
            yield Rows(first, *batch)
            first += len(batch.ids)


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
