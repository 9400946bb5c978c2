"""Tokens, ids and offsets are those of tokenizers 0.23.3 (BertWordPieceTokenizer, lower case)."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import electra_tf
from electra_tf.text.vocabulary import SPECIAL_TOKENS
from tests.support.refusals import refused

TEXTS = ["Thé  chef cooked.", "😀 the\u00a0Te\u0301xt"]
IDS = [[2, 5, 6, 8, 9, 12, 3], [2, 1, 5, 13, 3, 0, 0]]
OFFSETS = [[(0, 0), (0, 3), (5, 9), (10, 14), (14, 16), (16, 17), (0, 0)],
           [(0, 0), (0, 1), (2, 5), (6, 11), (0, 0), (0, 0), (0, 0)]]
PAIR = [("the chef ate the meal", "Cooked text.")]
PAIR_IDS, PAIR_SEGMENTS = [[2, 5, 6, 7, 3, 8, 9, 3]], [[0, 0, 0, 0, 0, 1, 1, 1]]
PAIR_OFFSETS = [[(0, 0), (0, 3), (4, 8), (9, 12), (0, 0), (0, 4), (4, 6), (0, 0)]]


def layer(electra, **changes):
    return electra_tf.ElectraTokenizer(**electra.tokenizer.get_config() | changes)


def test_texts_have_ids_masks_and_offsets(electra):
    outputs = electra.tokenizer(TEXTS, return_offsets_mapping=True)
    np.testing.assert_array_equal(outputs["input_ids"], IDS)
    np.testing.assert_array_equal(outputs["attention_mask"], np.array(IDS) > 0)
    np.testing.assert_array_equal(outputs["offset_mapping"], OFFSETS)
    np.testing.assert_array_equal(electra.tokenizer(TEXTS)["input_ids"], IDS)


@pytest.mark.parametrize(("text", "offsets"), [
    ("cafe\u0301s cafe\u0301", [(0, 4), (5, 6), (7, 11)]),
    ("ca\u200bfe\u0301\u200bs\u00ad e\u0301\u0302!", [(0, 5), (7, 8), (10, 11), (13, 14)]),
    ("\u0301cafe \u0301", [(1, 5)]), ("e\u0301e\u0301e x\u0301", [(0, 1), (2, 3), (4, 5), (6, 7)]),
    ("I\u0307stanbul İstanbul", [(0, 1), (2, 9), (10, 11), (11, 18)]),
    ("लड़की की", [(0, 5), (6, 7), (7, 8)])])
def test_offsets_leave_out_stripped_accents_and_removed_characters(text, offsets):
    """The values are those of transformers 5.23's BertTokenizerFast."""
    tokenizer = electra_tf.ElectraTokenizer(
        [*SPECIAL_TOKENS, "cafe", "##s", "i", "##stanbul", "e", "##e", "क", "##ी"], {})
    outputs = tokenizer([text], return_offsets_mapping=True)
    np.testing.assert_array_equal(outputs["offset_mapping"][0, 1:-1], offsets)


def test_the_longer_text_of_a_pair_is_cut_with_a_warning(electra):
    with pytest.warns(UserWarning, match="1 of 1 rows are longer than max_length=8 tokens"):
        outputs = layer(electra, max_length=8)(PAIR, return_offsets_mapping=True)
    np.testing.assert_array_equal(outputs["input_ids"], PAIR_IDS)
    np.testing.assert_array_equal(outputs["token_type_ids"], PAIR_SEGMENTS)
    np.testing.assert_array_equal(outputs["offset_mapping"], PAIR_OFFSETS)


def test_rows_of_max_length_have_a_static_shape_in_data_sets(electra):
    tokenizer = layer(electra, max_length=8, padding="max_length")
    data = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2).map(
        lambda texts: tokenizer(texts, return_offsets_mapping=True))
    assert {name: spec.shape.as_list()[1:] for name, spec in data.element_spec.items()} == {
        **dict.fromkeys(("input_ids", "token_type_ids", "attention_mask"), [8]),
        "offset_mapping": [8, 2]}
    [outputs] = data
    np.testing.assert_array_equal(outputs["input_ids"], np.pad(IDS, [(0, 0), (0, 1)]))
    np.testing.assert_array_equal(outputs["offset_mapping"][:, :7], OFFSETS)


def test_a_model_with_a_tokenizer_is_saved(electra, tmp_path):
    texts = tf_keras.Input([], dtype=tf.string)
    tf_keras.Model(texts, electra.tokenizer(texts)).save(tmp_path / "model.keras")
    loaded = tf_keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(tf.constant(TEXTS))["input_ids"], IDS)
    np.testing.assert_allclose(electra.encoder(electra.tokenizer(TEXTS)), electra.encoder(TEXTS))


def test_tokens_and_ids_are_converted(electra):
    tokenizer = electra.tokenizer
    assert tokenizer.tokenize(TEXTS[0]) == ["the", "chef", "cook", "##ed", "."]
    assert tokenizer.convert_ids_to_tokens(IDS[1]) == [
        "[CLS]", "[UNK]", "the", "text", "[SEP]", "[PAD]", "[PAD]"]
    assert tokenizer.convert_ids_to_tokens([]) == []


@pytest.mark.parametrize(("attempt", "words"), [
    (lambda tokenizer: tokenizer([1, 2]), "strings"), (lambda tokenizer: tokenizer([None]), "None"),
    (lambda tokenizer: tokenizer(("a", "b")), "ambiguous"),
    (lambda tokenizer: tokenizer.convert_ids_to_tokens([99]), "from 0 to 15"),
    *((lambda tokenizer, change=change: type(tokenizer)(**tokenizer.get_config() | change),
       min(change)) for change in ({"max_length": 2}, {"padding": "left"}))])
def test_other_inputs_and_options_of_a_tokenizer_are_refused(electra, attempt, words):
    with refused(words):
        attempt(electra.tokenizer)
