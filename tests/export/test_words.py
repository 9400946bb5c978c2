"""Words keep their order, their spelling and their pieces, however long the text."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.export.texts import Texts
from electra_tf.export.words import in_rows, split_as_tokenized, split_at_spaces
from electra_tf.tasks.encoding import ExampleEncoder
from electra_tf.tasks.examples import TaggedExample
from tests.export.served_models import TOKENIZER, VOCABULARY

TEXTS = Texts(TOKENIZER, VOCABULARY, 8)
CLS, SEP, UNK = VOCABULARY.cls_id, VOCABULARY.sep_id, VOCABULARY.unk_id


def words_of(tokens):
    return [VOCABULARY.tokens[index] for index in tokens]


def test_spaces_separate_words_and_nothing_else_does():
    words = split_at_spaces(TEXTS, tf.constant(["The  cafés, won.", "", " a "]))
    assert [[word.decode() for word in row] for row in words.texts.to_list()] == [
        ["The", "cafés,", "won."], [], ["a"]]
    assert [words_of(pieces) for pieces in words.pieces.to_list()] == [
        ["the"], ["cafe", "##s", "[UNK]"], ["won", "."], ["a"]]


def test_a_word_of_which_nothing_is_left_is_unknown():
    words = split_at_spaces(TEXTS, tf.constant(["a \u200b b"]))
    assert words.pieces.to_list() == [[VOCABULARY.ids["a"]], [UNK], [VOCABULARY.ids["b"]]]


def test_punctuation_is_a_word_for_the_detector():
    words = split_as_tokenized(TEXTS, tf.constant(["The Cafés(1999)", "", "\u200b", "bc 世界"]))
    assert [[word.decode() for word in row] for row in words.texts.to_list()] == [
        ["The", "Cafés", "(", "1999", ")"], [], [], ["bc", "世", "界"]]
    assert [len(pieces) for pieces in words.pieces.to_list()] == [1, 2, 1, 1, 1, 2, 1, 1]


def test_short_sentences_are_trainings_rows():
    sentences = ["The cafés won .", "a", "b in ( 1999 )"]
    rows = in_rows(TEXTS, split_at_spaces(TEXTS, tf.constant(sentences)))
    expected, _ = ExampleEncoder(TOKENIZER, VOCABULARY, 8).tagged(
        [TaggedExample(key="", words=tuple(text.split())) for text in sentences], ["O"])
    places = rows.first_piece.numpy()
    for line, row in enumerate(expected):
        np.testing.assert_array_equal(rows.tokens.ids[line, :len(row.ids)], row.ids)
        np.testing.assert_array_equal(places[places[:, 0] == line, 1], row.targets["first_piece"])


@tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
def rows_in_graph(sentences):
    return in_rows(TEXTS, split_at_spaces(TEXTS, sentences))


@pytest.mark.parametrize("batch", [1, 7, 2000])
def test_long_sentences_are_trainings_rows_whatever_stands_beside_them(batch):
    draw = np.random.default_rng(batch)
    words = ["a", "the", "cafes", "bc", "(1999)", "\u200b", "(" * 9]
    sentences = [" ".join(draw.choice(words, size)) for size in draw.integers(1, 60, 2000)]
    expected, _ = ExampleEncoder(TOKENIZER, VOCABULARY, 8).tagged(
        [TaggedExample(key="", words=tuple(text.split(" "))) for text in sentences], ["O"])
    first_row = 0
    for number in range(0, 2000 if batch > 1 else 100, batch):
        rows = rows_in_graph(tf.constant(sentences[number:number + batch]))
        count = rows.tokens.ids.shape[0]
        trained = expected[first_row:first_row + count]
        assert [ids[mask].tolist() for ids, mask in zip(
            rows.tokens.ids.numpy(), rows.tokens.valid.numpy(), strict=True)] == [
            row.ids.tolist() for row in trained]
        places = np.concatenate([np.stack([np.full(len(columns), line), columns], axis=1)
                                 for line, columns in enumerate(
                                     row.targets["first_piece"] for row in trained)])
        np.testing.assert_array_equal(rows.first_piece, places)
        first_row += count
    assert batch == 1 or first_row == len(expected)


@pytest.mark.parametrize("seed", range(5))
def test_a_long_text_becomes_rows_without_a_word_cut_or_lost(seed):
    draw = np.random.default_rng(seed)
    sentences = [" ".join(draw.choice(["a", "the", "cafes", "bc", "(1999)"], size))
                 for size in (0, 40, 3, 17)]
    words = split_at_spaces(TEXTS, tf.constant(sentences))
    rows = in_rows(TEXTS, words)
    ids, valid = rows.tokens.ids.numpy(), rows.tokens.valid.numpy()
    pieces = [piece for word in words.pieces.to_list() for piece in word]
    assert [index for row, mask in zip(ids, valid, strict=True) for index in row[mask][1:-1]] == (
        pieces)
    assert ids.shape[1] <= 8
    assert np.all(ids[:, 0] == CLS)
    for (line, column), word in zip(rows.first_piece.numpy(), words.pieces.to_list(), strict=True):
        assert ids[line, column:column + len(word)].tolist() == word


def test_a_word_longer_than_a_row_loses_its_end():
    words = split_at_spaces(TEXTS, tf.constant(["(((((((((((( a"]))
    assert [len(word) for word in words.pieces.to_list()] == [6, 1]
    assert in_rows(TEXTS, words).first_piece.numpy().tolist() == [[0, 1], [1, 1]]


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_no_words_make_no_rows(texts):
    for split in (split_at_spaces, split_as_tokenized):
        words = split(TEXTS, tf.constant(texts, tf.string))
        rows = in_rows(TEXTS, words)
        assert words.texts.nrows() == len(texts)
        assert rows.tokens.ids.shape[0] == 0
        assert rows.first_piece.shape == (0, 2)
