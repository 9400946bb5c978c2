"""Exported networks answer what fine-tuning predicts, or refuse, with ops that Serving links."""

import dataclasses
import warnings

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.api.electra import Electra
from electra_tf.export.servable import Detector, TextEncoder, build
from electra_tf.formats.pretrained import Pooling
from electra_tf.modeling import inference
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.tasks.kinds import questions
from electra_tf.tasks.task import Kind, QuestionExample, TaggedExample, TextExample
from electra_tf.text.rows import RowEncoder
from tests.support import tiny_networks
from tests.support.few_words import VOCABULARY
from tests.support.served_models import TEXT, example, tiny_discriminator, unlinked_ops

TEXTS = ["The cafés won.", "", "a b " * 20, "Who won in (1999)?"]
SENTENCES = ["The cafés won.", "Who won in (1999)?", "a cafes " * 30]
PAIRS = [("Who?", "The Cafés\nwon, in (1999)."), ("won in", "a b (a) " * 9), ("a", "")]
ROUNDING = 1e-5
"""Vectors are about 2; two layers in another order of sums move them by a few float32 roundings of
2e-7 each, by 1.1e-6 at most on a CPU with AVX2."""
PLAIN = {"task__ends_given_starts": False, "task__answerability": False}
MODELS = {kind: (kind, {}) for kind in Kind} | {
    Kind.MULTILABEL: (Kind.MULTILABEL, {"task__label_threshold": 0.6}),
    "plain answers": (Kind.QUESTION_ANSWERING, PLAIN)}
"""Name -> kind and settings of a network."""
EAGER = (Kind.REGRESSION, Kind.MULTILABEL)
"""Tests of windows trace them."""


@pytest.fixture(scope="module")
def discriminator():
    return tiny_discriminator()


@pytest.fixture(scope="module")
def detector(discriminator):
    return Detector(discriminator.encoder, discriminator.head, RowEncoder(TEXT, 16))


@pytest.fixture(scope="module")
def signatures(discriminator):
    """Returns all signatures of all kinds, by the model and their names."""
    never = {Kind.QUESTION_ANSWERING: 99.0}  # A threshold that withholds no answer.
    served = {"detector": Detector(InferenceEncoder(discriminator.encoder, tf.float32),
                                   discriminator.head, RowEncoder(TEXT, 16))} | {
        name: example(kind, **changes).served(threshold=never.get(name))
        for name, (kind, changes) in MODELS.items() if name not in EAGER}
    return {(model, name): signature for model, task in served.items()
            for name, signature in task.signatures().items()}


def examples_of(kind):
    if kind is Kind.TAGGING:
        return [TaggedExample(key="", words=tuple(text.split())) for text in SENTENCES]
    if kind is Kind.QUESTION_ANSWERING:
        return [QuestionExample(key=str(number), question=question, context=context)
                for number, (question, context) in enumerate(PAIRS)]
    columns = (TEXTS, TEXTS[::-1])[:1 + (kind is Kind.REGRESSION)]
    return [TextExample(key="", texts=texts) for texts in zip(*columns, strict=True)]


def columns_of(kind, task):
    rows = {Kind.TAGGING: [(text,) for text in SENTENCES], Kind.QUESTION_ANSWERING: PAIRS}.get(
        kind) or [one.texts for one in examples_of(kind)]
    return dict(zip(task.columns, map(tf.constant, zip(*rows, strict=True)), strict=True))


def answer_of(kind, record):
    """Returns what must be answered, by a record of fine-tuning's predictions."""
    if kind is Kind.CLASSIFICATION:
        return {"label": record["prediction"], "score": record["probability"],
                "labels": [*record["probabilities"]],
                "probabilities": [*record["probabilities"].values()]}
    if kind is Kind.MULTILABEL:
        return {"prediction": record["prediction"],
                "probabilities": [*record["probabilities"].values()]}
    if kind is Kind.TAGGING:
        return {"words": [*record["words"]], "tags": record["prediction"]}
    if kind is Kind.QUESTION_ANSWERING:
        end = record["start"] + len(record["best_answer"])
        return {"answer": record["best_answer"], "start": record["start"], "end": end}
    return {"score" if kind is Kind.REGRESSION else "embedding": record["prediction"]}


def decoded(value):
    """Returns strings without the padding of shorter rows."""
    if isinstance(value, bytes):
        return value.decode()
    return [word.decode() for word in value if word] if value.dtype == object else value


