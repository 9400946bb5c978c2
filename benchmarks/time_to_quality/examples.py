"""Writes the examples of a run of ours, in its order, for peers that have no TensorFlow."""

import pathlib

import numpy as np
import tensorflow as tf

from electra_tf.data.manifest import VOCABULARY_NAME, Records
from electra_tf.data.pipeline import evaluation_batches, training_batches
from electra_tf.pretraining.fixed_corruption import KINDS, FixedCorruption
from electra_tf.pretraining.setup import special_tokens
from electra_tf.text.vocabulary import Vocabulary

_MOST_BYTES = 1 << 30
"""Of training examples; a longer run begins again with the first."""


def export(data_dir: pathlib.Path, target: pathlib.Path, *, seed: int, window: int, batch: int,
           steps: int, eval_batches: int, eval_batch: int) -> None:
    """Writes train.npy, int32 [S, B, L], and held_out.npz, with corruptions of the latter.

    Args:
        data_dir: of the records, without padding.
        target: an empty directory.
        seed: of the order.
        window: `data.shuffle_window` of our run.
        batch: B.
        steps: S, as far as `_MOST_BYTES` allow.
        eval_batches: how many held-out batches our run scores.
        eval_batch: their size.
    """
    records = Records.load(data_dir)
    vocabulary = Vocabulary.load(records.data_dir / VOCABULARY_NAME)
    steps = min(steps, _MOST_BYTES // (4 * batch * records.manifest.max_seq_length))
    train = training_batches(
        records, pad_id=vocabulary.pad_id, seed=seed,
        window_examples=window, global_batch_size=batch, first_step=0, last_step=steps,
        context=tf.distribute.InputContext())
    np.save(target / "train.npy", np.stack([rows.ids for rows in train.as_numpy_iterator()]))
    held_out = evaluation_batches(
        records, pad_id=vocabulary.pad_id,
        global_batch_size=eval_batch, context=tf.distribute.InputContext()).take(eval_batches)
    corrupt = FixedCorruption.of_records(records, special_tokens(vocabulary))
    parts = {"ids": [], "valid": [], **{kind: [] for kind in KINDS}}
    for rows in held_out:
        parts["ids"].append(rows.ids)
        parts["valid"].append(rows.valid)
        for kind, corrupted in corrupt(rows).items():
            parts[kind].append(corrupted.ids)
    np.savez(target / "held_out.npz", **{name: np.stack(some) for name, some in parts.items()})
