"""Turns text into a shard: lines -> ids -> packed examples -> records."""

import collections
import dataclasses
import functools
import random
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import tensorflow as tf

from data_prep.cleaning.plan import CleaningPlan
from data_prep.documents import DOCUMENT_END, ReadingNotes, batches
from data_prep.packing import PACKINGS, Example, Layout, TokenizedLines
from data_prep.settings import BuildSettings
from data_prep.work_units import WorkUnit
from electra_tf.data import manifest, records, shards
from electra_tf.platform.storage import Path
from electra_tf.text import coverage
from electra_tf.text.coverage import UnknownScripts
from electra_tf.text.tokenization import TextSettings
from electra_tf.text.tokenizer import Tokenizer

BATCH_CHARACTERS = 1 << 19
"""Characters per call of the tokenizer's graph."""


def build_shard(
    unit: WorkUnit, directory: Path, text: TextSettings, settings: BuildSettings,
    cleaning: CleaningPlan,
) -> tuple[manifest.Shard, manifest.Counts, ReadingNotes]:
    """Writes `<unit.name>.tfrecord` atomically; its bytes depend on these arguments only.

    Returns the shard's entry for the manifest, its counts, and notes of skipped documents. Raises
    `UserError` for a damaged text or a damaged file of the cleaning.
    """
    token_bytes = manifest.token_bytes_for(text.vocabulary.size)
    pipeline = Pipeline(text, settings, unit.name)
    cleaner = cleaning.cleaner(unit)
    notes = ReadingNotes()
    serialized = ((records.serialize_example(*item, token_bytes), len(item.ids) // token_bytes)
                  for item in pipeline.examples(cleaner.clean(unit.lines(notes))))
    shard = shards.write_shard(directory / f"{unit.name}.tfrecord", unit.split, serialized)
    counts = dataclasses.replace(pipeline.counts, documents=unit.documents,
                                 skipped_documents=notes.skipped, **cleaner.tally)
    return shard, counts, notes


class Pipeline:
    """The pipeline from a unit's text to examples; settings.seed and `name` seed the draws."""

    def __init__(self, text: TextSettings, settings: BuildSettings, name: str):
        self._vocabulary = vocabulary = text.vocabulary
        self._tokenize = _tokenize_function(text)
        self._unknown_scripts = UnknownScripts(text)
        self._layout = Layout(
            max_seq_length=settings.max_seq_length, cls_id=vocabulary.cls_id,
            sep_id=vocabulary.sep_id, continues=vocabulary.continues,
            dtype=records.ID_DTYPES[manifest.token_bytes_for(vocabulary.size)],
            single_segment_rate=settings.single_segment_rate,
            short_example_rate=settings.short_example_rate)
        self._packing = PACKINGS[settings.packing](
            self._layout, random.Random(f"{settings.seed}/{name}"))
        self._tally: collections.Counter[str] = collections.Counter()

    @property
    def counts(self) -> manifest.Counts:
        """Returns the counts of the examples yielded so far, without documents."""
        return manifest.Counts(
            **self._tally, unknown_by_script=dict(self._unknown_scripts.counts))

    def examples(self, lines: Iterable[str]) -> Iterator[Example]:
        """Yields the examples of lines in order; `DOCUMENT_END` separates documents."""
        for batch in batches(lines, BATCH_CHARACTERS):
            ids, splits = self._tokenize(tf.constant(batch))
            tokenized = TokenizedLines(ids.numpy(), splits.numpy()[1:],
                                       np.array([line == DOCUMENT_END for line in batch]))
            self._count_text(batch, tokenized.ids)
            self._unknown_scripts.add(batch, tokenized.ids, tokenized.ends)
            yield from self._counted(self._packing.add(tokenized))
        yield from self._counted(self._packing.finish())

    def _count_text(self, batch: list[str], ids: np.ndarray) -> None:
        words, unknown = coverage.count_words(ids, self._vocabulary)
        self._tally.update(
            lines=len(batch) - batch.count(DOCUMENT_END),
            words=sum(len(line.split()) for line in batch),
            text_bytes=sum(len(line.encode()) for line in batch), characters=sum(map(len, batch)),
            changed_characters=coverage.count_changed(batch), text_tokens=ids.size,
            tokenizer_words=words, unknown_words=unknown)

    def _counted(self, examples: list[Example]) -> list[Example]:
        layout = self._layout
        ids = np.frombuffer(b"".join(item.ids for item in examples), layout.dtype)
        special = int(np.count_nonzero((ids == layout.cls_id) | (ids == layout.sep_id)))
        self._tally.update(
            content_tokens=ids.size - special, special_tokens=special, examples=len(examples),
            padding_positions=len(examples) * layout.max_seq_length - ids.size,
            single_segment_examples=sum(
                item.first_segment_length * layout.dtype.itemsize == len(item.ids)
                for item in examples))
        return examples


@functools.lru_cache(maxsize=2)
def _tokenize_function(text: TextSettings) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
    """Returns a function from string [N] to int32 [T], all ids, and int64 [N + 1], row splits."""
    tokenizer = Tokenizer(text)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def tokenize(texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        rows = tokenizer.tokenize_valid(texts)
        return rows.flat_values, rows.row_splits

    return tokenize
