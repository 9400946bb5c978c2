"""Nothing asked gets nothing; what can't be answered is refused in words of ours."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.tasks.examples import Kind
from tests.export.served_models import example, tiny_detector

GOOD = {"input_ids": [[2, 5, 3], [2, 3, 0]], "token_type_ids": [[0, 0, 0]] * 2,
        "attention_mask": [[1, 1, 1], [1, 1, 0]]}


def test_no_rows_get_no_answers():
    served = {"detector": tiny_detector().signatures(),
              "feature-based": example(Kind.TAGGING, task__feature_based=True).signatures,
              "plain": example(Kind.QUESTION_ANSWERING, task__ends_given_starts=False).signatures,
              **{str(kind): example(kind).signatures for kind in Kind}}
    for model, signatures in served.items():
        for name, signature in signatures.items():
            inputs = {spec.name: tf.zeros([0] * spec.shape.rank, spec.dtype)
                      for spec in signature.structured_input_signature[0]}
            found, expected = signature(**inputs), signature.structured_outputs
            assert {key: (value.shape[0], value.shape.rank) for key, value in found.items()} == {
                key: (0, value.shape.rank) for key, value in expected.items()}, (model, name)


def test_texts_without_words_have_none():
    for text, tagged in ((["", " "], 0), (["\u200b"], 1), ([""], 0)):
        tags = example(Kind.TAGGING).served().answer(tf.constant(text))["tags"]
        assert tags.shape == (len(text), tagged)
        found = tiny_detector().answer(tf.constant(text))
        assert found["words"].shape == found["replaced_probability"].shape == (len(text), 0)


@pytest.fixture(scope="module")
def token_ids():
    function = example(Kind.CLASSIFICATION).signatures["token_ids"]
    return lambda **changes: function(**{
        name: tf.constant(value, tf.int32) for name, value in (GOOD | changes).items()})


def test_token_ids_that_the_network_cant_read(token_ids):
    no_token = "attention_mask must have a 1 in every row"
    for changes, words in (
            ({"token_type_ids": [[0, 0, 0]]},
             "input_ids, token_type_ids, attention_mask must have one shape.*2 3.*1 3"),
            ({"attention_mask": [[1, 1], [1, 1]]}, "must have one shape"),
            ({"attention_mask": [[1, 1, 1], [0, 0, 0]]}, no_token),
            ({name: [[], []] for name in GOOD}, no_token),
            ({name: [[1] * 17] * 2 for name in GOOD}, "the model reads rows of at most 16 tokens"),
            ({"input_ids": [[2, 19, 3], [2, 3, 0]]}, "input_ids must be from 0 to 18"),
            ({"input_ids": [[2, -1, 3], [2, 3, 0]]}, "input_ids must be from 0 to 18"),
            ({"token_type_ids": [[0, 2, 0], [0, 0, 0]]}, "token_type_ids must be from 0 to 1")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            token_ids(**changes)


def test_what_stands_in_padding_is_nobodys_business(token_ids):
    other = token_ids(input_ids=[[2, 5, 3], [2, 3, -100]], token_type_ids=[[0, 0, 0], [0, 0, 9]])
    np.testing.assert_array_equal(other["probabilities"], token_ids()["probabilities"])


def test_columns_of_different_lengths():
    for kind in (Kind.REGRESSION, Kind.QUESTION_ANSWERING):
        first, second = example(kind).served().columns
        with pytest.raises(tf.errors.InvalidArgumentError, match=(
                f"{first}, {second} must have as many texts each. Received:.*2.*3")):
            example(kind).signatures["serving_default"](
                **{first: tf.constant(["a"] * 2), second: tf.constant(["a"] * 3)})
