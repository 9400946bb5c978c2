"""What a corpus of 10^8 examples costs before the first batch, and how many shards are read."""

import time
import tracemalloc

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.data import manifest
from electra_tf.data.manifest import load_records
from electra_tf.data.pipeline import training_batches
from tests import numbered_records, tiny_records

pytestmark = pytest.mark.slow
MIB = 1 << 20
SHARD = 33_000
"""Examples of 128 tokens that 16 MB of English give."""


def made_up(directory, shards, examples=SHARD):
    """Saves a manifest of full examples of 128 tokens, without their files."""
    vocabulary = tiny_records.VOCABULARY
    entries = tuple(manifest.Shard(
        name=f"train-{number:06d}.tfrecord", split="train", examples=examples,
        tokens=128 * examples, bytes=320 * examples, sha256=f"{number:064x}")
        for number in range(shards))
    total = shards * examples
    directory.mkdir()
    manifest.Manifest(
        format_version=manifest.FORMAT_VERSION, max_seq_length=128, packing="full", token_bytes=2,
        vocabulary=manifest.Tokenization(size=vocabulary.size, sha256=vocabulary.sha256,
                                         lower_case=True, strip_accents=True),
        settings={}, shards=entries, counts=manifest.Counts(
            text_tokens=125 * total, content_tokens=125 * total, special_tokens=3 * total,
            examples=total)).save(directory)


def measured(function):
    """Returns a result, the most megabytes that Python held for it, and seconds of processor."""
    tracemalloc.start()
    began = time.process_time()
    result = function()
    seconds = time.process_time() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return result, peak / MIB, seconds


def test_many_examples_cost_no_list_of_them(tmp_path):
    """3,060 shards. Eight bytes an example would be 800 MB; tracemalloc slows it fivefold."""
    made_up(tmp_path / "web", shards=3_060)
    records, megabytes, seconds = measured(lambda: load_records(tmp_path / "web"))
    assert sum(shard.examples for shard in records.shards["train"]) > 10**8
    assert megabytes < 100 and seconds < 15

    _, megabytes, seconds = measured(lambda: training_batches(
        records, pad_id=0, seed=1, window_examples=131072, global_batch_size=1024,
        first_step=900_000, last_step=10**6, context=tf.distribute.InputContext()))
    assert megabytes < 40 and seconds < 15


@pytest.mark.parametrize("window", [20, 10**6])
def test_hundreds_of_shards_are_each_read_once_an_epoch(tmp_path, window):
    """200 shards of 3 to 7 examples."""
    numbered_records.write(tmp_path / "records", [3 + index % 5 for index in range(200)])
    batches = training_batches(
        load_records(tmp_path / "records"), pad_id=0, seed=1, window_examples=window,
        global_batch_size=100, first_step=0, last_step=10, context=tf.distribute.InputContext())
    ids = np.concatenate([batch.ids for batch in batches.as_numpy_iterator()])
    assert sorted(numbered_records.said(ids)) == list(range(1000))
