"""Records of made-up sentences that tests can train on: 96 examples of 32 tokens, 40 words."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from electra_tf.data import manifest, records
from electra_tf.data.shards import write_shard
from electra_tf.text.vocabulary import SPECIAL_TOKENS, VOCABULARY_FILE, Vocabulary

LENGTH = 32
TRAIN_SHARDS = (30, 20, 36)
HELD_OUT = 10
VOCABULARY = Vocabulary((*SPECIAL_TOKENS, *(f"word{index}" for index in range(35))))


def write(directory: Path, vocabulary: Vocabulary = VOCABULARY, *, seed: int = 1,
          packing: str = "reference") -> manifest.Manifest:
    """Writes shards, vocabulary (of the same size) and manifest into a new directory.

    With `packing` full no example is short.
    """
    directory.mkdir(parents=True)
    vocabulary.save(directory / VOCABULARY_FILE)
    numbers = np.random.default_rng(seed)
    shards = [_shard(directory / f"train-{index:05d}.tfrecord", "train", count, numbers, packing)
              for index, count in enumerate(TRAIN_SHARDS)]
    shards.append(_shard(directory / "eval-00000.tfrecord", "eval", HELD_OUT, numbers,
                         packing))
    result = manifest_of(shards, vocabulary, packing=packing)
    result.save(directory)
    return result


def manifest_of(shards: Sequence[manifest.Shard], vocabulary: Vocabulary = VOCABULARY,
                **changes) -> manifest.Manifest:
    """The manifest of shards of examples of `LENGTH` tokens at most, each of two segments."""
    length = changes.get("max_seq_length", LENGTH)
    return manifest.Manifest(**{
        "format_version": manifest.FORMAT_VERSION, "max_seq_length": length, "packing": "full",
        "token_bytes": 2, "settings": {}, "counts": counts_of(shards, length),
        "shards": tuple(shards), "vocabulary": manifest.Tokenization(
            size=vocabulary.size, sha256=vocabulary.sha256, lower_case=True, strip_accents=True),
    } | changes)


def counts_of(shards: Sequence[manifest.Shard], length: int = LENGTH) -> manifest.Counts:
    """What the examples of shards add up to, each of two segments."""
    examples, tokens = (sum(getattr(shard, name) for shard in shards)
                        for name in ("examples", "tokens"))
    content = tokens - 3 * examples
    return manifest.Counts(
        text_tokens=content, content_tokens=content, special_tokens=3 * examples,
        padding_positions=examples * length - tokens, examples=examples)


def example_ids(numbers: np.random.Generator, packing: str = "reference") -> list[int]:
    """[CLS] words [SEP] words [SEP], sometimes short; neighbours tell about each other."""
    whole = packing == "full" or numbers.random() < 0.8
    length = LENGTH if whole else int(numbers.integers(8, LENGTH))
    start = int(numbers.integers(35))
    words = [5 + (start + 3 * step) % 35 for step in range(length - 3)]
    middle = (length - 3) // 2
    return [VOCABULARY.cls_id, *words[:middle], VOCABULARY.sep_id, *words[middle:],
            VOCABULARY.sep_id]


def serialize_example(ids: Sequence[int], first_segment_length: int, token_bytes: int) -> bytes:
    """Returns an example of these token ids."""
    stored = np.asarray(ids, records.ID_DTYPES[token_bytes]).tobytes()
    return records.serialize_example(stored, first_segment_length, token_bytes)


def _shard(path: Path, split: str, count: int, numbers: np.random.Generator,
           packing: str) -> manifest.Shard:
    examples = [example_ids(numbers, packing) for _ in range(count)]
    return write_shard(path, split, [
        (serialize_example(ids, (len(ids) - 3) // 2 + 2, 2), len(ids)) for ids in examples])
