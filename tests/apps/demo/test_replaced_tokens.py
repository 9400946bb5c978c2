"""One sentence through both networks, against the same steps written out."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.apps.demo.replaced_tokens import (
    EXAMPLES,
    DemoRequest,
    ReplacedTokenDetection,
    _candidates,
    good_example,
    masked_positions,
)
from electra_tf.checkpoints.weights import assign_weights
from electra_tf.modeling.electra import ElectraModel
from electra_tf.modeling.randomness import Randomness
from electra_tf.platform.errors import UserError
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import tiny_networks

SENTENCE = "Word1 word2 word3s word4, word5 word6ing word7 word8 word9."


def request(sentence=SENTENCE, mask_rate=0.4, temperature=1.0, seed=3):
    return DemoRequest(sentence=sentence, mask_rate=mask_rate, temperature=temperature, seed=seed)


def fillings(answer):
    return [token["filling"] for token in answer["tokens"] if token["filling"]]


def softmax(logits):
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_steps_are_those_of_the_networks(networks, detection, temperature):
    vocabulary = networks.text.vocabulary
    tokens = detection.answer(request(temperature=temperature))["tokens"]
    words = [token["original"] for token in tokens]
    assert words == ["word1", "word2", "word3", "##s", "word4", "[UNK]", "word5", "word6", "##ing",
                     "word7", "word8", "word9", "."]

    # No padding, one row, and NumPy between the networks.
    model = ElectraModel(networks.model, seed=1)
    assign_weights(model.variables, networks.weights, "the tiny networks")
    ids = np.array([vocabulary.tokens.index(word) for word in ["[CLS]", *words, "[SEP]"]])
    masked = [place for place, token in enumerate(tokens, start=1) if token["filling"]]
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
        token = tokens[place - 1]
        best = [index for index in np.argsort(-share) if vocabulary.tokens[index][0] == "w"][:8]
        written[place] = np.searchsorted(np.cumsum(share), uniforms[place], side="right")
        expected = {
            "candidates": [(vocabulary.tokens[index], share[index]) for index in best],
            "sampled": [(vocabulary.tokens[written[place]], share[written[place]])],
            "original": [(vocabulary.tokens[ids[place]], share[ids[place]])]}
        for name, pairs in expected.items():
            found = token["filling"][name]
            found = found if name == "candidates" else [found]
            assert [each["token"] for each in found] == [word for word, _ in pairs]
            np.testing.assert_allclose([each["probability"] for each in found],
                                       [value for _, value in pairs], rtol=1e-4)
    judged = model.discriminator(tf.constant(written[np.newaxis], tf.int32), segments, valid)
    np.testing.assert_allclose([token["replaced_probability"] for token in tokens],
                               tf.sigmoid(judged).numpy()[0, 1:-1], rtol=1e-4)
    assert [token["corrupted"] for token in tokens] == [
        vocabulary.tokens[index] for index in written[1:-1]]


def test_equal_questions_have_equal_answers(networks, detection):
    answer = detection.answer(request())
    assert detection.answer(request()) == answer
    assert ReplacedTokenDetection(networks).answer(request()) == answer
    assert detection.answer(request(seed=4)) != answer


def test_a_rate_masks_so_many_and_a_higher_one_masks_more():
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


def test_candidates_are_words_where_some_are_likely():
    tokens = [",", "the", ".", "a", "##s", "of"]
    found = _candidates(tokens, np.array([0.4, 0.2, 0.1, 0.05, 0.04, 0.03]))
    assert [each["token"] for each in found["candidates"]] == ["the", "a", "of"]
    assert found["left_out"] == pytest.approx(0.54)
    found = _candidates(tokens, np.array([0.9, 0.05, 0.01, 0.01, 0.01, 0.01]))
    assert [each["token"] for each in found["candidates"]] == tokens and found["left_out"] == 0.0


def test_the_example_is_one_that_the_model_can_read(networks, detection):
    assert len(detection.tokens(good_example(detection).sentence)) <= 30
    wide = Vocabulary((*SPECIAL_TOKENS, *dict.fromkeys(EXAMPLES[3].lower().replace(
        ",", " ,").replace(".", " .").split())))
    example = good_example(ReplacedTokenDetection(tiny_networks.pretrained(wide)))
    assert example.sentence == EXAMPLES[3]


def test_sentences_of_every_length_up_to_the_models(detection):
    for count in (1, 5, 6, 7, 29, 30):
        sentence = " ".join(f"word{index % 30}" for index in range(count))
        answer = detection.answer(request(sentence, mask_rate=0.01))
        assert [token["original"] for token in answer["tokens"]] == sentence.split()
        assert len(fillings(answer)) == 1
    with pytest.raises(UserError, match="has 31 tokens and the model reads 30 at most"):
        detection.answer(request("word1 " * 31))


def test_two_networks_that_give_probabilities_are_needed(networks):
    for given in (*(tiny_networks.without(networks, part) for part in (
            "generator/", "generator_predictions/", "discriminator_predictions/")),
                  dataclasses.replace(networks, objective="electric")):
        with pytest.raises(UserError, match="generator and a discriminator"):
            ReplacedTokenDetection(given)
