"""Words keep their order, their spelling and their pieces, however long the text."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.text.rows import RowEncoder
from electra_tf.text.words import pack_in_rows, split_as_tokenized, split_at_spaces
from tests.support.few_words import TEXT, VOCABULARY

TEXTS = RowEncoder(TEXT, 8)
CLS, SEP, UNK = VOCABULARY.cls_id, VOCABULARY.sep_id, VOCABULARY.unk_id


def words_of(tokens):
    return [VOCABULARY.tokens[index] for index in tokens]


def test_spaces_separate_words_and_nothing_else_does():
    words = split_at_spaces(TEXTS, tf.constant(["The  cafés, won.", "", " a "]))
    assert [[word.decode() for word in row] for row in words.texts.to_list()] == [
        ["The", "cafés,", "won."], [], ["a"]]
    assert [words_of(pieces) for pieces in words.pieces.to_list()] == [
        ["the"], ["cafe", "##s", "[UNK]"], ["won", "."], ["a"]]


def test_punctuation_is_a_word_for_the_detector():
    words = split_as_tokenized(TEXTS, tf.constant(["The Cafés(1999)", "", "\u200b", "bc 世界"]))
    assert [[word.decode() for word in row] for row in words.texts.to_list()] == [
        ["The", "Cafés", "(", "1999", ")"], [], [], ["bc", "世", "界"]]
    assert [len(pieces) for pieces in words.pieces.to_list()] == [1, 2, 1, 1, 1, 2, 1, 1]


def by_hand(sentences, pieces_of):
    """Returns ids and first pieces of rows that take a word after the other, as many as fit."""
    rows = []
    for sentence in sentences:
        ids, places = [], []
        for word in sentence.split(" "):
            pieces = pieces_of[word]
            if len(ids) + len(pieces) > 6:
                rows.append((ids, places))
                ids, places = [], []
            places = [*places, 1 + len(ids)]
            ids = [*ids, *pieces]
        rows.append((ids, places))
    return [([CLS, *ids, SEP], places) for ids, places in rows]


@tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
def rows_in_graph(sentences):
    return pack_in_rows(TEXTS, split_at_spaces(TEXTS, sentences))


@pytest.mark.parametrize("batch", [1, 7, 300])
def test_long_sentences_have_the_rows_that_they_have_alone(batch):
    draw = np.random.default_rng(batch)
    words = ["a", "the", "cafes", "bc", "(1999)", "\u200b", "(" * 9]
    pieces_of = {word: (TEXTS.tokenizer.tokenize(tf.constant([word])).to_list()[0] or [UNK])[:6]
                 for word in words}
    sentences = [" ".join(draw.choice(words, size)) for size in draw.integers(1, 60, 300)]
    sentences = sentences[:40] if batch == 1 else sentences
    rows_of_words = []
    for number in range(0, len(sentences), batch):
        rows = rows_in_graph(tf.constant(sentences[number:number + batch]))
        places = rows.first_piece.numpy()
        rows_of_words += [(ids[mask].tolist(), places[places[:, 0] == line, 1].tolist())
                  for line, (ids, mask) in enumerate(zip(
                      rows.tokens.ids.numpy(), rows.tokens.valid.numpy(), strict=True))]
    assert rows_of_words == by_hand(sentences, pieces_of)


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_no_words_make_no_rows(texts):
    for split in (split_at_spaces, split_as_tokenized):
        words = split(TEXTS, tf.constant(texts, tf.string))
        rows = pack_in_rows(TEXTS, words)
        assert words.texts.nrows() == len(texts)
        assert rows.tokens.ids.shape[0] == 0
        assert rows.first_piece.shape == (0, 2)
