"""What the examples of a directory hold, counted in one pass and in memory that doesn't grow."""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from electra_tf.apps.inspection.reading import Place, Records, Rows, text_of
from electra_tf.apps.inspection.repetition import DistinctSample, Hasher, HeldOutText
from electra_tf.data.manifest import SPLITS
from electra_tf.text.unknown_words import DIGITS, SIGNS, scripts_of
from electra_tf.text.vocabulary import SPECIAL_TOKENS

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
    """How often it is there; of held-out text, how many passages of its example training has."""
    place: Place


@dataclasses.dataclass
class SplitCounts:
    """Counts of "train" or "eval", by length and by piece; S scripts."""

    examples: int
    """That are read."""
    lengths: np.ndarray
    """int64 [L + 1]: examples of each number of tokens."""
    pieces: np.ndarray
    """int64 [V]: how often each is there."""
    beside_unknown: np.ndarray
    """int64 [S + 1]: [UNK] by the script of the word that is nearest before it in its example, or
    else after it; last, those without any."""
    single_segment: int = 0
    """Examples of one segment."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Repetition:
    """Text that is there more than once."""

    passage: int
    """Tokens of a passage."""
    rows: DistinctSample
    """Training examples."""
    passages: DistinctSample
    """Passages of training examples."""
    most_frequent: tuple[Text, ...]
    """Training passages with the most copies, which don't overlap."""
    held_out: HeldOutText | None
    """None if no examples are held out."""
    leaked: tuple[Text, ...]
    """Held-out passages that training has, of different examples."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Survey:
    """All that is known of a directory of records."""

    records: Records
    limit: int
    """Examples of each split that are read at most."""
    splits: dict[str, SplitCounts]
    """By "train" and "eval"."""
    script_names: tuple[str, ...]
    """S names, the most frequent first."""
    script: np.ndarray
    """int64 [V]: number of each piece's script among `script_names`."""
    repetition: Repetition

    @property
    def pieces(self) -> np.ndarray:
        """int64 [V]: how often each piece is in all examples that are read."""
        return sum(counts.pieces for counts in self.splits.values())

    @property
    def complete(self) -> bool:
        """Whether all examples are read."""
        return all(self.splits[split].examples == self.records.examples(split)
                   for split in SPLITS)


def survey(records: Records, limit: int) -> Survey:
    """Reads the examples of a directory.

    Args:
        records: by `open_records`.
        limit: examples of each split that are read at most, the first ones of every shard.

    Raises:
        UserError: a shard is damaged.
    """
    return _Reader(records, limit).survey()


