"""What a corpus of 10^8 examples costs before the first batch."""

import time
import tracemalloc

import pytest
import tensorflow as tf

from electra_tf.data import manifest
from electra_tf.data.manifest import load_records
from electra_tf.data.pipeline import training_batches
from tests.support import tiny_records


@pytest.mark.slow
def test_many_examples_cost_no_list_of_them(tmp_path):
    """3,060 shards of full examples of 128 tokens, without their files.

    Eight bytes an example would be 800 MB; tracemalloc slows it fivefold.
    """
    examples = 33_000
    shards = tuple(manifest.Shard(
        name=f"train-{number:06d}.tfrecord", split="train", examples=examples,
        tokens=128 * examples, bytes=320 * examples, sha256=f"{number:064x}")
        for number in range(3_060))
    tiny_records.manifest_of(shards, max_seq_length=128).save(tmp_path)
    tracemalloc.start()
    began = time.process_time()
    records = load_records(tmp_path)
    assert sum(shard.examples for shard in records.shards["train"]) > 10**8
    training_batches(
        records, pad_id=0, seed=1, buffer_examples=131072, global_batch_size=1024,
        first_step=900_000, last_step=10**6, context=tf.distribute.InputContext())
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()
    assert time.process_time() - began < 30