@pytest.mark.parametrize("name", MODELS)
def test_answers_are_the_predictions_of_fine_tuning(signatures, name):
    kind, changes = MODELS[name]
    model = example(kind, **changes)
    served = model.served(tensor_parallel=2)
    columns = columns_of(kind, served)
    ways = [served.answer(*columns.values()) if name in EAGER
            else signatures[name, "serving_default"](**columns)]
    if kind is Kind.CLASSIFICATION:
        tokens = model.row_encoder.encode(*columns.values())
        ids = signatures[name, "token_ids"](
            input_ids=tokens.ids, token_type_ids=tokens.segment_ids,
            attention_mask=tf.cast(tokens.padding_mask, tf.int32))
        np.testing.assert_allclose(ids["probabilities"], ways[0]["probabilities"], atol=1e-6)
        ways.append(served.answer(*columns.values()))
    for answers in ways:
        for line, record in enumerate(model.predicted(examples_of(kind))):
            for field, expected in answer_of(kind, record).items():
                actual = decoded(answers[field].numpy()[line])
                if isinstance(expected, str | list) and isinstance(actual, str | list):
                    assert actual == expected
                else:
                    np.testing.assert_allclose(actual, expected, atol=1e-5)
    assert ("no_answer_probability" in ways[0]) == (name == Kind.QUESTION_ANSWERING)


def test_thresholds_withhold_labels_and_answers():
    labels = example(Kind.MULTILABEL, task__label_threshold=0.6).served(threshold=0.999)
    assert labels.answer(tf.constant(TEXTS))["prediction"].shape == (len(TEXTS), 0)
    reader, columns = example(Kind.QUESTION_ANSWERING), (["Who?"], ["The Cafés won."])
    columns = [tf.constant(column) for column in columns]
    probability = reader.served().answer(*columns)["no_answer_probability"][0]
    logit = np.log(1.0 / probability - 1.0)
    above, below = (reader.served(threshold=-logit + change).answer(*columns)
                    for change in (0.1, -0.1))
    assert above["answer"][0] != b""
    assert (below["answer"][0], below["start"][0], below["end"][0]) == (b"", 0, 0)
    assert below["no_answer_probability"] == above["no_answer_probability"] == probability
    by_setting = example(Kind.QUESTION_ANSWERING, task__no_answer_threshold=float(-logit - 0.1))
    assert by_setting.served().answer(*columns)["answer"][0] == b""


def test_a_stock_tensorflow_serving_links_all_ops_of_all_signatures(signatures):
    assert {key: ops for key, signature in signatures.items()
            if (ops := unlinked_ops(signature.graph.as_graph_def()))} == {}


def test_no_rows_get_no_answers(signatures):
    for key, signature in signatures.items():
        inputs = {spec.name: tf.zeros([0] * spec.shape.rank, spec.dtype)
                  for spec in signature.structured_input_signature[0]}
        outputs, specs = signature(**inputs), signature.structured_outputs
        assert {name: (value.shape[0], value.shape.rank) for name, value in outputs.items()} == {
            name: (0, spec.shape.rank) for name, spec in specs.items()}, key


def test_a_words_probability_is_the_highest_of_its_pieces(discriminator, detector):
    answers = detector.answer(tf.constant(["The cafés won.", "", "a"]))
    assert answers["words"].numpy().tolist() == [
        [b"The", "cafés".encode(), b"won", b"."], [b""] * 4, [b"a", b"", b"", b""]]
    # [CLS] the cafe ##s won . [SEP]
    tokens = detector.row_encoder.encode(tf.constant(["The cafés won."]))
    with inference_mode():
        pieces = tf.sigmoid(discriminator(*tokens))[0].numpy()
    np.testing.assert_allclose(answers["replaced_probability"][0], [
        pieces[1], max(pieces[2:4]), pieces[4], pieces[5]], atol=ROUNDING)
    assert answers["replaced_probability"][1:, 1:].numpy().max() == 0.0


def test_embeddings_average_all_tokens(discriminator, detector):
    texts = tf.constant(["The cafés won.", "", "a"])
    outputs = detector.embed_tokens(texts)
    tokens = detector.row_encoder.encode(texts)
    hidden = discriminator.encoder(*tokens).numpy()
    np.testing.assert_allclose(outputs["cls"], hidden[:, 0], atol=ROUNDING)
    for row, length in enumerate((7, 2, 3)):
        np.testing.assert_allclose(
            outputs["pooled"][row], hidden[row, :length].mean(axis=0), atol=ROUNDING)
    assert np.all(outputs["tokens"][2, 3:].numpy() == 0.0)
    np.testing.assert_array_equal(outputs["token_ids"], tokens.ids)
    encoder = TextEncoder(discriminator.encoder, tf.Module(), RowEncoder(TEXT, 16))
    np.testing.assert_allclose(encoder.score(tokens)["tokens"][0], outputs["tokens"][0])
    for vectors in (detector.embed(texts), encoder.answer(texts)):
        assert vectors.keys() == {"pooled", "cls"}
        for name, values in vectors.items():
            np.testing.assert_array_equal(values, outputs[name])


