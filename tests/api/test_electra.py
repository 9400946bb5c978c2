import copy
import dataclasses
import pickle

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import electra_tf
from electra_tf.api.electra import Electra
from electra_tf.checkpoints.weights import assign_weights
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format, Pooling
from electra_tf.modeling.electra import ElectraModel
from electra_tf.objectives.language_models import MaskedLanguageModel
from tests.support import tiny_networks
from tests.support.refusals import refused

TEXTS = ["the chef cooked the meal .", "first text", "the piano ate"]


def masked_token_probabilities(model, checkpoint, tokens):
    """Assigns the weights, and returns the generator's probabilities at every [MASK], [N, V]."""
    assign_weights(model.variables, checkpoint.weights, "the tiny networks")
    vocabulary = checkpoint.text.vocabulary.tokens
    ids = tf.constant([[vocabulary.index(token) for token in tokens]], tf.int32)
    positions = tf.constant([[i for i, token in enumerate(tokens) if token == "[MASK]"]])
    logits = model.generator(ids, tf.zeros_like(ids), tf.ones_like(ids, tf.bool), positions)
    return tf.nn.softmax(logits[:, :len(vocabulary)]).numpy()


def test_candidates_are_the_generators_for_every_mask(electra, checkpoint):
    probabilities = masked_token_probabilities(
        ElectraModel(checkpoint.config, seed=0), checkpoint,
        ("[CLS]", "the", "[MASK]", "ate", "[MASK]", ".", "[SEP]"))
    candidates = electra.fill("The [MASK] ate [MASK].", candidates=3)
    for words, expected in zip(candidates, probabilities, strict=True):
        best = np.argsort(-expected)[:3]
        assert [word.text for word in words] == [
            checkpoint.text.vocabulary.tokens[index] for index in best]
        np.testing.assert_allclose([word.probability for word in words], expected[best], atol=1e-5)
    assert [len(electra.fill(text)) for text in (
        "the [MASK]", "[MASK]", "the chef ate [MASK] [MASK]")] == [1, 1, 2]


def test_a_run_with_a_generator_alone_fills_masks(checkpoint, tmp_path):
    alone = tiny_networks.without(checkpoint, "generator/", "discriminator", objective="mlm")
    pretrained.write(alone, tmp_path / "run", Format.RUN)
    (expected,) = masked_token_probabilities(
        MaskedLanguageModel(checkpoint.config, seed=0), checkpoint,
        ("[CLS]", "the", "[MASK]", "[SEP]"))
    word = electra_tf.load(tmp_path / "run").fill("the [MASK]", candidates=1)[0][0]
    assert word.text == checkpoint.text.vocabulary.tokens[expected.argmax()]
    assert abs(word.probability - expected.max()) < 1e-5


@pytest.mark.parametrize(("method", "arguments", "words"), [
    ("embed", {"texts": ["a"], "pooling": "sum"}, "pooling must be one of cls, max, .*'sum'"),
    ("embed", {"texts": {"the": 1}}, "list of strings"),
    ("embed", {"texts": ["a", b"\xff"]}, "texts:2: not UTF-8 at byte 1"),
    ("detect", {"text": b"a\xff"}, "text: not UTF-8 at byte 2"),
    ("embed", {"texts": ["a", "\ud800"]}, "texts:2 has half of a character"),
    ("embed", {"texts": ["a", np.nan]}, "None"),
    ("embed", {"texts": "a"}, "list of strings"), ("detect", {"text": ["a"]}, "must be a string"),
    ("fill", {"text": "the meal"}, r"\[MASK\]"), ("detect", {"text": "chef " * 40}, "40 tokens")])
def test_mistaken_arguments_are_refused_in_one_line(electra, method, arguments, words):
    with refused(words):
        getattr(electra, method)(**arguments)


def test_layers_refuse_bytes_that_are_not_utf_8_and_graphs_leave_them_out(electra):
    for texts in (tf.constant(["the", b"\xff"]), [("the", "meal"), ("the", b"\xff")]):
        for layer in (electra.tokenizer, electra.encoder):
            with refused("texts:2: not UTF-8 at byte 1"):
                layer(texts)
    ids, expected = (tf.function(electra.tokenizer)(tf.constant([text]))["input_ids"]
                     for text in (b"the\xff meal", b"the meal"))
    np.testing.assert_array_equal(ids, expected)


def test_texts_of_any_form_and_number_have_vectors(electra):
    expected = electra.embed(TEXTS)
    for text, vector in zip(TEXTS, expected, strict=True):
        np.testing.assert_allclose(electra.embed([text])[0], vector, atol=1e-5)
    for texts in (np.array(TEXTS), tf.constant(TEXTS), (text for text in TEXTS)):
        np.testing.assert_array_equal(electra.embed(texts), expected)
    np.testing.assert_allclose(electra.embed(TEXTS, batch_size=2), expected, atol=1e-5)
    assert electra.embed([""]).shape == (1, electra.config.hidden_size)
    assert electra.embed([]).shape == (0, electra.config.hidden_size)
    assert electra.detect("") == []
    assert [word.text for word in electra.detect("The chef cooked.")] == [
        "The", "chef", "cooked", "."]


