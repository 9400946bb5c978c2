"""Texts, words and windows of contexts become rows as the reference makes them."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.text import rows
from electra_tf.text.rows import RowEncoder, encode_texts, shortened
from electra_tf.text.words import pack_in_rows, split_as_tokenized, tokenize
from tests.support.few_words import TEXT, VOCABULARY
from tests.support.refusals import refused

ENCODER = RowEncoder(TEXT, 8)
CLS, SEP, UNK = VOCABULARY.cls_id, VOCABULARY.sep_id, VOCABULARY.unk_id
TEXTS = ["The cafés won.", "", "a b " * 20, "Who won in (1999)?", "xyz \x00 \ufffd"]


def one_token_at_a_time(lengths, limit):
    """What the reference does: the longer text loses its last token, the second if equal."""
    kept = list(lengths)
    while sum(kept) > limit:
        kept[0 if len(kept) == 1 or kept[0] > kept[1] else 1] -= 1
    return kept


def by_hand(texts, max_length):
    """Returns ids and segments of one row."""
    pieces = [ENCODER.tokenizer.tokenize(tf.constant([text])).to_list()[0] for text in texts]
    kept = one_token_at_a_time(map(len, pieces), max_length - 1 - len(texts))
    ids, segments = [CLS], [0]
    for number, (part, size) in enumerate(zip(pieces, kept, strict=True)):
        ids += [*part[:size], SEP]
        segments += [number] * (size + 1)
    return ids, segments


@pytest.mark.parametrize("max_length", [8, 32])
@pytest.mark.parametrize("columns", [[TEXTS], [TEXTS, TEXTS[::-1]], [TEXTS[2:3], TEXTS[2:3]]])
def test_texts_and_pairs(columns, max_length):
    tokens = RowEncoder(TEXT, max_length).encode(*map(tf.constant, columns))
    expected = [by_hand(texts, max_length) for texts in zip(*columns, strict=True)]
    assert tokens.ids.shape[1] == max(len(ids) for ids, _ in expected)
    for line, (ids, segments) in enumerate(expected):
        size = len(ids)
        np.testing.assert_array_equal(tokens.ids[line, :size], ids)
        np.testing.assert_array_equal(tokens.segment_ids[line, :size], segments)
        assert tokens.padding_mask[line].numpy().tolist() == [
            column < size for column in range(tokens.ids.shape[1])]
        assert np.all(tokens.ids[line, size:] == VOCABULARY.pad_id)


def test_an_encoder_of_one_segment_reads_single_texts_only():
    one_segment = RowEncoder(TEXT, 32, num_segments=1)
    np.testing.assert_array_equal(one_segment.encode(tf.constant(TEXTS)).ids,
                                  RowEncoder(TEXT, 32).encode(tf.constant(TEXTS)).ids)
    pieces = tf.ragged.constant([[7]], tf.int32)
    pair = tf.constant(["a"]), tf.constant(["b"])
    for encode in (lambda: one_segment.encode(*pair),
                   lambda: encode_texts([("a", "b")], one_segment),
                   lambda: one_segment.encode_in_windows(*pair, stride=4),
                   lambda: rows.encode_windows(one_segment, pieces, pieces, [0], stride=4)):
        with refused("type_vocab_size=1"):
            encode()


@pytest.mark.parametrize("columns", [[TEXTS], [TEXTS, TEXTS[::-1]]])
def test_lengths_are_those_of_rows_that_are_not_cut(monkeypatch, columns):
    monkeypatch.setattr(rows, "CHUNK", 2)
    texts = list(zip(*columns, strict=True))
    token_rows, lengths = encode_texts(texts, RowEncoder(TEXT, 8))
    assert lengths.tolist() == [len(by_hand(part, 1000)[0]) for part in texts]
    assert [len(row.ids) for row in token_rows] == [
        len(by_hand(part, 8)[0]) for part in texts]


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 9])
def test_shortening_is_what_taking_one_token_at_a_time_gives(limit):
    sizes = [(first, second) for first in range(9) for second in range(9)]
    kept = shortened([tf.constant(column) for column in zip(*sizes, strict=True)], limit)
    assert list(zip(*(part.numpy().tolist() for part in kept), strict=True)) == [
        tuple(one_token_at_a_time(pair, limit)) for pair in sizes]


def covering(pieces, room, stride):
    """First and one past the last piece of every window."""
    spans = [(0, min(room, pieces))]
    while spans[-1][1] < pieces:
        first = spans[-1][0] + min(stride, room)
        spans.append((first, min(first + room, pieces)))
    return spans


def best_window(spans, piece):
    """The window that shows most on a piece's poorer side; the longer, then the earlier one."""
    inside = [(min(piece - first, end - 1 - piece), end - first, -number)
              for number, (first, end) in enumerate(spans) if first <= piece < end]
    return -max(inside)[2]


