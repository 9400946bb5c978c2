"""Masked batches equal the reference's from its draws; own draws and samples are counted."""

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.corruption import MaskingConfig, SamplingConfig
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core.errors import UserError
from electra_tf.modeling import corruption, masking
from electra_tf.modeling.corruption import corrupt, cross_entropy, distribution, sample
from electra_tf.modeling.electra import gather_vectors
from electra_tf.modeling.masking import gather_at, mask_tokens, maskable, write_tokens
from electra_tf.objectives.electra import ElectraObjective
from electra_tf.objectives.pretraining import ObjectiveContext
from tests.support import golden_files
from tests.support.rng import rng_at

SPECIAL = masking.SpecialTokens(pad=0, cls=2, sep=3, mask=4)
KINDS = masking.VocabInfo(SPECIAL, 600, continues_word=np.arange(600) >= 300)
LEGACY = MaskingConfig(position_draw="with_replacement")


def text(rows: int, length: int, padding: int = 0) -> tuple[tf.Tensor, tf.Tensor]:
    """[CLS] words [SEP] words [SEP] padding, each word different from the next."""
    ids = np.zeros([rows, length], np.int32)
    ids[:, :length - padding] = 5 + np.arange(length - padding)
    ids[:, 0] = SPECIAL.cls
    ids[:, (length - padding) // 2] = ids[:, length - padding - 1] = SPECIAL.sep
    return tf.constant(ids), tf.constant(ids != 0)


@pytest.mark.parametrize(("length", "rate"), [
    (128, 0.15), (512, 0.25), (512, 0.3)])
def test_numbers_of_predictions_equal_the_reference(length, rate):
    golden = golden_files.load("masking_num_to_predict")
    counts = np.array(MaskingConfig(rate=rate).predictions_by_length(length))
    np.testing.assert_array_equal(
        counts[golden[f"lengths_{length}_{rate}"]], golden[f"n_{length}_{rate}"])


def test_given_the_references_draws_the_masked_batch_equals_the_references():
    golden = golden_files.load("masking_mask")
    ids = tf.constant(golden["input_ids"])
    padding_mask = tf.constant(golden["input_mask"] > 0)
    np.testing.assert_array_equal(maskable(ids, padding_mask, SPECIAL), golden["candidates_mask"])
    filled = golden["masked_lm_weights"] > 0
    positions = tf.constant(golden["draws"])
    hidden = tf.constant(filled & (golden["uniforms"] < 0.85))
    masked = write_tokens(ids, positions, tf.fill(positions.shape, SPECIAL.mask), hidden)
    np.testing.assert_array_equal(masked, golden["masked_input_ids"])
    np.testing.assert_array_equal(
        tf.where(filled, gather_at(ids, positions), 0), golden["masked_lm_ids"])


def test_scatter_and_gather_equal_the_reference_where_positions_collide():
    golden = golden_files.load("masking_scatter")
    positions, tokens = tf.constant(golden["positions"]), tf.constant(golden["int_sequence"])
    written = write_tokens(tokens, positions, tf.constant(golden["int_updates"]), positions > 0)
    np.testing.assert_array_equal(written, golden["int_result"])
    np.testing.assert_array_equal(gather_at(tokens, positions), golden["int_gather"])
    np.testing.assert_array_equal(
        gather_vectors(tf.constant(golden["float_sequence"]), positions),
        golden["float_gather"].reshape(-1, 3))


def test_a_sample_equal_to_the_original_isnt_replaced_and_padding_never_is():
    slots = masking.MaskedPositions(
        tf.constant([[0, 1, 3]]), tf.constant([[5, 6, 0]]), tf.constant([[True, True, True]]))
    ids, replaced = corrupt(tf.constant([[5, 6, 7, 0]]), tf.constant([[True, True, True, False]]),
                            slots, tf.constant([[5, 9, 9]]))
    assert ids.numpy().tolist() == [[5, 9, 7, 9]]
    assert replaced.numpy().tolist() == [[False, True, False, False]]


@pytest.mark.parametrize("config", [MaskingConfig(), LEGACY])
def test_special_tokens_are_never_selected(config):
    ids, padding_mask = text(rows=64, length=40, padding=7)
    for step in range(20):
        _, masked = mask_tokens(ids, padding_mask, config, KINDS, rng_at(step))
        chosen = gather_at(ids, masked.positions).numpy()[masked.filled.numpy()]
        assert config is LEGACY or all(
            len(set(row)) == len(row) for row in masked.positions.numpy())
        assert chosen.min() > SPECIAL.mask
        np.testing.assert_array_equal(
            masked.original_ids.numpy()[masked.filled.numpy()], chosen)


def test_every_candidate_is_selected_equally_often():
    ids, padding_mask = text(rows=512, length=40)
    counts = np.zeros(40)
    for step in range(20):
        _, masked = mask_tokens(ids, padding_mask, MaskingConfig(), KINDS, rng_at(step))
        chosen = masked.positions.numpy()[masked.filled.numpy()]
        counts += np.bincount(chosen, minlength=40)
    candidates = maskable(ids, padding_mask, SPECIAL).numpy()[0]
    draws = 512 * 20
    expected = counts.sum() / candidates.sum()
    assert counts.sum() == 6 * draws
    # A position is in or out per draw: variance p (1 - p) per draw, 36 degrees of freedom.
    p = expected / draws
    statistic = np.sum((counts[candidates] - expected) ** 2) / (draws * p * (1 - p))
    assert statistic < 36 + 5 * math.sqrt(2 * 36)
    assert counts[~candidates].sum() == 0


def test_the_legacy_draw_maps_uniforms_to_candidates_in_order():
    candidates = tf.constant([[False, True, True, False, True, False]])
    uniforms = tf.constant([[0.0, 0.34, 0.999999, 0.67, 0.0, 0.0]])
    positions, filled = masking.draw_with_replacement(candidates, tf.constant([4]), uniforms, 5)
    assert positions.numpy().tolist() == [[1, 2, 4, 4, 0]]
    assert filled.numpy().tolist() == [[True, True, True, True, False]]


@pytest.mark.parametrize("config", [MaskingConfig(rate=0.3),
                                    dataclasses.replace(LEGACY, rate=0.3)])
def test_a_row_without_candidates_predicts_nothing(config):
    ids = tf.constant([[2, 3, 0, 0, 0, 0, 0, 0], [0] * 8, [2, 9, 8, 7, 6, 5, 9, 3]], tf.int32)
    masked_ids, masked = mask_tokens(ids, ids != 0, config, KINDS, rng_at())
    assert masked.filled.numpy().sum(axis=1).tolist() == [0, 0, 2]
    np.testing.assert_array_equal(masked_ids[:2], ids[:2])


@pytest.mark.parametrize(("hidden", "garbled"), [
    (0.8, 0.1), (0.85, 0.0), (0.0, 1.0)])
def test_selected_tokens_are_hidden_garbled_and_kept_in_berts_shares(hidden, garbled):
    """BERT, table 8: [MASK], random, same."""
    config = MaskingConfig(rate=0.5, mask_token_rate=hidden, random_token_rate=garbled)
    ids = tf.fill([400, 64], 7)
    read, masked = mask_tokens(ids, ids != 0, config, KINDS, rng_at())
    read = gather_at(read, masked.positions).numpy()[masked.filled.numpy()]
    shares = {"hidden": np.mean(read == SPECIAL.mask), "kept": np.mean(read == 7)}
    spread = 4 * math.sqrt(0.25 / read.size)
    assert shares["hidden"] == pytest.approx(hidden, abs=spread)
    assert shares["kept"] == pytest.approx(1.0 - hidden - garbled, abs=spread)
    random = read[(read != SPECIAL.mask) & (read != 7)]
    if garbled:  # Any of the 600 entries.
        assert random.min() < 10 and random.max() > 590
        assert random.mean() == pytest.approx(300, abs=4 * 600 / math.sqrt(12 * random.size))


WORDS = [[5], [6, 300, 301], [7], [8, 302], [9], [10, 303, 304, 305, 306]]


def words_masked(counts: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns which of the words of each of many equal rows are selected, and how many tokens."""
    row = [SPECIAL.cls, *sum(WORDS, []), SPECIAL.sep, 307, 0, 0]
    ids = tf.constant([row] * rows)
    candidates = maskable(ids, ids != 0, SPECIAL)
    continues = tf.gather(tf.constant(KINDS.continues_word), ids)
    bits = rng_at().bits("masking/positions", *ids.shape)
    positions, filled = masking.draw_words(
        candidates, continues, tf.fill([rows], counts), bits, 8)
    chosen = np.zeros(ids.shape, bool)
    for row_number, (at, mask) in enumerate(zip(positions.numpy(), filled.numpy(), strict=True)):
        assert len(set(at[mask])) == mask.sum()
        chosen[row_number, at[mask]] = True
    return chosen, filled.numpy().sum(axis=1)


def test_words_are_selected_whole_and_as_many_tokens_as_wanted():
    chosen, counts = words_masked(6, 300)
    begin = 1
    for word in [*WORDS, None, [307]]:  # [SEP] between; a piece after it is a word of its own.
        size = 1 if word is None else len(word)
        parts = chosen[:, begin:begin + size]
        assert (parts.all(axis=1) == parts.any(axis=1)).all()
        assert parts.any() == (word is not None)
        begin += size
    assert counts.max() == 6 and np.mean(counts == 6) > 0.95


def test_whole_words_reach_the_batch():
    ids, padding_mask = text(40, 64)
    config = MaskingConfig(rate=0.3, whole_words=True)
    _, masked = mask_tokens(ids, padding_mask, config, KINDS._replace(
        continues_word=np.arange(600) % 2 == 1), rng_at())
    for row, mask in zip(masked.original_ids.numpy(), masked.filled.numpy(), strict=True):
        # The word of an odd entry begins with the even one before it.
        assert all(token - 1 in row for token in row[mask] if token % 2 and token - 1 in ids[0])


@pytest.mark.parametrize("joined", [0.0, 0.5, 0.75])
def test_joined_words_are_selected_together_and_as_many_as_without(joined):
    ids, padding_mask = text(400, 128)
    config = MaskingConfig(whole_words=True, joined_words=joined)
    _, masked = mask_tokens(ids, padding_mask, config, KINDS, rng_at())
    chosen = masking.mark_positions(masked.positions, masked.filled, 128).numpy()
    assert not chosen[:, [0, 64, 127]].any()  # [CLS] and [SEP].
    assert chosen.sum() / 400 == pytest.approx(19, abs=0.5)  # round(0.15 * 128).
    # The next word of a selected one: joined, or in another selected span. Of the last spans, only
    # short ones fit.
    first, second = chosen[:, 1:63].ravel(), chosen[:, 2:64].ravel()
    expected = joined + (1 - joined) * 19 / 125
    assert expected - 0.07 < second[first].mean() < expected
    with pytest.raises(UserError, match="joined_words must be 0 without"):
        MaskingConfig(joined_words=0.5)


def logits(rows=7, entries=256, scale=3.0):
    return scale * tf.random.stateless_normal([rows, entries], seed=[1, 2])


def uniforms(count):
    return tf.reshape(rng_at().uniform("sampling", 1, count), [-1])


def test_cross_entropy_and_its_gradient_equal_tensorflows():
    x, labels = logits(), tf.constant([0, 5, 255, 17, 3, 128, 127])
    upstream = tf.constant([1.0, 2.0, 0.0, -1.0, 0.5, 3.0, 1.0])
    results = []
    for function in (lambda: cross_entropy(x, labels, distribution(x)),
                     lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            losses = function()
        results.append((losses, tape.gradient(losses, x, output_gradients=upstream)))
    for value, expected in zip(*results, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


def test_bfloat16_logits_lose_nothing_in_the_sums():
    x = tf.cast(logits(entries=30592), tf.bfloat16)
    labels = tf.zeros([7], tf.int32)
    np.testing.assert_allclose(
        cross_entropy(x, labels, distribution(x)),
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.cast(x, tf.float32)), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_largest_logit_is_exact_and_nan_reaches_the_loss(dtype):
    x = tf.cast(logits(scale=100.0), dtype)
    rows = tf.cast(x, tf.float32).numpy()
    np.testing.assert_array_equal(distribution(x).largest, rows.max(axis=1))
    rows[2, 130] = np.nan
    x = tf.cast(rows, dtype)
    losses = cross_entropy(x, tf.zeros([7], tf.int32), distribution(x)).numpy()
    assert np.isnan(losses[2]) and np.isfinite(np.delete(losses, 2)).all()


def weighted(weights):
    """The distribution proportional to weights [M, V]."""
    return distribution(tf.math.log(tf.constant(weights, tf.float32)))


def test_samples_are_distributed_as_the_softmax():
    probabilities = tf.nn.softmax(logits(rows=1, entries=384, scale=1.0))[0].numpy()
    count = 100_000
    rows = weighted(np.tile(probabilities[np.newaxis], [count, 1]))
    drawn = sample(rows, uniforms(count)).numpy()
    expected = probabilities * count
    assert expected.min() > 5  # For the chi-square approximation.
    statistic = np.sum((np.bincount(drawn, minlength=384) - expected) ** 2 / expected)
    assert statistic < 383 + 5 * math.sqrt(2 * 383)


@pytest.mark.parametrize("entries", [[0], [255], [100, 130], [127, 128], [3, 3 + 128]])
def test_entries_of_weight_zero_are_never_drawn(entries):
    weights = np.zeros([5, 256], np.float32)
    weights[:, entries] = 1e-20
    drawn = sample(weighted(weights), tf.constant([0.0, 0.25, 0.5, 0.75, 1.0 - 2.0**-24]))
    assert set(drawn.numpy()) <= set(entries)


def test_a_temperature_divides_the_logits_and_1_changes_nothing():
    softmax = distribution(logits())
    assert corruption.at_temperature(softmax, 1.0) is softmax
    colder = corruption.at_temperature(softmax, 0.5)
    np.testing.assert_array_equal(colder.logits, 2 * softmax.logits)
    np.testing.assert_allclose(
        tf.math.log(tf.reduce_sum(colder.block_sums, axis=-1)) + colder.largest,
        tf.reduce_logsumexp(2 * softmax.logits, axis=-1), rtol=1e-6)


def test_samples_without_originals_have_the_references_distribution():
    """Google's code takes 1,000 from the logits of the right answers."""
    golden = golden_files.load("masking_sampling")
    x = tf.reshape(golden["logits"], [18, 50])
    x = tf.pad(x, [[0, 0], [0, 78]], constant_values=-1e9)
    labels = tf.reshape(golden["disallow_ids"], [-1])
    expected = tf.nn.softmax(x - 1000.0 * tf.one_hot(labels, 128))
    restricted = corruption.without(distribution(x), labels)
    weights = tf.exp(restricted.logits - restricted.largest[:, tf.newaxis])
    np.testing.assert_allclose(weights / tf.reduce_sum(weights, axis=-1, keepdims=True), expected,
                               rtol=1e-5, atol=1e-9)
    drawn = golden["sampled_disallow"].reshape(-1)
    assert (drawn != labels.numpy()).all() and (expected.numpy()[range(18), drawn] > 0).all()


def test_the_setting_keeps_right_answers_out_of_the_samples():
    x = tf.tensor_scatter_nd_update(logits(rows=6), [[row, 5] for row in range(6)], [50.0] * 6)
    slots = masking.MaskedPositions(
        tf.zeros([2, 3], tf.int32), tf.fill([2, 3], 5), tf.ones([2, 3], tf.bool))

    def drawn(step=0, training=True, **sampling) -> np.ndarray:
        config = PretrainingConfig(sampling=SamplingConfig(**sampling))
        objective = ElectraObjective(config, ObjectiveContext.placeholder(256))
        return objective.sample(distribution(x), slots, rng_at(step=step),
                                training=training).numpy()

    assert (drawn() == 5).all()
    assert (drawn(disallow_correct=True) != 5).all()
    # At temperature 100, 50 nats are half a nat: the first steps draw other tokens, later ones and
    # evaluations do not.
    falling = {"initial_temperature": 100.0, "temperature_decay_steps": 10}
    assert (drawn(**falling) != 5).any()
    assert (drawn(step=100, **falling) == 5).all() and (drawn(training=False, **falling) == 5).all()


def test_the_temperature_falls_exponentially():
    config = SamplingConfig(temperature=1.0, initial_temperature=2.0, temperature_decay_steps=300)
    steps = np.array([0, 300, 3000])
    np.testing.assert_allclose(
        corruption.temperature_at(config, tf.constant(steps)),
        [2.0, 1.0 + math.exp(-1), 1.0 + math.exp(-10)], rtol=1e-6)
    assert corruption.temperature_at(SamplingConfig(temperature=0.5), tf.constant(steps)) == 0.5
