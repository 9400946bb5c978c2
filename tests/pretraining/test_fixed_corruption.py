"""Draws are counted ones, and the same for every run."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.data.example import Batch
from electra_tf.data.manifest import Records
from electra_tf.modeling.masking import SpecialTokens
from electra_tf.pretraining.evaluation import Evaluator
from electra_tf.pretraining.fixed_corruption import KINDS, RATE, FixedCorruption, Successors
from tests import tiny_run

SPECIAL = SpecialTokens(pad=0, cls=2, sep=3, mask=4)
PERIOD = 35
"""Words of `tiny_records`: word w is always followed by word w + 3."""


@pytest.fixture(scope="module")
def corruption(records):
    return FixedCorruption(Records.load(records), SPECIAL)


def batch_of(rows: np.ndarray) -> Batch:
    ids = tf.constant(rows, tf.int32)
    return Batch(ids=ids, valid=ids != SPECIAL.pad, segment_ids=tf.zeros_like(ids))


def random_rows(count: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).integers(5, 40, [count, 32])
    rows[:, 0], rows[:, 30:] = SPECIAL.cls, SPECIAL.pad
    return rows


def test_draws_follow_the_counts():
    table = Successors(np.array([0, 0, 0, 0, 2]), np.array([7, 7, 7, 9, 8]), num_contexts=4,
                       vocab_size=10)
    uniforms = (tf.range(8, dtype=tf.float32) + 0.5) / 8
    drawn, seen = table.draw(tf.zeros([8], tf.int32), uniforms)
    assert drawn.numpy().tolist() == [7] * 6 + [9] * 2
    assert seen.numpy().all()
    drawn, seen = table.draw(tf.constant([2, 1, 3]), tf.constant([0.99, 0.5, 0.0]))
    assert drawn.numpy()[0] == 8
    assert seen.numpy().tolist() == [True, False, False]


def test_a_share_of_the_tokens_is_replaced_and_no_special_one(corruption):
    rows = random_rows(200)
    for kind, (ids, replaced) in corruption(batch_of(rows)).items():
        changed = ids.numpy() != rows
        np.testing.assert_array_equal(changed, replaced.numpy(), err_msg=kind)
        assert not changed[:, 0].any() and not changed[:, 30:].any()
        # 5,800 draws of 0.15, of which one in 35 is the token itself: four standard deviations.
        assert changed[:, 1:30].mean() == pytest.approx(RATE * 34 / 35, abs=0.019)
        assert not np.isin(ids.numpy()[changed], list(SPECIAL)).any()


def test_bigram_draws_are_what_follows_the_token_before(corruption):
    rows = random_rows(50)
    ids, replaced = corruption(batch_of(rows))["bigram"]
    at = np.argwhere(replaced.numpy())
    at = at[at[:, 1] > 1]  # The first word may be any.
    before = rows[at[:, 0], at[:, 1] - 1]
    expected = 5 + (before - 5 + 3) % PERIOD
    assert len(at) > 100
    np.testing.assert_array_equal(ids.numpy()[at[:, 0], at[:, 1]], expected)


def test_runs_of_other_seeds_and_batches_are_asked_the_same(records):
    def asked(**changes):
        run = tiny_run.run_on(records, model__num_layers=1, **changes)
        evaluator = Evaluator(run, run.build_model())
        batches = list(evaluator._outcomes(0))
        kept = np.concatenate([batch["valid"].any(axis=1) for batch in batches])
        return {kind: np.concatenate([batch[f"{kind}/replaced"] for batch in batches])[kept]
                for kind in KINDS}

    one = asked()
    two = asked(training__seed=7, runtime__eval_batch_size=3, masking__rate=0.3)
    assert one["unigram"].any()
    assert not one["bigram"].any()  # There the next word is always the same.
    for kind in KINDS:
        np.testing.assert_array_equal(one[kind], two[kind], err_msg=kind)
