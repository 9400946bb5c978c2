"""Pseudo-likelihoods against sums computed one sentence and one token at a time."""


import numpy as np
import pytest
import tensorflow as tf

from electra_tf.apps.tools.pseudo_likelihood import PseudoLikelihood
from electra_tf.checkpoints.weights import assign_parts
from electra_tf.modeling.electra import ElectraModel
from electra_tf.platform.errors import UserError
from tests.support import tiny_networks

SENTENCES = ["word1 word2 word3", "word4", "word5 word6 word7 word8 word9 word10 word11 word12",
             "word3 word3", *(f"word{index} word{index + 1}" for index in range(20))]


@pytest.fixture(scope="module")
def model(networks):
    model = ElectraModel(networks.model, seed=0)
    assert assign_parts(model.variables, networks.weights, "test") == []
    return model


def ids_of(sentence: str) -> list[int]:
    vocabulary = tiny_networks.VOCABULARY
    return [vocabulary.cls_id, *(vocabulary.tokens.index(word) for word in sentence.split()),
            vocabulary.sep_id]


def logits_of(model, sentence):
    """The discriminator's outputs for the words of a sentence, float64."""
    row = tf.constant([ids_of(sentence)], tf.int32)
    return model.discriminator(
        row, tf.zeros_like(row), tf.ones_like(row, tf.bool)).numpy()[0, 1:-1].astype(float)


def test_the_generator_hides_each_token_in_turn(networks, model):
    found = PseudoLikelihood(networks).score(SENTENCES)["generator"]
    for sentence, score in zip(SENTENCES[:4], found, strict=False):
        ids, expected = ids_of(sentence), 0.0
        for place in range(1, len(ids) - 1):
            row = np.array([ids], np.int32)
            row[0, place] = tiny_networks.VOCABULARY.mask_id
            logits = model.generator(tf.constant(row), tf.zeros_like(row), tf.ones_like(row, bool),
                                     tf.constant([[place]])).numpy()[0].astype(float)
            expected += logits[ids[place]] - np.log(np.exp(logits).sum())
        assert score == pytest.approx(expected, rel=1e-4)


def test_the_discriminator_reads_the_sentence_as_it_stands(networks, model):
    electric = PseudoLikelihood(tiny_networks.without(
        networks, "generator", objective="electric"))
    assert electric.best == "discriminator" and electric.networks == ("discriminator",)
    found, energies = (judge.score(SENTENCES)["discriminator"]
                       for judge in (PseudoLikelihood(networks), electric))
    for sentence, score, energy in zip(SENTENCES[:4], found, energies, strict=False):
        logits = logits_of(model, sentence)
        assert score == pytest.approx(np.log(1 - 1 / (1 + np.exp(-logits))).sum(), rel=1e-4)
        assert energy == pytest.approx(-logits.sum(), rel=1e-4)  # Electric's logits are energies.


def test_networks_that_are_missing_arent_asked(networks):
    discriminator = tiny_networks.without(networks, "generator")
    assert PseudoLikelihood(discriminator).networks == ("discriminator",)
    with pytest.raises(UserError, match="neither a generator's nor a discriminator's"):
        PseudoLikelihood(tiny_networks.without(discriminator, "discriminator"))
    with pytest.raises(UserError, match="33 tokens; the model reads 32 at most"):
        PseudoLikelihood(networks).score(["word1 " * 31])
