"""What stands in the training records, for replacements that no network proposes."""

import math

import numpy as np
import tensorflow as tf

from electra_tf.data.example import parse_examples
from electra_tf.data.mixture import SHARES, Mixture, Source
from electra_tf.modeling.masking import SpecialTokens, maskable

COUNTED_EXAMPLES = 1 << 16
"""Of the training records, evenly over the shards: 8 million tokens of 128 each."""
_MOST_SHARDS = 256
"""Looked into, evenly over them: opening one takes milliseconds here, more where it is far away."""
_READ = 4096
"""Examples parsed together."""


def token_counts(records: Mixture, special: SpecialTokens) -> np.ndarray:
    """Returns how often each entry of the vocabulary stands in `COUNTED_EXAMPLES`, int64 [V].

    Special tokens count 0. Of several directories each is counted by its share.
    """
    _, tokens = token_pairs(records, special)
    return np.bincount(tokens, minlength=records.vocabulary.size)


def token_pairs(records: Mixture, special: SpecialTokens) -> tuple[np.ndarray, np.ndarray]:
    """Returns the token before, int32 [T], and each token that isn't special, int32 [T]."""
    before, tokens = [], []
    for source in records.sources:
        for batch in _counted(source).batch(_READ).map(lambda some: parse_examples(
                some, records.max_seq_length, records.token_bytes, special.pad)):
            counted = maskable(batch.ids, batch.valid, special).numpy()[:, 1:]
            ids = batch.ids.numpy()
            before.append(ids[:, :-1][counted])
            tokens.append(ids[:, 1:][counted])
    return np.concatenate(before), np.concatenate(tokens)


def _counted(source: Source) -> tf.data.Dataset:
    """Returns the first examples of every shard, or of some if there are very many."""
    shards = source.shards("train")[::math.ceil(len(source.shards("train")) / _MOST_SHARDS)]
    examples = sum(count for _, count in shards)
    part = min(1.0, COUNTED_EXAMPLES * source.share / SHARES / max(1, examples))
    paths, taken = zip(*((path, math.ceil(count * part)) for path, count in shards), strict=True)
    return tf.data.Dataset.from_tensor_slices((list(paths), list(taken))).flat_map(
        lambda path, count: tf.data.TFRecordDataset(path).take(tf.cast(count, tf.int64)))