@pytest.mark.parametrize("removed", [("generator", "discriminator"), ("generator",)])
@pytest.mark.parametrize("pooling", [
    Pooling(modes=("cls",), normalize=True, max_length=8), Pooling(modes=("mean", "max"))])
def test_an_encoder_of_sentence_transformers_pools_as_in_python(pooling, removed):
    encoder = dataclasses.replace(tiny_networks.without(
        tiny_networks.pretrained(VOCABULARY), *removed), pooling=pooling)
    texts = ["The cafés won.", "", "a cafes " * 30]
    with warnings.catch_warnings(action="ignore"):  # The last text is cut.
        expected = Electra(encoder).embed(texts)
    vectors = build(encoder).embed(tf.constant(texts))["pooled"]
    np.testing.assert_allclose(vectors, expected, atol=ROUNDING)


def test_the_length_of_vectors_is_not_that_of_rows_in_which_replaced_words_are_detected():
    checkpoint = tiny_networks.without(tiny_networks.pretrained(VOCABULARY), "generator")
    text = tf.constant(["the cafes won . " * 3])
    expected, actual = (
        build(dataclasses.replace(checkpoint, pooling=Pooling(max_length=length))).answer(text)
        for length in (None, 8))
    np.testing.assert_array_equal(actual["replaced_probability"], expected["replaced_probability"])


def test_rows_beyond_a_chunk_change_nothing(detector, monkeypatch):
    texts = tf.constant(["a cafes " * 12, "The cafés won.", "b"])
    reader = example(Kind.QUESTION_ANSWERING, **PLAIN).served()
    calls = (lambda: detector.answer(texts), lambda: example(Kind.TAGGING).served().answer(texts),
             lambda: reader.answer(tf.constant(["Who?"] * 3), texts))
    unchunked = [call() for call in calls]
    monkeypatch.setattr(inference, "_CHUNK_TOKENS", 40)
    monkeypatch.setattr(questions, "SERVED_CHUNK", 1)
    for call, expected in zip(calls, unchunked, strict=True):
        for name, values in call().items():
            if values.dtype == tf.string:
                np.testing.assert_array_equal(values, expected[name])
            else:
                np.testing.assert_allclose(values, expected[name], atol=ROUNDING)


GOOD = {"input_ids": [[2, 5, 3], [2, 3, 0]], "token_type_ids": [[0, 0, 0]] * 2,
        "attention_mask": [[1, 1, 1], [1, 1, 0]]}


def test_token_ids_are_checked_except_in_padding(signatures):
    def call(**changes):
        return signatures[Kind.CLASSIFICATION, "token_ids"](**{
            name: tf.constant(value, tf.int32) for name, value in (GOOD | changes).items()})

    no_token = "attention_mask must have a 1"
    for changes, words in (
            ({"token_type_ids": [[0, 0, 0]]}, "attention_mask must have one shape.*2 3.*1 3"),
            ({"attention_mask": [[1, 1, 1], [0, 0, 0]]}, no_token),
            ({name: [[], []] for name in GOOD}, no_token),
            ({name: [[1] * 17] * 2 for name in GOOD}, "at most 16 tokens"),
            ({"input_ids": [[2, 19, 3], [2, 3, 0]]}, "input_ids must be from 0 to 18"),
            ({"token_type_ids": [[0, 2, 0], [0, 0, 0]]}, "token_type_ids must be from 0 to 1")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            call(**changes)
    padded = call(input_ids=[[2, 5, 3], [2, 3, -100]], token_type_ids=[[0, 0, 0], [0, 0, 9]])
    np.testing.assert_array_equal(padded["probabilities"], call()["probabilities"])
    # TensorFlow Serving pads an input with its first element.
    padded = call(input_ids=[[2, 5, 3, 2, 2], [2, 3, 0, 2, 2]], token_type_ids=[[0] * 5] * 2,
                  attention_mask=[[1] * 5, [1, 1, 0, 1, 1]])
    np.testing.assert_allclose(padded["probabilities"], call()["probabilities"], atol=1e-6)


def test_columns_of_different_lengths_are_refused(signatures):
    with pytest.raises(tf.errors.InvalidArgumentError, match="question, context must .*2.*3"):
        signatures[Kind.QUESTION_ANSWERING, "serving_default"](
            question=tf.constant(["a"] * 2), context=tf.constant(["a"] * 3))
