"""Nothing asked gets nothing; what can't be answered is refused in words of ours."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.export.refusals import TOKEN_INPUTS
from electra_tf.tasks.examples import Kind
from tests.export.served_models import Example, tiny_detector

GOOD = {"input_ids": [[2, 5, 3], [2, 3, 0]], "token_type_ids": [[0, 0, 0]] * 2,
        "attention_mask": [[1, 1, 1], [1, 1, 0]]}


def empty_answers(served):
    """Asks every signature for nothing."""
    for name, signature in served.signatures().items():
        inputs = ({name: tf.zeros([0, 0], tf.int32) for name in TOKEN_INPUTS}
                  if name == "token_ids" else
                  {name: tf.zeros([0], tf.string) for name in served.columns})
        found = signature(**inputs)
        yield name, found, signature.structured_outputs


@pytest.mark.parametrize(("kind", "changes"), [
    *((kind, {}) for kind in Kind), (Kind.TAGGING, {"task__feature_based": True}),
    (Kind.QUESTION_ANSWERING, {"task__ends_given_starts": False})])
def test_no_rows_get_no_answers(kind, changes):
    for name, found, expected in empty_answers(Example(kind, **changes).served()):
        assert {key: (value.shape[0], value.shape.rank) for key, value in found.items()} == {
            key: (0, value.shape.rank) for key, value in expected.items()}, name


def test_the_detector_says_nothing_of_no_texts():
    for name, found, _ in empty_answers(tiny_detector()):
        assert {value.shape[0] for value in found.values()} == {0}, name


@pytest.mark.parametrize("text", [["", " "], ["\u200b"], [""]])
def test_texts_without_words_have_none(text):
    if text[0] == "\u200b":
        assert Example(Kind.TAGGING).served().answer(tf.constant(text))["tags"].shape == (1, 1)
    else:
        tags = Example(Kind.TAGGING).served().answer(tf.constant(text))["tags"]
        assert tags.shape == (len(text), 0)
    found = tiny_detector().answer(tf.constant(text))
    assert found["words"].shape == found["replaced_probability"].shape == (len(text), 0)


@pytest.fixture(scope="module")
def token_ids():
    function = Example(Kind.CLASSIFICATION).served().signatures()["token_ids"]
    return lambda **changes: function(**{
        name: tf.constant(value, tf.int32) for name, value in (GOOD | changes).items()})


@pytest.mark.parametrize(("changes", "words"), [
    ({"token_type_ids": [[0, 0, 0]]},
     r"input_ids, token_type_ids, attention_mask must have one shape\. Received:.*2 3.*1 3"),
    ({"attention_mask": [[1, 1], [1, 1]]}, "must have one shape"),
    ({"attention_mask": [[1, 1, 1], [0, 0, 0]]}, "attention_mask must have a 1 in every row"),
    ({"attention_mask": [[0, 0, 0], [0, 0, 0]]}, "attention_mask must have a 1 in every row"),
    ({name: [[], []] for name in GOOD}, "attention_mask must have a 1 in every row"),
    ({name: [[1] * 17] * 2 for name in GOOD}, "the model reads rows of at most 16 tokens"),
    ({"input_ids": [[2, 19, 3], [2, 3, 0]]}, "input_ids must be from 0 to 18"),
    ({"input_ids": [[2, -1, 3], [2, 3, 0]]}, "input_ids must be from 0 to 18"),
    ({"token_type_ids": [[0, 2, 0], [0, 0, 0]]}, "token_type_ids must be from 0 to 1"),
])
def test_token_ids_that_the_network_cant_read(token_ids, changes, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        token_ids(**changes)


def test_what_stands_in_padding_is_nobodys_business(token_ids):
    other = token_ids(input_ids=[[2, 5, 3], [2, 3, -100]], token_type_ids=[[0, 0, 0], [0, 0, 9]])
    np.testing.assert_array_equal(other["probabilities"], token_ids()["probabilities"])


@pytest.mark.parametrize("kind", [Kind.REGRESSION, Kind.QUESTION_ANSWERING])
def test_columns_of_different_lengths(kind):
    served = Example(kind).served()
    first, second = served.columns
    with pytest.raises(tf.errors.InvalidArgumentError, match=(
            f"{first}, {second} must have as many texts each. Received:.*2.*3")):
        served.signatures()["serving_default"](
            **{first: tf.constant(["a"] * 2), second: tf.constant(["a"] * 3)})
