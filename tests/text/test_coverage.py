"""Text that the tokenizer can't do justice to is told of, with the share and the fix."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.text import coverage
from electra_tf.text.normalization import NFC, UNCASED, TextSettings
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, "un", "##able", "!", "known"))
LETTERS = Vocabulary((*VOCABULARY.tokens, "я"))


def test_words_are_counted_not_pieces():
    texts = tf.constant(["Unable! known strange", "known"])
    ids = Tokenizer(TextSettings(vocabulary=VOCABULARY)).tokenize(texts)
    assert coverage.count_words(ids.flat_values.numpy(), VOCABULARY) == (5, 1)
    assert coverage.count_words(np.array([], np.int32), VOCABULARY) == (0, 0)
    assert coverage.count_changed(["abc", "한국어 text", "日本語", "", "Ünit é 5° “q”"]) == 5


ENGLISH = ("“It isn’t easy,” said Zoë of the café – a naïve reader’s guess: 5 °C, π ≈ 3.14, "
           "Łódź and 東京 … ") + "plain words of an English text follow each other here " * 20


@pytest.mark.parametrize(("text", "normalization"), [
    (ENGLISH, UNCASED), ("", UNCASED), ("12 + 3 = 15 ❤️", UNCASED),
    ("春天来了，山上的花开了。", UNCASED), ("שלום עולם", UNCASED),
    ("Über den Dächern", NFC), ("Cafe\u0301 cre\u0300me", NFC), ("Съешь ещё этих", NFC),
    ("หมู่บ้าน", NFC), ("がんばって", NFC), ("한국어", NFC), ("नमस्ते", NFC), ("أهلا وسهلا", NFC)])
def test_what_would_change_decides(text, normalization):
    assert coverage.propose_normalization(coverage.count_characters(text))[0] == normalization


def test_characters_of_words_count_as_often_as_the_words():
    assert coverage.propose_normalization({"a": 99, "é": 1})[0] == UNCASED
    assert coverage.propose_normalization({"a": 98, "é": 1})[0] == NFC
    counts = {"한국 a".encode(): 3, b"ab": 2}
    assert coverage.count_characters_of_words(counts) == collections.Counter(
        {"한": 3, "국": 3, " ": 3, "a": 5, "b": 2})
    assert coverage.count_characters("abaé") == {"a": 2, "b": 1, "é": 1}