@pytest.mark.parametrize("seed", range(4))
def test_windows_are_those_made_one_by_one(seed):
    draw = np.random.default_rng(seed)
    contexts = [draw.integers(5, 19, size).tolist() for size in (0, 1, 9, 33, 60)]
    queries = [draw.integers(5, 19, size).tolist() for size in (0, 3, 2, 4, 1, 2, 3)]
    context_of = [3, 3, 0, 4, 1, 2, 4]  # Some questions share a context.
    max_length, stride = 16, int(draw.choice([1, 4, 50]))
    tokens, parts = rows.encode_windows(
        RowEncoder(TEXT, max_length), tf.ragged.constant(queries, tf.int32),
        tf.ragged.constant(contexts, tf.int32), tf.constant(context_of), stride=stride)
    line = piece = 0
    for number, (query, chosen) in enumerate(zip(queries, context_of, strict=True)):
        context = contexts[chosen]
        spans = covering(len(context), max_length - 3 - len(query), stride)
        for window, (first, end) in enumerate(spans):
            ids = [CLS, *query, SEP, *context[first:end], SEP]
            assert tokens.ids[line, :len(ids)].numpy().tolist() == ids
            assert int(tf.reduce_sum(tf.cast(tokens.padding_mask[line], tf.int32))) == len(ids)
            assert tokens.segment_ids[line, :len(ids)].numpy().tolist() == (
                [0] * (len(query) + 2) + [1] * (end - first + 1))
            assert [int(part[line]) for part in (
                parts.example, parts.first, parts.sizes, parts.position)] == [
                number, first, end - first, len(query) + 2]
            assert parts.is_best[piece:piece + end - first].numpy().tolist() == [
                best_window(spans, index) == window for index in range(first, end)]
            line, piece = line + 1, piece + end - first
    assert line == len(parts.example)


@pytest.mark.parametrize("stride", [1, 4, 50])
@pytest.mark.parametrize("columns", [1, 2])
def test_windows_slide_over_the_longer_text(columns, stride):
    draw = np.random.default_rng(stride)
    texts = [" ".join(draw.choice(["a", "the", "cafe", "won"], size))
             for size in (0, 40, 1, 12, 13, 5, 7, 30)]
    pairs = [*itertools.product(texts, repeat=columns)]
    tokens, example, lengths = RowEncoder(TEXT, 16).encode_in_windows(
        *map(tf.constant, zip(*pairs, strict=True)), stride=stride)
    expected = []
    for number, pair in enumerate(pairs):
        pieces = [[VOCABULARY.ids[word] for word in text.split()] for text in pair]
        kept = one_token_at_a_time(map(len, pieces), 15 - columns)
        longer = max(range(columns), key=lambda column: (len(pieces[column]), column))
        for first, end in covering(len(pieces[longer]), max(kept[longer], 1), stride):
            shown = [part[first:end] if column == longer else part[:kept[column]]
                     for column, part in enumerate(pieces)]
            expected.append((number, [CLS, *(token for part in shown for token in (*part, SEP))]))
    assert [(int(number), ids[padding_mask].tolist()) for number, ids, padding_mask in zip(
        example, tokens.ids.numpy(), tokens.padding_mask.numpy(), strict=True)] == expected
    assert lengths.numpy().tolist() == [
        sum(len(text.split()) for text in pair) + 1 + columns for pair in pairs]


