"""What stands in the training records, for replacements that no network proposes."""

import math

import numpy as np
import tensorflow as tf

from electra_tf.modeling.masking import SpecialTokens, maskable
from electra_tf.records.example import parse_examples
from electra_tf.records.manifest import Manifest
from electra_tf.storage import Path

COUNTED_EXAMPLES = 1 << 16
"""Of the training records, evenly over all shards: 8 million tokens of 128 each."""
_READ = 4096
"""Examples parsed together."""


def token_counts(data_dir: Path, manifest: Manifest, special: SpecialTokens) -> np.ndarray:
    """Returns how often each entry of the vocabulary stands in `COUNTED_EXAMPLES`, int64 [V].

    Special tokens count 0.
    """
    _, tokens = token_pairs(data_dir, manifest, special)
    return np.bincount(tokens, minlength=manifest.vocabulary.size)


def token_pairs(data_dir: Path, manifest: Manifest,
                special: SpecialTokens) -> tuple[np.ndarray, np.ndarray]:
    """Returns the token before, int32 [T], and each token that isn't special, int32 [T]."""
    shards = manifest.shards_of("train")
    part = min(1.0, COUNTED_EXAMPLES / max(1, sum(shard.examples for shard in shards)))
    before, tokens = [], []
    for shard in shards:
        rows = tf.data.TFRecordDataset(str(data_dir / shard.name)).take(
            math.ceil(shard.examples * part))
        for batch in rows.batch(_READ).map(lambda some: parse_examples(
                some, manifest.max_seq_length, manifest.token_bytes, special.pad)):
            counted = maskable(batch.ids, batch.valid, special).numpy()[:, 1:]
            ids = batch.ids.numpy()
            before.append(ids[:, :-1][counted])
            tokens.append(ids[:, 1:][counted])
    return np.concatenate(before), np.concatenate(tokens)
