import dataclasses
import doctest
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import electra_tf
from electra_tf.api import electra as module
from electra_tf.checkpoints.weights import assign_weights
from electra_tf.modeling.electra import ElectraModel
from electra_tf.platform.errors import UserError

TEXTS = ["the chef cooked the meal .", "first text", "the piano ate"]


@pytest.fixture(scope="module")
def training_networks(networks):
    """The networks as a training step runs them: one row, static shapes, no padding."""
    model = ElectraModel(networks.model, seed=0)
    assign_weights(model.variables, networks.weights, "the tiny networks")
    return model


def row(networks, *tokens):
    known = networks.text.vocabulary.tokens
    ids = tf.constant([[known.index(token) for token in ("[CLS]", *tokens, "[SEP]")]], tf.int32)
    return ids, tf.zeros_like(ids), tf.ones_like(ids, tf.bool)


COOKED = ("the", "chef", "cook", "##ed", "the", "meal", ".")


def test_a_vector_is_the_mean_of_the_tokens_vectors_or_that_of_cls(
        electra, networks, training_networks):
    expected = training_networks.discriminator.encoder(*row(networks, *COOKED)).numpy()[0]
    np.testing.assert_allclose(electra.embed(TEXTS)[0], expected.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(electra.embed(TEXTS, pooling="cls")[0], expected[0], atol=1e-5)


def test_vectors_keep_the_order_of_many_texts_of_all_lengths(electra):
    texts = [" ".join(["chef"] * (number % 7 + 1)) for number in range(70)]
    together = electra.embed(texts)
    for number in (0, 5, 33, 69):
        np.testing.assert_allclose(together[number], electra.embed([texts[number]])[0], atol=1e-5)


def test_a_word_has_the_probability_of_its_likeliest_piece(electra, networks, training_networks):
    logits = training_networks.discriminator(*row(networks, *COOKED)).numpy()[0, 1:-1]
    pieces = 1 / (1 + np.exp(-logits))
    found = electra.detect("The chef cooked the meal.")
    assert [word.text for word in found] == ["The", "chef", "cooked", "the", "meal", "."]
    np.testing.assert_allclose(
        [word.probability for word in found],
        [*pieces[:2], max(pieces[2:4]), *pieces[4:]], atol=1e-5)


def test_candidates_are_the_generators_for_every_mask(electra, networks, training_networks):
    tokens = ("the", "[MASK]", "ate", "[MASK]", ".")
    logits = training_networks.generator(*row(networks, *tokens), tf.constant([[2, 4]])).numpy()
    logits = logits[:, :networks.text.vocabulary.size]
    found = electra.fill("The [MASK] ate [MASK].", candidates=3)
    for words, scores in zip(found, logits, strict=True):
        shares = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        best = np.argsort(-shares)[:3]
        assert [word.text for word in words] == [
            networks.text.vocabulary.tokens[index] for index in best]
        np.testing.assert_allclose([word.probability for word in words], shares[best], atol=1e-5)


@pytest.mark.parametrize(("ask", "named"), [
    (lambda electra: electra.embed(["a"], pooling="max"), "pooling"),
    (lambda electra: electra.embed("a"), "list"),
    (lambda electra: electra.fill("the meal"), r"\[MASK\]"),
    (lambda electra: electra.detect("chef " * 40), "40 tokens"),
    (lambda electra: electra.fill("chef " * 40 + "[MASK]"), "41 tokens"),
])
def test_a_request_without_an_answer_is_one_line(electra, ask, named):
    with pytest.raises(UserError, match=named) as raised:
        ask(electra)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("part", "ask"), [
    ("generator", lambda electra: electra.fill("[MASK]")),
    ("discriminator", lambda electra: electra.detect("chef")),
])
def test_a_network_that_is_missing_is_named(networks, part, ask):
    weights = {name: value for name, value in networks.weights.items() if not name.startswith(part)}
    with pytest.raises(UserError, match=f"has no {part}"):
        ask(module.Electra(dataclasses.replace(networks, weights=weights)))


def test_an_empty_text_has_a_vector_and_no_words(electra):
    assert electra.embed([""]).shape == (1, electra.model.hidden_size)
    assert electra.embed([]).shape == (0, electra.model.hidden_size)
    assert electra.detect("") == []


def test_the_examples_run(electra):
    done = doctest.testmod(module, extraglobs={"electra": electra})
    assert done.attempted >= 3
    assert done.failed == 0


def test_importing_the_package_is_quick_and_silent():
    program = ("import sys, electra_tf; assert 'tensorflow' not in sys.modules; "
               "print(electra_tf.__version__, *dir(electra_tf))")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          check=True)
    assert done.stderr == ""
    assert done.stdout.split()[0] == electra_tf.__version__
    assert "load_task" in done.stdout


def test_every_public_name_is_there():
    for name in electra_tf.__all__:
        assert getattr(electra_tf, name).__doc__, name
    with pytest.raises(AttributeError, match="laod"):
        electra_tf.laod  # noqa: B018
