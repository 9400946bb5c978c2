"""Rows hold what the reference's features hold, and lose nothing unsaid."""

import numpy as np
import pytest

from electra_tf.tasks import encoding
from electra_tf.tasks.encoding import ExampleEncoder, shortened
from electra_tf.tasks.examples import TaggedExample, TextExample
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS = ("a", "b", "c", "##d", ".")
VOCABULARY = Vocabulary((*SPECIAL_TOKENS, *WORDS))
CLS, SEP, UNK = VOCABULARY.cls_id, VOCABULARY.sep_id, VOCABULARY.unk_id
A, B, C, D, DOT = (VOCABULARY.ids[word] for word in WORDS)


def encoder(max_length=16):
    return ExampleEncoder(Tokenizer(VOCABULARY), VOCABULARY, max_length)


def test_a_text_and_a_pair():
    rows = encoder().texts([TextExample(key="1", texts=("A cd.",), label="yes"),
                            TextExample(key="2", texts=("a", "b c"), label="no"),
                            TextExample(key="3", texts=("", "zz"))], ["no", "yes"])
    assert rows[0].ids.tolist() == [CLS, A, C, D, DOT, SEP]
    assert rows[0].segment_ids.tolist() == [0] * 6
    assert rows[1].ids.tolist() == [CLS, A, SEP, B, C, SEP]
    assert rows[1].segment_ids.tolist() == [0, 0, 0, 1, 1, 1]
    assert rows[2].ids.tolist() == [CLS, SEP, UNK, SEP]
    assert [int(row.targets["label"]) for row in rows] == [1, 0, 0]
    assert rows[0].ids.dtype == np.int32


def test_numbers_stay_numbers():
    (row,) = encoder().texts([TextExample(key="1", texts=("a",), label=3.8)])
    assert row.targets["label"] == np.float32(3.8)


def test_a_long_pair_loses_tokens_of_the_longer_text():
    (row,) = encoder(8).texts([TextExample(key="1", texts=("a a a a a a", "b b"), label="x")],
                              ["x"])
    assert row.ids.tolist() == [CLS, A, A, A, SEP, B, B, SEP]


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 9])
def test_shortening_is_what_taking_one_token_at_a_time_gives(limit):
    for first in range(8):
        for second in range(8):
            expected = [first, second]
            while sum(expected) > limit:
                expected[0 if expected[0] > expected[1] else 1] -= 1
            assert shortened([first, second], limit) == expected


def test_words_are_tagged_at_their_first_pieces():
    example = TaggedExample(key="1", words=("a", "cd", "\u200b", "b"), tags=("O", "X", "X", "O"))
    (row,), origins = encoder().tagged([example], ["O", "X"])
    assert row.ids.tolist() == [CLS, A, C, D, UNK, B, SEP]
    assert row.targets["first_piece"].tolist() == [1, 2, 4, 5]
    assert row.targets["tag"].tolist() == [0, 1, 1, 0]
    assert row.segment_ids.tolist() == [0] * 7
    assert origins == [(0, 0)]


def test_a_long_sentence_becomes_rows_that_hold_every_word_once():
    words = ("a", "cd", "cd", "b", "a")
    rows, origins = encoder(5).tagged(
        [TaggedExample(key="1", words=("b",)), TaggedExample(key="2", words=words)], ["O"])
    assert [row.ids.tolist() for row in rows] == [
        [CLS, B, SEP], [CLS, A, C, D, SEP], [CLS, C, D, B, SEP], [CLS, A, SEP]]
    assert origins == [(0, 0), (1, 0), (1, 2), (1, 4)]
    assert [len(row.targets["tag"]) for row in rows] == [1, 2, 2, 1]


def test_more_words_than_one_call_takes_are_all_there(monkeypatch):
    examples = [TaggedExample(key=str(number), words=("a", "cd") * number)
                for number in range(1, 9)]
    whole, origins = encoder(5).tagged(examples, ["O"])
    monkeypatch.setattr(encoding, "CHUNK", 7)
    parts, again = encoder(5).tagged(examples, ["O"])
    assert origins == again
    assert [row.ids.tolist() for row in whole] == [row.ids.tolist() for row in parts]


def test_no_sentences_make_no_rows():
    assert encoder().tagged([], ["O"]) == ([], [])