def test_head_and_tail_are_128_and_382_of_510_tokens():
    texts = tf.ragged.constant([range(1000), range(510), range(511), range(7), []], tf.int32)
    kept = rows.first_and_last_values(texts, tf.constant([510, 510, 510, 5, 0])).to_list()
    assert kept == [[*range(128), *range(618, 1000)], [*range(510)],
                    [*range(128), *range(129, 511)], [0, 1, 4, 5, 6], []]


def test_spaces_separate_words_and_nothing_else_does():
    words = tokenize(ENCODER, tf.strings.split(["The  cafés, won.", "", " a "]))
    assert [[word.decode() for word in row] for row in words.texts.to_list()] == [
        ["The", "cafés,", "won."], [], ["a"]]
    assert [[VOCABULARY.tokens[index] for index in row] for row in words.pieces.to_list()] == [
        ["the"], ["cafe", "##s", "[UNK]"], ["won", "."], ["a"]]


def test_punctuation_is_a_word_for_the_detector():
    words = split_as_tokenized(ENCODER, tf.constant(["The Cafés(1999)", "", "\u200b", "bc 世界"]))
    assert [[word.decode() for word in row] for row in words.texts.to_list()] == [
        ["The", "Cafés", "(", "1999", ")"], [], [], ["bc", "世", "界"]]
    assert [len(pieces) for pieces in words.pieces.to_list()] == [1, 2, 1, 1, 1, 2, 1, 1]


def rows_by_hand(sentences, pieces_of):
    """Returns ids and first pieces of rows that take a word after the other, as many as fit."""
    rows = []
    for sentence in sentences:
        ids, columns = [], []
        for word in sentence.split(" "):
            if len(ids) + len(pieces_of[word]) > 6:
                rows.append((ids, columns))
                ids, columns = [], []
            columns = [*columns, 1 + len(ids)]
            ids = [*ids, *pieces_of[word]]
        rows.append((ids, columns))
    return [([CLS, *ids, SEP], columns) for ids, columns in rows]


@tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
def rows_in_graph(sentences):
    return pack_in_rows(ENCODER, tokenize(ENCODER, tf.strings.split(sentences)))


@pytest.mark.parametrize("batch", [1, 7, 300])
def test_long_sentences_have_the_rows_that_they_have_alone(batch):
    draw = np.random.default_rng(batch)
    words = ["a", "the", "cafes", "bc", "(1999)", "\u200b", "(" * 9]
    pieces_of = {word: (ENCODER.tokenizer.tokenize(tf.constant([word])).to_list()[0] or [UNK])[:6]
                 for word in words}
    sentences = [" ".join(draw.choice(words, size)) for size in draw.integers(1, 60, 300)]
    sentences = sentences[:40] if batch == 1 else sentences
    rows_of_words = []
    for number in range(0, len(sentences), batch):
        rows = rows_in_graph(tf.constant(sentences[number:number + batch]))
        first = rows.first_piece.numpy()
        rows_of_words += [(ids[mask].tolist(), first[first[:, 0] == line, 1].tolist())
                          for line, (ids, mask) in enumerate(zip(
                              rows.tokens.ids.numpy(), rows.tokens.padding_mask.numpy(),
                              strict=True))]
    assert rows_of_words == rows_by_hand(sentences, pieces_of)


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_no_words_make_no_rows(texts):
    texts = tf.constant(texts, tf.string)
    for words in (tokenize(ENCODER, tf.strings.split(texts)), split_as_tokenized(ENCODER, texts)):
        rows = pack_in_rows(ENCODER, words)
        assert words.texts.nrows() == texts.shape[0]
        assert rows.tokens.ids.shape[0] == 0
        assert rows.first_piece.shape == (0, 2)