def test_texts_that_are_cut_are_counted_in_one_warning(electra, recwarn):
    longest = electra.config.max_position_embeddings
    electra.embed(["chef " * (longest - 2)])
    assert not recwarn
    electra.embed(["chef " * longest, "the", "chef " * 99] * 20, batch_size=2)
    (warning,) = recwarn
    assert warning.filename == __file__ and str(warning.message) == (
        f"40 of 60 texts are longer than max_length={longest} tokens and were cut "
        "(longest: 101)")


def test_networks_after_fit_are_saved_in_both_formats(directory, tmp_path):
    electra = electra_tf.load(directory)
    before = electra.embed(TEXTS)
    texts = tf_keras.Input([], dtype=tf.string)
    model = tf_keras.Model(texts, electra.encoder(texts)[:, 0])
    model.compile(tf_keras.optimizers.Adam(0.1), "mse")
    model.fit(tf.constant(TEXTS), tf.zeros([3, electra.config.hidden_size]), verbose=0)
    electra.save(tmp_path / "run")
    electra.save_pretrained(tmp_path / "pair")
    electra.encoder.save_pretrained(tmp_path / "encoder")
    for name in ("run", "encoder"):
        np.testing.assert_array_equal(
            electra_tf.load(tmp_path / name).embed(TEXTS), electra.embed(TEXTS))
    tiny_networks.require_equal_weights(*(
        pretrained.read(tmp_path / name) for name in ("run", "pair")))
    assert np.abs(electra.embed(TEXTS) - before).max() > 0.1
    with refused("exists already"):
        electra.save(tmp_path / "run")


def test_the_head_that_restores_tokens_is_saved_with_its_encoder(checkpoint, tmp_path):
    networks = tiny_networks.with_restorer(checkpoint)
    electra = pickle.loads(pickle.dumps(Electra(networks)))
    electra.save(tmp_path / "run")
    tiny_networks.require_equal_weights(networks, pretrained.read(tmp_path / "run"))
    electra.save_pretrained(tmp_path / "hugging_face")
    assert (tmp_path / "hugging_face" / "restorer" / "model.safetensors").exists()


def test_the_encoder_of_a_task_is_saved_without_its_head(task_directories, tmp_path):
    electra = electra_tf.load(next(iter(task_directories.values())))
    electra.save(tmp_path / "run")
    electra.save_pretrained(tmp_path / "hugging_face")
    run, other = (pretrained.read(tmp_path / name) for name in ("run", "hugging_face"))
    tiny_networks.require_equal_weights(run, other)
    assert run.task is other.task is None
    assert not any("head" in weight for weight in run.weights)


def test_pooling_that_is_not_saved_is_named(checkpoint, tmp_path):
    electra = Electra(dataclasses.replace(checkpoint, pooling=Pooling(normalize=True)))
    with pytest.warns(UserWarning, match="do not include the pooling of the tiny networks"):
        electra.save(tmp_path / "run")


def test_an_encoder_is_saved_with_its_pooling(checkpoint, tmp_path):
    pooling = Pooling(modes=("cls",), normalize=True, max_length=12)
    Electra(dataclasses.replace(tiny_networks.without(
        checkpoint, "discriminator", "generator"), pooling=pooling)).save_pretrained(
            tmp_path / "encoder")
    assert pretrained.read(tmp_path / "encoder").pooling == pooling


def test_pickled_networks_have_the_present_weights_and_the_pooling(checkpoint):
    electra = Electra(dataclasses.replace(checkpoint, pooling=Pooling(modes=("cls",))))
    electra.encoder.blocks[0].words.table.assign_add(
        tf.random.stateless_normal(electra.encoder.blocks[0].words.table.shape, [1, 2]))
    for other in (pickle.loads(pickle.dumps(electra)), copy.deepcopy(electra)):
        np.testing.assert_array_equal(other.embed(TEXTS), electra.embed(TEXTS))
        assert other.detect("chef") == electra.detect("chef")
        other.encoder.blocks[-1].output_norm.gamma.assign_add(
            tf.range(other.config.hidden_size, dtype=tf.float32))
        assert np.abs(other.embed(TEXTS) - electra.embed(TEXTS)).max() > 0


@pytest.mark.slow
def test_a_pipeline_of_scikit_learn_is_scored_in_other_processes(electra):
    pipeline = make_pipeline(FunctionTransformer(electra.embed), LogisticRegression())
    texts, labels = TEXTS[:2] * 4, [0, 1] * 4
    scores = cross_val_score(pipeline, texts, labels, cv=2, n_jobs=2)
    np.testing.assert_array_equal(scores, cross_val_score(pipeline, texts, labels, cv=2))
    fitted = pipeline.fit(texts, labels)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(fitted)).predict_proba(texts), fitted.predict_proba(texts))


def test_networks_compute_in_the_policy_of_keras_unless_it_is_refused(directory):
    try:
        for policy in ("float16", "float64", "bfloat16"):
            tf_keras.mixed_precision.set_global_policy(policy)
            with refused(f"float32, mixed_bfloat16, mixed_float16. Received: '{policy}"):
                electra_tf.load(directory)
        tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
        narrow = electra_tf.load(directory)
    finally:
        tf_keras.mixed_precision.set_global_policy("float32")
    exact = electra_tf.load(directory)
    assert narrow.encoder.compute_dtype == "bfloat16"
    assert narrow.encoder(TEXTS).dtype == tf.float32
    assert 0 < np.abs(narrow.embed(TEXTS) - exact.embed(TEXTS)).max() < 1
    assert narrow.fill("the [MASK]")[0][0].probability > 0
    assert 0 < narrow.detect("the")[0].probability < 1
