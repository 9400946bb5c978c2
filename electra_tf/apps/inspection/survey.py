"""What the examples of a directory hold, counted in one pass and in memory that does not grow."""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from electra_tf.apps.inspection.reading import Place, Records, Rows, text_of
from electra_tf.apps.inspection.repetition import DistinctSample, Hasher, Hashes, KnownHashes
from electra_tf.data.manifest import SPLITS

PASSAGE = 32
"""Tokens of a passage, some 25 words; half an example where those are shorter than 64."""
MOST_DISTINCT = 1 << 20
"""Examples, and passages, of which copies are counted; of more a sample is taken."""
MOST_HELD_OUT = 8192
"""Held-out examples that are compared with all training examples."""
_SHOWN = 5
_LOOKED_AT = 40
"""Passages among which `_SHOWN` are looked for that have no quarter in common."""


class Text(NamedTuple):
    """A passage that is shown."""

    ids: np.ndarray
    """int32 [n]."""
    copies: int
    """Its frequency; for held-out text, how many passages of its example training has."""
    place: Place


@dataclasses.dataclass
class SplitCounts:
    """Counts over the examples of "train" or "eval"."""

    examples: int
    lengths: np.ndarray
    """int64 [L + 1]: examples of each number of tokens."""
    pieces: np.ndarray
    """int64 [V]: frequency of each piece."""

    def add(self, rows: Rows) -> None:
        """Counts a batch."""
        self.examples += len(rows.ids)
        self.lengths += np.bincount(np.count_nonzero(rows.valid, axis=1),
                                    minlength=self.lengths.size)
        self.pieces += np.bincount(rows.ids[rows.valid], minlength=self.pieces.size)


class HeldOutText(NamedTuple):
    """B held-out examples, or a sample of them, and what of them the training examples have."""

    ids: np.ndarray
    """int32 [B, L]."""
    text: np.ndarray
    """bool [B, L], tokens of the text."""
    hashes: Hashes
    rows: KnownHashes
    """Whole examples, apart from [SEP]."""
    passages: KnownHashes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Survey:
    """Everything that was counted in a directory of records."""

    records: Records
    splits: dict[str, SplitCounts]
    """By "train" and "eval"."""
    passage: int
    """Tokens of a passage."""
    rows: DistinctSample
    passages: DistinctSample
    """Training examples, and their passages."""
    most_frequent: tuple[Text, ...]
    """Training passages with the most copies, which do not overlap."""
    held_out: HeldOutText | None
    """None if no examples are held out."""
    leaked: tuple[Text, ...]
    """Held-out passages that training has, of different examples."""

    @property
    def pieces(self) -> np.ndarray:
        """int64 [V]: frequency of each piece in all examples."""
        return sum(counts.pieces for counts in self.splits.values())


def survey(records: Records) -> Survey:
    """Reads the examples of a directory.

    Args:
        records: by `open_records`.

    Raises:
        UserError: a shard is damaged.
    """
    length, size = records.manifest.max_seq_length, records.vocabulary.size
    hasher = Hasher(size, min(PASSAGE, max(1, length // 2)))
    splits = {split: SplitCounts(0, np.zeros(length + 1, np.int64), np.zeros(size, np.int64))
              for split in SPLITS}
    every = -(-records.examples("eval") // MOST_HELD_OUT)
    kept = []
    for batch in records.rows("eval"):
        splits["eval"].add(batch)
        kept.append([part[-batch.first % every::every] for part in batch[1:]])
    held_out = _held_out(records, hasher, kept)
    rows, passages = DistinctSample(MOST_DISTINCT), DistinctSample(MOST_DISTINCT)
    for batch in records.rows("train"):
        splits["train"].add(batch)
        hashes = hasher(batch.ids, _text(records, batch))
        rows.add(hashes.rows, batch.first + np.arange(hashes.rows.size))
        passages.add(hashes.passages, (batch.first + hashes.row) * length + hashes.start)
        if held_out is not None:
            held_out.rows.note(hashes.rows)
            held_out.passages.note(hashes.passages)
    return Survey(
        records=records, splits=splits, passage=hasher.passage, rows=rows,
        passages=passages, held_out=held_out,
        most_frequent=tuple(_most_frequent(records, passages, hasher.passage)),
        leaked=tuple(_leaked(records, held_out, hasher.passage, every)))


def _text(records: Records, rows: Rows) -> np.ndarray:
    return text_of(rows, (records.vocabulary.cls_id, records.vocabulary.sep_id))


def _held_out(records: Records, hasher: Hasher,
              kept: list[list[np.ndarray]]) -> HeldOutText | None:
    if not kept:
        return None
    whole = Rows(0, *map(np.concatenate, zip(*kept, strict=True)))
    text = _text(records, whole)
    hashes = hasher(whole.ids, text)
    return HeldOutText(whole.ids, text, hashes, KnownHashes(hashes.rows),
                       KnownHashes(hashes.passages))


def _most_frequent(records: Records, passages: DistinctSample, size: int) -> Iterator[Text]:
    found: list[set] = []
    quarter = max(1, size // 4)
    for where, copies in passages.most_frequent(_LOOKED_AT):
        number, start = divmod(where, records.manifest.max_seq_length)
        place = records.place("train", number)
        rows = records.example(place)
        ids = rows.ids[_text(records, rows)][start:start + size]
        parts = {tuple(part) for part in np.lib.stride_tricks.sliding_window_view(
            ids, quarter).tolist()}
        if all(parts.isdisjoint(other) for other in found):
            found.append(parts)
            yield Text(ids, copies, place)
        if len(found) == _SHOWN:
            return


def _leaked(records: Records, held_out: HeldOutText | None, size: int,
            every: int) -> Iterator[Text]:
    """Yields the first seen passage of the held-out examples that have most of them."""
    if held_out is None:
        return
    seen = np.flatnonzero(held_out.passages.seen)
    examples, first, counts = np.unique(
        held_out.hashes.row[seen], return_index=True, return_counts=True)
    for index in np.argsort(-counts, kind="stable")[:_SHOWN]:
        row, start = int(examples[index]), held_out.hashes.start[seen[first[index]]]
        ids = held_out.ids[row][held_out.text[row]][start:start + size]
        yield Text(ids, int(counts[index]), records.place("eval", row * every))
