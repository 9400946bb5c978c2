"""Exported networks answer what fine-tuning predicts, or refuse, with ops that Serving links."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.export.servable import Detector, TextEncoder
from electra_tf.modeling import inference
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.tasks.kinds import questions
from electra_tf.tasks.task import Kind, QuestionExample, TaggedExample, TextExample
from electra_tf.text.rows import RowEncoder
from tests.export.served_models import TEXT, Example, example, tiny_discriminator, unlinked_ops

GOOD = {"input_ids": [[2, 5, 3], [2, 3, 0]], "token_type_ids": [[0, 0, 0]] * 2,
        "attention_mask": [[1, 1, 1], [1, 1, 0]]}
TEXTS = ["The cafés won.", "", "a b " * 20, "Who won in (1999)?"]
ROUNDING = 1e-5
"""Vectors are about 2; two layers in another order of sums move them by a few float32 roundings of
2e-7 each, by 1.1e-6 at most on a CPU with AVX2."""


def answer(model, *columns):
    """Calls the traced signature of an example, or what is served without a graph."""
    texts = [tf.constant(column, tf.string) for column in columns]
    if isinstance(model, Example):
        names = model.served().columns
        outputs = model.signatures["serving_default"](**dict(zip(names, texts, strict=True)))
    else:
        outputs = model.answer(*texts)
    return {name: value.numpy() for name, value in outputs.items()}


def test_classes():
    classifier = example(Kind.CLASSIFICATION)
    expected = classifier.predicted([TextExample(key="", texts=(text,)) for text in TEXTS])
    for answers in (answer(classifier, TEXTS),
                    answer(classifier.served(tensor_parallel=2), TEXTS)):
        assert [label.decode() for label in answers["label"]] == [
            row["prediction"] for row in expected]
        np.testing.assert_allclose(
            answers["score"], [row["probability"] for row in expected], atol=1e-5)
        assert answers["labels"][3].tolist() == [
            label.encode() for label in ("no", "peut-être", "yes")]
        np.testing.assert_allclose(answers["probabilities"].sum(axis=1), 1.0, atol=1e-6)
        np.testing.assert_array_equal(answers["probabilities"].max(axis=1), answers["score"])


def test_sets_of_labels():
    model = example(Kind.MULTILABEL, task__label_threshold=0.6)
    expected = model.predicted([TextExample(key="", texts=(text,)) for text in TEXTS])
    answers = answer(model, TEXTS)
    predictions = [[label.decode() for label in row if label] for row in answers["prediction"]]
    assert predictions == [row["prediction"] for row in expected]
    assert len({*map(len, predictions)}) > 1  # Texts have different numbers of labels.
    np.testing.assert_allclose(
        answers["probabilities"], [[*row["probabilities"].values()] for row in expected], atol=1e-5)
    assert answer(model.served(threshold=0.999), TEXTS)["prediction"].shape == (len(TEXTS), 0)


def test_numbers_from_pairs():
    answers = answer(example(Kind.REGRESSION), TEXTS, TEXTS[::-1])
    expected = example(Kind.REGRESSION).predicted([
        TextExample(key="", texts=pair) for pair in zip(TEXTS, TEXTS[::-1], strict=True)])
    np.testing.assert_allclose(
        answers["score"], [row["prediction"] for row in expected], atol=1e-5)


def test_tags():
    tagger = example(Kind.TAGGING)
    sentences = [text for text in TEXTS if text and len(text) < 50]
    answers = answer(tagger, [*sentences, ""])
    expected = tagger.predicted(
        [TaggedExample(key="", words=tuple(text.split())) for text in sentences])
    for line, (text, row) in enumerate(zip(sentences, expected, strict=True)):
        count = len(text.split())
        assert [word.decode() for word in answers["words"][line, :count]] == text.split()
        assert [tag.decode() for tag in answers["tags"][line, :count]] == row["prediction"]
        assert set(answers["words"][line, count:]) <= {b""}
    assert answers["scores"][-1].tolist() == [0.0] * answers["scores"].shape[1]
    tags = answer(tagger, ["a cafes " * 30])["tags"]
    assert tags.shape == (1, 60) and b"" not in tags


@pytest.mark.parametrize("answerability", [True, False])
def test_answers(answerability):
    changes = {} if answerability else {"task__answerability": False}
    model = example(Kind.QUESTION_ANSWERING, **changes)
    pairs = [("Who?", "The Cafés\nwon, in (1999)."), ("won in", "a b (a) " * 9), ("a", "")]
    answers = answer(model, *zip(*pairs, strict=True))
    expected = model.predicted([QuestionExample(
        key=str(number), question=question, context=context)
        for number, (question, context) in enumerate(pairs)])
    for line, row in enumerate(expected):
        assert answers["answer"][line].decode() == row["best_answer"]
        assert answers["start"][line] == row["start"]
        assert pairs[line][1][answers["start"][line]:answers["end"][line]] == row["best_answer"]
    assert ("no_answer_probability" in answers) == answerability


def test_a_threshold_withholds_answers():
    model = example(Kind.QUESTION_ANSWERING)
    columns = (["Who?"], ["The Cafés won."])
    logit = np.log(1.0 / answer(model, *columns)["no_answer_probability"][0] - 1.0)
    above, below = (answer(model.served(threshold=-logit + change), *columns)
                    for change in (0.1, -0.1))
    assert above["answer"][0] != b""
    assert (below["answer"][0], below["start"][0], below["end"][0]) == (b"", 0, 0)
    assert below["no_answer_probability"] == above["no_answer_probability"]


def test_token_ids_skip_the_tokenizer():
    classifier = example(Kind.CLASSIFICATION)
    tokens = classifier.row_encoder.encode(tf.constant(TEXTS))
    scores = classifier.signatures["token_ids"](
        input_ids=tokens.ids, token_type_ids=tokens.segment_ids,
        attention_mask=tf.cast(tokens.padding_mask, tf.int32))
    np.testing.assert_allclose(
        scores["probabilities"], answer(classifier, TEXTS)["probabilities"], atol=1e-6)


@pytest.fixture(scope="module")
def discriminator():
    return tiny_discriminator()


@pytest.fixture(scope="module")
def detector(discriminator):
    return Detector(discriminator.encoder, discriminator.head, RowEncoder(TEXT, 16))


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


def test_rows_beyond_a_chunk_change_nothing(detector, monkeypatch):
    texts = tf.constant(["a cafes " * 30, "The cafés won.", "b"])
    reader = example(Kind.QUESTION_ANSWERING).served()
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


@pytest.fixture(scope="module")
def signatures(discriminator):
    """Returns all signatures of all kinds, by the model and their names."""
    served = {
        "detector": Detector(InferenceEncoder(discriminator.encoder, tf.float32),
                             discriminator.head, RowEncoder(TEXT, 16)).signatures(),
        "plain": example(Kind.QUESTION_ANSWERING, task__ends_given_starts=False).signatures,
        "threshold": example(Kind.QUESTION_ANSWERING).served(threshold=0.0).signatures(),
        **{str(kind): example(kind).signatures for kind in Kind}}
    return {(model, name): signature for model, by_name in served.items()
            for name, signature in by_name.items()}


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


def test_token_ids_are_checked_except_in_padding():
    signature = example(Kind.CLASSIFICATION).signatures["token_ids"]

    def call(**changes):
        return signature(**{name: tf.constant(value, tf.int32)
                            for name, value in (GOOD | changes).items()})

    no_token = "attention_mask must have a 1 in every row"
    for changes, words in (
            ({"token_type_ids": [[0, 0, 0]]},
             "input_ids, token_type_ids, attention_mask must have one shape.*2 3.*1 3"),
            ({"attention_mask": [[1, 1, 1], [0, 0, 0]]}, no_token),
            ({name: [[], []] for name in GOOD}, no_token),
            ({name: [[1] * 17] * 2 for name in GOOD}, "the model reads rows of at most 16 tokens"),
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


def test_columns_of_different_lengths():
    for kind in (Kind.REGRESSION, Kind.QUESTION_ANSWERING):
        first, second = example(kind).served().columns
        with pytest.raises(tf.errors.InvalidArgumentError, match=(
                f"{first}, {second} must have as many texts each. Received:.*2.*3")):
            example(kind).signatures["serving_default"](
                **{first: tf.constant(["a"] * 2), second: tf.constant(["a"] * 3)})
