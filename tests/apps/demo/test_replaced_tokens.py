"""Answers for a sentence, compared with the same steps in NumPy."""

import dataclasses

import numpy as np
import pytest
import scipy.special
import tensorflow as tf

from electra_tf.apps.demo.replaced_tokens import (
    DemoRequest,
    ReplacedTokenDetection,
    masked_positions,
)
from electra_tf.core.errors import UserError
from electra_tf.formats.parts import build_networks
from electra_tf.modeling.rng import Rng
from tests.support import tiny_networks

SENTENCE = "Word1 word2 word3s word4, word5 word6ing word7 word8 word9."


def request(sentence=SENTENCE, mask_rate=0.4, temperature=1.0, seed=3):
    return DemoRequest(sentence=sentence, mask_rate=mask_rate, temperature=temperature, seed=seed)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_answers_equal_the_steps_in_numpy(checkpoint, detection, temperature):
    vocabulary = checkpoint.text.vocabulary
    tokens = detection.answer(request(temperature=temperature))["tokens"]
    words = [token["original"] for token in tokens]
    assert words == ["word1", "word2", "word3", "##s", "word4", "[UNK]", "word5", "word6", "##ing",
                     "word7", "word8", "word9", "."]

    model = build_networks(checkpoint)
    ids = np.array([vocabulary.tokens.index(word) for word in ["[CLS]", *words, "[SEP]"]])
    masked = [position for position, token in enumerate(tokens, start=1) if token["filling"]]
    assert len(masked) == round(0.4 * len(words))
    read = ids.copy()
    read[masked] = vocabulary.mask_id
    segments, valid = tf.zeros([1, len(ids)], tf.int32), tf.ones([1, len(ids)], tf.bool)
    logits = model.generator(tf.constant(read[np.newaxis], tf.int32), segments, valid,
                             tf.constant([masked])).numpy()[:, :vocabulary.size]
    shares = scipy.special.softmax(logits.astype(np.float64) / temperature, axis=-1)
    zero = tf.constant(0, tf.int64)
    uniforms = Rng(seed=3, step=zero, first_example=zero).uniform(
        "sampling", 1, len(ids)).numpy()[0]

    written = ids.copy()
    for share, position in zip(shares, masked, strict=True):
        token = tokens[position - 1]
        best = [index for index in np.argsort(-share) if vocabulary.tokens[index][0] == "w"][:8]
        written[position] = np.searchsorted(np.cumsum(share), uniforms[position], side="right")
        expected = {
            "candidates": [(vocabulary.tokens[index], share[index]) for index in best],
            "sampled": [(vocabulary.tokens[written[position]], share[written[position]])],
            "original": [(vocabulary.tokens[ids[position]], share[ids[position]])]}
        for name, pairs in expected.items():
            filling = token["filling"][name]
            candidates = filling if name == "candidates" else [filling]
            assert [candidate["token"] for candidate in candidates] == [word for word, _ in pairs]
            np.testing.assert_allclose([candidate["probability"] for candidate in candidates],
                                       [value for _, value in pairs], rtol=1e-4)
    logits = model.discriminator(tf.constant(written[np.newaxis], tf.int32), segments, valid)
    np.testing.assert_allclose([token["replaced_probability"] for token in tokens],
                               tf.sigmoid(logits).numpy()[0, 1:-1], rtol=1e-4)
    assert [token["corrupted"] for token in tokens] == [
        vocabulary.tokens[index] for index in written[1:-1]]


def test_equal_requests_have_equal_answers(checkpoint, detection):
    answer = detection.answer(request())
    assert detection.answer(request()) == answer
    assert ReplacedTokenDetection(checkpoint).answer(request()) == answer
    assert detection.answer(request(seed=4)) != answer


def test_a_higher_rate_masks_more_beside_the_same_tokens():
    before = np.zeros(20, bool)
    for rate, count in ((0.01, 1), (0.1, 2), (0.5, 10), (0.9, 18)):
        chosen = masked_positions(np.ones(20, bool), request(mask_rate=rate))
        assert chosen.sum() == count and np.all(chosen >= before)
        before = chosen
    assert masked_positions(np.ones(1, bool), request(mask_rate=0.9)).tolist() == [True]
    assert len({masked_positions(np.ones(20, bool), request(seed=seed)).tobytes()
                for seed in range(10)}) > 5
    words = np.arange(20) % 4 > 0  # Words are masked before the other tokens.
    for seed in range(5):
        assert np.all(words[masked_positions(words, request(mask_rate=0.5, seed=seed))])
        assert np.all(masked_positions(words, request(mask_rate=0.9, seed=seed)) >= words)


def test_sentences_of_all_lengths_up_to_the_maximum_are_read(detection):
    for count in (1, 6, 30):
        sentence = " ".join(f"word{index % 30}" for index in range(count))
        answer = detection.answer(request(sentence, mask_rate=0.01))
        assert [token["original"] for token in answer["tokens"]] == sentence.split()
        assert sum(token["filling"] is not None for token in answer["tokens"]) == 1
    with pytest.raises(UserError, match="has 31 tokens and the model reads 30 at most"):
        detection.answer(request("word1 " * 31))


def test_two_networks_that_give_probabilities_are_needed(checkpoint):
    for incomplete in (*(tiny_networks.without(checkpoint, part) for part in (
            "generator/", "generator_predictions/", "discriminator_predictions/")),
                       dataclasses.replace(checkpoint, objective="electric")):
        with pytest.raises(UserError, match="generator and a discriminator"):
            ReplacedTokenDetection(incomplete)
