"""Records whose examples say which they are."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from electra_tf.data import manifest
from electra_tf.data.shards import write_shard
from tests.support import tiny_records
from tests.support.tiny_records import serialize_example

LENGTH = 32
WORDS = 35
"""Digits that a number is written in."""


def write(directory: Path, train: Sequence[int], held_out: int = 0) -> manifest.Manifest:
    """Writes full examples of 32 tokens: `train` per shard, numbered from 0, then `held_out`."""
    directory.mkdir(parents=True)
    tiny_records.VOCABULARY.save(directory / manifest.VOCABULARY_NAME)
    shards, first = [], 0
    for index, (split, count) in enumerate(
            [*(("train", count) for count in train), *([("eval", held_out)] if held_out else [])]):
        shards.append(write_shard(
            directory / f"{split}-{index:05d}.tfrecord", split,
            [(serialize_example(_ids(number), LENGTH, 2), LENGTH)
             for number in range(first, first + count)]))
        first += count
    made = tiny_records.manifest_of(shards, counts=manifest.Counts(
        text_tokens=(LENGTH - 2) * first, content_tokens=(LENGTH - 2) * first,
        special_tokens=2 * first, examples=first, single_segment_examples=first))
    made.save(directory)
    return made


def said(ids: np.ndarray) -> list[int]:
    """Returns the number of each example."""
    return ((ids[:, 1:4] - 5) @ [WORDS**2, WORDS, 1]).tolist()


def _ids(number: int) -> list[int]:
    """[CLS] ten times three digits [SEP]."""
    digits = [number // WORDS**2, number // WORDS % WORDS, number % WORDS]
    vocabulary = tiny_records.VOCABULARY
    return [vocabulary.cls_id, *(5 + digit for digit in digits * 10), vocabulary.sep_id]
