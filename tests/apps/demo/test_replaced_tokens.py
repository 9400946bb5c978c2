"""One sentence through both networks, against the same steps written out."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.apps.demo.replaced_tokens import (
    MOST_CHARACTERS,
    Question,
    ReplacedTokenDetection,
    positions,
)
from electra_tf.checkpoints.weights import assign_weights
from electra_tf.modeling.electra import ElectraModel
from electra_tf.modeling.randomness import Randomness
from electra_tf.platform.errors import UserError
from tests import tiny_networks

SENTENCE = "Word1 word2 word3s word4, word5 word6ing word7 word8 word9."


def asked(sentence=SENTENCE, mask_rate=0.4, temperature=1.0, seed=3):
    return Question(sentence=sentence, mask_rate=mask_rate, temperature=temperature, seed=seed)


def softmax(logits):
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_steps_are_those_of_the_networks(networks, detection, temperature):
    vocabulary = networks.text.vocabulary
    answer = detection.answer(asked(temperature=temperature))
    words = [token.original for token in answer.tokens]
    assert words == ["word1", "word2", "word3", "##s", "word4", "[UNK]", "word5", "word6", "##ing",
                     "word7", "word8", "word9", "."]

    # No padding, one row, and NumPy between the networks.
    model = ElectraModel(networks.model, seed=1)
    assign_weights(model.variables, networks.weights, "the tiny networks")
    ids = np.array([vocabulary.tokens.index(word) for word in ["[CLS]", *words, "[SEP]"]])
    masked = [place for place, token in enumerate(answer.tokens, start=1) if token.filling]
    assert len(masked) == round(0.4 * len(words))
    read = ids.copy()
    read[masked] = vocabulary.mask_id
    segments, valid = tf.zeros([1, len(ids)], tf.int32), tf.ones([1, len(ids)], tf.bool)
    logits = model.generator(tf.constant(read[np.newaxis], tf.int32), segments, valid,
                             tf.constant([masked])).numpy()[:, :vocabulary.size]
    shares = softmax(logits.astype(np.float64) / temperature)
    zero = tf.constant(0, tf.int64)
    uniforms = Randomness(seed=3, step=zero, first_example=zero).uniform(
        "sampling", 1, len(ids)).numpy()[0]

    written = ids.copy()
    for share, place in zip(shares, masked, strict=True):
        token = answer.tokens[place - 1]
        best = np.argsort(-share)[:8]
        assert [each.token for each in token.filling.candidates] == [
            vocabulary.tokens[index] for index in best]
        np.testing.assert_allclose([each.probability for each in token.filling.candidates],
                                   share[best], rtol=1e-4)
        written[place] = np.searchsorted(np.cumsum(share), uniforms[place], side="right")
        assert token.filling.sampled.token == vocabulary.tokens[written[place]] == token.corrupted
        assert token.filling.sampled.probability == pytest.approx(share[written[place]], rel=1e-4)
        assert token.filling.original.token == token.original
        assert token.filling.original.probability == pytest.approx(share[ids[place]], rel=1e-4)
    judged = model.discriminator(tf.constant(written[np.newaxis], tf.int32), segments, valid)
    np.testing.assert_allclose([token.replaced_probability for token in answer.tokens],
                               tf.sigmoid(judged).numpy()[0, 1:-1], rtol=1e-4)
    assert [token.corrupted for token in answer.tokens] == [
        vocabulary.tokens[index] for index in written[1:-1]]


def test_outcomes_and_their_counts(detection):
    seen = set()
    for seed in range(8):
        answer = detection.answer(asked(seed=seed))
        for token in answer.tokens:
            accused = token.replaced_probability > 0.5
            assert token.outcome == {
                (True, True): "caught", (True, False): "missed", (False, True): "false alarm",
                (False, False): "restored" if token.filling else "untouched",
            }[token.original != token.corrupted, accused]
            seen.add(token.outcome)
        assert answer.summary.startswith("5 of 13 tokens filled in: ")
    assert len(seen) > 2


def test_equal_questions_have_equal_answers(networks, detection):
    answer = detection.answer(asked())
    assert detection.answer(asked()) == answer
    assert ReplacedTokenDetection(networks).answer(asked()) == answer
    assert detection.answer(asked(seed=4)) != answer


def test_a_rate_masks_so_many_and_a_higher_one_masks_more():
    before = np.zeros(20, bool)
    for rate, count in ((0.01, 1), (0.1, 2), (0.5, 10), (0.9, 18)):
        chosen = positions(20, asked(mask_rate=rate))
        assert chosen.sum() == count and np.all(chosen >= before)
        before = chosen
    assert positions(1, asked(mask_rate=0.9)).tolist() == [True]
    assert len({positions(20, asked(seed=seed)).tobytes() for seed in range(10)}) > 5


def test_a_temperature_near_zero_draws_the_likeliest(detection):
    for seed in range(5):
        cold = detection.answer(asked(temperature=0.01, seed=seed))
        warm = detection.answer(asked(temperature=1.0, seed=seed))
        for token, other in zip(cold.tokens, warm.tokens, strict=True):
            assert (token.filling is None) == (other.filling is None)
            if token.filling:
                first, second, *_ = other.filling.candidates
                assert token.filling.candidates[0].token == first.token
                if first.probability > 1.2 * second.probability:  # 1.2**100 is 8e7.
                    assert token.corrupted == first.token


def test_a_high_temperature_makes_candidates_alike(detection):
    hot = detection.answer(asked(temperature=10.0))
    for token in hot.tokens:
        if token.filling:
            shares = [each.probability for each in token.filling.candidates]
            assert shares[0] < 2 * shares[-1]


def test_candidates_are_sorted_and_sum_to_one_at_most(detection):
    for temperature in (0.01, 0.3, 1.0, 10.0):
        for token in detection.answer(asked(temperature=temperature)).tokens:
            if token.filling:
                shares = [each.probability for each in token.filling.candidates]
                assert len(shares) == 8 and shares == sorted(shares, reverse=True)
                assert 0 <= min(shares) and sum(shares) <= 1 + 1e-6


@pytest.mark.parametrize("count", [1, 5, 6, 7, 29, 30])
def test_sentences_of_every_length_up_to_the_models(detection, count):
    sentence = " ".join(f"word{index}" for index in range(count))
    answer = detection.answer(asked(sentence, mask_rate=0.01))
    assert [token.original for token in answer.tokens] == sentence.split()
    assert sum(token.filling is not None for token in answer.tokens) == 1


@pytest.mark.parametrize(("sentence", "problem"), [
    ("", "has no words"), (" \n\t ", "has no words"),
    ("word1 " * 31, "has 31 tokens and the model reads 30 at most"),
    ("a\x00b", "control characters"), ("a\x1b[31m", "control characters"),
    ("\ud800", "control characters"), ("\x85", "control characters"),
    ("a" * (MOST_CHARACTERS + 1), "at most 20,000 characters. Received: 20,001")])
def test_sentences_that_cant_be_shown_are_one_line(detection, sentence, problem):
    with pytest.raises(UserError, match=problem) as error:
        detection.answer(asked(sentence))
    assert "\n" not in str(error.value)


def test_special_tokens_in_the_text_are_text(detection):
    tokens = detection.answer(asked("word1 [MASK] [SEP] word2")).tokens
    assert {"[MASK]", "[SEP]"}.isdisjoint(token.original for token in tokens)


@pytest.mark.parametrize("change", [
    {"mask_rate": 0.0}, {"mask_rate": 0.91}, {"mask_rate": float("nan")}, {"temperature": 0.0},
    {"temperature": 10.1}, {"temperature": float("inf")}, {"temperature": float("nan")},
    {"seed": -1}, {"seed": 2**32}])
def test_numbers_out_of_range_are_refused(change):
    (name,) = change
    with pytest.raises(UserError, match=f"^{name} must be from .* to .*Received"):
        asked(**change)


@pytest.mark.parametrize("lacks", ["generator/", "generator_predictions/",
                                   "discriminator_predictions/"])
def test_both_networks_are_needed(networks, lacks):
    weights = {name: value for name, value in networks.weights.items()
               if not name.startswith(lacks)}
    with pytest.raises(UserError, match="hasn't a generator and a discriminator"):
        ReplacedTokenDetection(dataclasses.replace(networks, weights=weights))


def test_energies_are_no_probabilities(networks):
    with pytest.raises(UserError, match="hasn't a generator and a discriminator"):
        ReplacedTokenDetection(dataclasses.replace(networks, objective="electric"))


@pytest.mark.parametrize("tying", ["none", "token_embeddings", "everything"])
def test_networks_that_share_more_or_less(tying):
    changes = {"model__generator_width": 1.0, "model__generator_depth": 1.0} if (
        tying == "everything") else {}
    networks = tiny_networks.pretrained(model__tying=tying, **changes)
    assert len(ReplacedTokenDetection(networks).answer(asked("word1 word2 word3")).tokens) == 3