class _Reader:
    """Reads held-out examples, then training examples."""

    def __init__(self, records: Records, limit: int):
        self._records, self._limit = records, limit
        vocabulary, length = records.vocabulary, records.manifest.max_seq_length
        passage = min(PASSAGE, max(1, length // 2))
        self._hasher = Hasher(vocabulary.size, passage)
        names = scripts_of(vocabulary.tokens)
        self._names = tuple(sorted(set(names)))
        self._script = np.array([self._names.index(name) for name in names])
        self._lettered = np.array([name not in (DIGITS, SIGNS) for name in names])
        self._special = [vocabulary.ids[token] for token in SPECIAL_TOKENS]
        self._markup = (vocabulary.cls_id, vocabulary.sep_id)

    def survey(self) -> Survey:
        held_out = self._held_out()
        splits = {"eval": self._counted("eval", self._rows("eval"))}
        rows, passages = DistinctSample(MOST_DISTINCT), DistinctSample(MOST_DISTINCT)
        splits["train"] = self._counted(
            "train", self._compared(self._rows("train"), held_out, rows, passages))
        repetition = Repetition(
            passage=self._hasher.passage, rows=rows, passages=passages,
            most_frequent=tuple(self._most_frequent(passages)), held_out=held_out,
            leaked=tuple(self._leaked(held_out)))
        names, script = self._by_frequency(sum(each.pieces for each in splits.values()))
        for counts in splits.values():
            counts.beside_unknown = counts.beside_unknown[[*script, len(script)]]
        order = np.argsort(script)
        return Survey(
            records=self._records, limit=self._limit,
            splits={split: splits[split] for split in SPLITS}, script_names=names,
            script=order[self._script], repetition=repetition)

    def _rows(self, split: str) -> Iterator[Rows]:
        return self._records.rows(split, self._limit)

    def _counted(self, split: str, batches: Iterator[Rows]) -> SplitCounts:
        vocabulary = self._records.vocabulary
        counts = SplitCounts(
            examples=0, lengths=np.zeros(self._records.manifest.max_seq_length + 1, np.int64),
            pieces=np.zeros(vocabulary.size, np.int64),
            beside_unknown=np.zeros(len(self._names) + 1, np.int64))
        for rows in batches:
            counts.examples += len(rows.ids)
            counts.lengths += np.bincount(np.count_nonzero(rows.valid, axis=1),
                                          minlength=counts.lengths.size)
            counts.pieces += np.bincount(rows.ids[rows.valid], minlength=vocabulary.size)
            counts.single_segment += int(np.count_nonzero(~rows.segment_ids.any(axis=1)))
            counts.beside_unknown += self._beside_unknown(rows)
        return counts

    def _beside_unknown(self, rows: Rows) -> np.ndarray:
        unknown = rows.valid & (rows.ids == self._records.vocabulary.unk_id)
        having = unknown.any(axis=1)
        ids, unknown = rows.ids[having], unknown[having]
        known = text_of(Rows(0, ids, rows.valid[having], rows.segment_ids[having]), self._special)
        known &= self._lettered[ids]
        place = np.arange(ids.shape[1])
        before = np.maximum.accumulate(np.where(known, place, -1), axis=1)
        after = np.minimum.accumulate(
            np.where(known, place, ids.shape[1])[:, ::-1], axis=1)[:, ::-1]
        nearest = np.where(before >= 0, before, np.where(after < ids.shape[1], after, -1))
        scripts = self._script[np.take_along_axis(ids, np.maximum(nearest, 0), axis=1)]
        return np.bincount(np.where(nearest >= 0, scripts, len(self._names))[unknown],
                           minlength=len(self._names) + 1)

    def _held_out(self) -> HeldOutText | None:
        """Keeps held-out examples, evenly spaced if they are many."""
        count = min(self._limit, self._records.examples("eval"))
        if not count:
            return None
        every = -(-count // MOST_HELD_OUT)
        kept = [Rows(rows.first, *(part[-rows.first % every::every] for part in rows[1:]))
                for rows in self._rows("eval")]
        whole = Rows(0, *(np.concatenate(parts) for parts in zip(*(
            rows[1:] for rows in kept), strict=True)))
        return HeldOutText(whole.ids, text_of(whole, self._markup), self._hasher)

    def _compared(self, batches: Iterator[Rows], held_out: HeldOutText | None,
                  rows: DistinctSample, passages: DistinctSample) -> Iterator[Rows]:
        length = self._records.manifest.max_seq_length
        for batch in batches:
            hashes = self._hasher(batch.ids, text_of(batch, self._markup))
            rows.add(hashes.rows, batch.first + np.arange(hashes.rows.size))
            passages.add(hashes.passages, (batch.first + hashes.row) * length + hashes.start)
            if held_out is not None:
                held_out.compare(hashes)
            yield batch

    def _most_frequent(self, passages: DistinctSample) -> Iterator[Text]:
        found: list[set] = []
        quarter = max(1, self._hasher.passage // 4)
        for where, copies in passages.most_frequent(_LOOKED_AT):
            number, start = divmod(where, self._records.manifest.max_seq_length)
            place = self._records.place("train", number, self._limit)
            rows = self._records.example(place)
            ids = rows.ids[text_of(rows, self._markup)][start:start + self._hasher.passage]
            parts = {tuple(ids[index:index + quarter].tolist())
                     for index in range(len(ids) - quarter + 1)}
            if all(parts.isdisjoint(other) for other in found):
                found.append(parts)
                yield Text(ids, copies, place)
            if len(found) == _SHOWN:
                return

    def _leaked(self, held_out: HeldOutText | None) -> Iterator[Text]:
        """Yields the first seen passage of the held-out examples that have most of them."""
        if held_out is None:
            return
        seen = np.flatnonzero(held_out.seen_passages)
        examples, first, counts = np.unique(
            held_out.row[seen], return_index=True, return_counts=True)
        every = -(-min(self._limit, self._records.examples("eval")) // MOST_HELD_OUT)
        for index in np.argsort(-counts, kind="stable")[:_SHOWN]:
            row, start = int(examples[index]), int(held_out.start[seen[first[index]]])
            ids = held_out.ids[row][held_out.text[row]][start:start + self._hasher.passage]
            yield Text(ids, int(counts[index]),
                       self._records.place("eval", row * every, self._limit))

    def _by_frequency(self, pieces: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
        """Returns the scripts' names, the most frequent first, and their old numbers."""
        pieces[self._special] = 0
        order = np.argsort(-np.bincount(self._script, pieces, len(self._names)), kind="stable")
        return tuple(self._names[number] for number in order), order
