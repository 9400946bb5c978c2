"""Turns text into a shard: lines -> ids -> packed examples -> records."""

import collections
import functools
import random
from collections.abc import Callable, Iterable

import numpy as np
import tensorflow as tf

from data_prep.cleaning.plan import CleaningPlan
from data_prep.documents import DOCUMENT_END, ReadingNotes, batches
from data_prep.packing import PACKINGS, Layout, TokenizedLines
from data_prep.settings import BuildSettings
from data_prep.work_units import WorkUnit
from electra_tf.core.storage import Path
from electra_tf.data import manifest, records, shards
from electra_tf.text import coverage
from electra_tf.text.normalization import TextSettings
from electra_tf.text.tokenizer import Tokenizer

BATCH_CHARACTERS = 1 << 19  # Characters per call of the tokenizer's graph.


def build_shard(
    unit: WorkUnit, directory: Path, text: TextSettings, settings: BuildSettings,
    cleaning: CleaningPlan,
) -> tuple[manifest.Shard, manifest.Counts, ReadingNotes]:
    """Writes `<unit.name>.tfrecord` atomically; its bytes depend on these arguments only.

    Returns the shard's entry for the manifest, its counts, and notes of skipped documents. Raises
    `UserError` for a damaged text or a damaged file of the cleaning.
    """
    vocabulary = text.vocabulary
    token_bytes = manifest.token_bytes_for(vocabulary.size)
    # Draw the segments from a generator that depends on the seed and the unit alone.
    layout = Layout(
        max_seq_length=settings.max_seq_length, cls_id=vocabulary.cls_id, sep_id=vocabulary.sep_id,
        continues=vocabulary.continues, dtype=records.ID_DTYPES[token_bytes],
        single_segment_rate=settings.single_segment_rate,
        short_example_rate=settings.short_example_rate)
    tally: collections.Counter[str] = collections.Counter()
    notes = ReadingNotes()
    lines = _tokenized(cleaning.clean(unit, tally, notes), text, layout.dtype, tally)
    examples = list(PACKINGS[settings.packing](
        lines, layout, random.Random(f"{settings.seed}/{unit.name}")))
    # Count what the manifest reports, for all examples at once.
    ids = np.frombuffer(b"".join(example.ids for example in examples), layout.dtype)
    special = int(np.count_nonzero((ids == layout.cls_id) | (ids == layout.sep_id)))
    counts = manifest.Counts(
        **tally, documents=unit.documents, skipped_documents=notes.skipped,
        content_tokens=ids.size - special, special_tokens=special, examples=len(examples),
        padding_positions=len(examples) * layout.max_seq_length - ids.size,
        single_segment_examples=sum(
            example.first_segment_length * token_bytes == len(example.ids)
            for example in examples))
    shard = shards.write_shard(directory / f"{unit.name}.tfrecord", unit.split, (
        (records.serialize_example(*example, token_bytes), len(example.ids) // token_bytes)
        for example in examples))
    return shard, counts, notes


def _tokenized(lines: Iterable[str], text: TextSettings, dtype: np.dtype,
               tally: collections.Counter[str]) -> TokenizedLines:
    """Returns the tokens of lines, and counts what the lines contain."""
    tokenize = _tokenize_function(text)
    # By batch, after an empty one: the tokens, and of each line their number and whether it ends a
    # document.
    tokens, lengths, ends_document = ([np.empty(0, kind)] for kind in (dtype, np.int64, bool))
    for batch in batches(lines, BATCH_CHARACTERS):
        ids, splits = (tensor.numpy() for tensor in tokenize(tf.constant(batch)))
        words, unknown = coverage.count_words(ids, text.vocabulary)
        tally.update(
            lines=len(batch) - batch.count(DOCUMENT_END),
            words=sum(len(line.split()) for line in batch),
            text_bytes=sum(len(line.encode()) for line in batch), characters=sum(map(len, batch)),
            changed_characters=coverage.count_changed(batch), text_tokens=ids.size,
            tokenizer_words=words, unknown_words=unknown)
        tokens.append(ids.astype(dtype))
        lengths.append(np.diff(splits))
        ends_document.append(np.array([line == DOCUMENT_END for line in batch]))
    return TokenizedLines(np.concatenate(tokens), np.cumsum(np.concatenate(lengths)),
                          np.concatenate(ends_document))


@functools.lru_cache(maxsize=2)
def _tokenize_function(text: TextSettings) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
    """Returns a function from string [N] to int32 [T], all ids, and int64 [N + 1], row splits."""
    tokenizer = Tokenizer(text)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def tokenize(texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        rows = tokenizer.tokenize_valid(texts)
        return rows.flat_values, rows.row_splits

    return tokenize
