"""The one chain from text to examples: lines -> ids -> packed examples -> a shard."""

import collections
import dataclasses
import functools
import random
from collections.abc import Iterable, Iterator

import tensorflow as tf

from data_prep.cleaning.plan import NO_CLEANING, CleaningPlan
from data_prep.documents import DOCUMENT_END
from data_prep.packing import Example, Layout, Packing, packing_named
from data_prep.settings import BuildSettings
from data_prep.work_units import WorkUnit
from electra_tf.records import example, manifest, shards
from electra_tf.storage import Path
from electra_tf.text import coverage
from electra_tf.text.normalization import Normalization
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import Vocabulary

_BATCH_CHARACTERS = 1 << 19
"""Text that goes through the tokenizer's graph at once."""


def build_shard(
    unit: WorkUnit, directory: Path, vocabulary: Vocabulary, settings: BuildSettings,
    cleaning: CleaningPlan = NO_CLEANING
) -> tuple[manifest.Shard, manifest.Counts]:
    """Writes the shard of a unit of work: its bytes depend on these arguments only.

    Args:
        unit: the text.
        directory: gets `<unit.name>.tfrecord`, atomically.
        vocabulary: of the tokenizer.
        settings: everything else.
        cleaning: what goes of the text.

    Returns:
        The shard's entry for the manifest, and what went in and came out.

    Raises:
        UserError: the directory is full or may not be written to.
    """
    token_bytes = manifest.token_bytes_for(vocabulary.size)
    chain = Chain(vocabulary, settings, unit.name)
    cleaner = cleaning.cleaner(unit)
    serialized = ((example.serialize_example(*item, token_bytes), len(item.ids))
                  for item in chain.examples(cleaner.clean(unit.lines())))
    shard = shards.write_shard(directory / f"{unit.name}.tfrecord", unit.split, serialized)
    return shard, dataclasses.replace(chain.counts, documents=unit.documents, **cleaner.tally)


class Chain:
    """Text of one unit to examples, counting.

    Args:
        vocabulary: of the tokenizer.
        settings: lengths, packing, rates, seed.
        name: of the unit; with the seed it decides the random draws.
    """

    def __init__(self, vocabulary: Vocabulary, settings: BuildSettings, name: str):
        self._settings, self._vocabulary = settings, vocabulary
        self._tokenizer = _tokenizer(vocabulary, settings.normalization)
        self._layout = Layout(
            max_seq_length=settings.max_seq_length, cls_id=vocabulary.cls_id,
            sep_id=vocabulary.sep_id, continuations=vocabulary.continuations,
            single_segment_rate=settings.single_segment_rate,
            short_example_rate=settings.short_example_rate)
        self._packing: Packing = packing_named(
            settings.packing, self._layout, random.Random(f"{settings.seed}/{name}"))
        self._tally: collections.Counter[str] = collections.Counter()

    @property
    def counts(self) -> manifest.Counts:
        """Of what `examples` has handed out so far, but for documents."""
        return manifest.Counts(**self._tally)

    def examples(self, lines: Iterable[str]) -> Iterator[Example]:
        """Yields the examples of lines (`DOCUMENT_END` between documents), in order."""
        for batch in batches(lines):
            self._tally["lines"] += sum(map(bool, batch))
            self._tally["words"] += sum(len(line.split()) for line in batch)
            self._tally["text_bytes"] += sum(map(_utf8_length, batch))
            self._tally["characters"] += sum(map(len, batch))
            self._tally["hangul_characters"] += coverage.count_hangul(batch)
            for line, ids in zip(batch, self._token_ids(batch), strict=True):
                self._tally["text_tokens"] += len(ids)
                packing = self._packing
                yield from self._counted(
                    packing.end_document() if line == DOCUMENT_END else packing.add_line(ids))
        yield from self._counted(self._packing.finish())

    def _token_ids(self, lines: list[str]) -> Iterator[list[int]]:
        rows = self._tokenizer.tokenize(tf.constant(lines))
        words, unknown = coverage.count_words(rows.flat_values.numpy(), self._vocabulary)
        self._tally["tokenizer_words"] += words
        self._tally["unknown_words"] += unknown
        flat = rows.flat_values.numpy().tolist()
        ends = rows.row_splits.numpy().tolist()
        return (flat[start:end] for start, end in zip(ends, ends[1:], strict=False))

    def _counted(self, examples: Iterable[Example]) -> Iterator[Example]:
        layout, tally = self._layout, self._tally
        for item in examples:
            length = len(item.ids)
            special = item.ids.count(layout.sep_id) + item.ids.count(layout.cls_id)
            tally["content_tokens"] += length - special
            tally["special_tokens"] += special
            tally["padding_positions"] += layout.max_seq_length - length
            tally["examples"] += 1
            tally["single_segment_examples"] += item.first_segment_length == length
            yield item


def _utf8_length(line: str) -> int:
    return len(line) if line.isascii() else len(line.encode())


@functools.lru_cache(maxsize=2)
def _tokenizer(vocabulary: Vocabulary, normalization: Normalization) -> Tokenizer:
    return Tokenizer(vocabulary, normalization)


def batches(lines: Iterable[str]) -> Iterator[list[str]]:
    """Groups lines into batches of about half a million characters for the tokenizer's graph."""
    batch: list[str] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line) + 1
        if size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
