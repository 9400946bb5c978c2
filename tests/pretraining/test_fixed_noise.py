"""Draws are counted ones, and the same for every run."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.data.example import Batch
from electra_tf.data.manifest import load_records
from electra_tf.data.pipeline import evaluation_batches
from electra_tf.modeling.masking import SpecialTokens
from electra_tf.pretraining.evaluation import Evaluator
from electra_tf.pretraining.fixed_noise import RATE, Successors, fixed_noise
from tests.support import tiny_run

SPECIAL = SpecialTokens(pad=0, cls=2, sep=3, mask=4)
PERIOD = 35
"""Words of `tiny_records`: word w is always followed by word w + 3."""


@pytest.fixture(scope="module")
def corruption(records):
    return fixed_noise(load_records(records), SPECIAL)


def random_rows(count: int) -> tuple[np.ndarray, Batch]:
    rows = np.random.default_rng(0).integers(5, 40, [count, 32])
    rows[:, 0], rows[:, 30:] = SPECIAL.cls, SPECIAL.pad
    ids = tf.constant(rows, tf.int32)
    return rows, Batch(ids=ids, padding_mask=ids != SPECIAL.pad, segment_ids=tf.zeros_like(ids))


def test_draws_follow_the_counts():
    table = Successors(np.array([0, 0, 0, 0, 2]), np.array([7, 7, 7, 9, 8]), num_contexts=4,
                       vocab_size=10)
    uniforms = (tf.range(8, dtype=tf.float32) + 0.5) / 8
    drawn, seen = table.draw(tf.zeros([8], tf.int32), uniforms)
    assert drawn.numpy().tolist() == [7] * 6 + [9] * 2 and seen.numpy().all()
    drawn, seen = table.draw(tf.constant([2, 1, 3]), tf.constant([0.99, 0.5, 0.0]))
    assert drawn.numpy()[0] == 8 and seen.numpy().tolist() == [True, False, False]


def test_a_share_of_the_tokens_is_replaced_and_no_special_one(corruption):
    rows, batch = random_rows(200)
    for kind, (ids, replaced) in corruption(batch).items():
        changed = ids.numpy() != rows
        np.testing.assert_array_equal(changed, replaced.numpy(), err_msg=kind)
        assert not changed[:, 0].any() and not changed[:, 30:].any()
        # 5,800 draws of 0.15, of which one in 35 is the token itself: four standard deviations.
        assert changed[:, 1:30].mean() == pytest.approx(RATE * 34 / 35, abs=0.019)
        assert not np.isin(ids.numpy()[changed], list(SPECIAL)).any()


def test_bigram_draws_are_what_follows_the_token_before(corruption):
    rows, batch = random_rows(50)
    ids, replaced = corruption(batch)["bigram"]
    at = np.argwhere(replaced.numpy())
    at = at[at[:, 1] > 1]  # The first word may be any.
    before = rows[at[:, 0], at[:, 1] - 1]
    assert len(at) > 100
    np.testing.assert_array_equal(ids.numpy()[at[:, 0], at[:, 1]], 5 + (before - 5 + 3) % PERIOD)


def test_runs_of_other_seeds_and_batches_are_asked_the_same(records):
    def corrupted_ids(**changes):
        run = tiny_run.run_on(records, **changes)
        corrupt, batches = Evaluator(run, None)._corrupt, []
        for batch in evaluation_batches(
                run.records, pad_id=0, input_context=tf.distribute.InputContext(),
                global_batch_size=run.config.runtime.eval_batch_size):
            kept = batch.padding_mask.numpy().any(axis=1)
            batches.append([ids.numpy()[kept] for ids, _ in corrupt(batch).values()])
        return [np.concatenate(ids) for ids in zip(*batches, strict=True)]

    unigram, bigram = corrupted_ids()
    np.testing.assert_array_equal((unigram, bigram), corrupted_ids(
        training__seed=7, runtime__eval_batch_size=3, masking__rate=0.3))
    assert (unigram != bigram).any()
