"""Which normalization a text wants: what stripping accents would change decides."""

import collections

import pytest

from electra_tf.text import scripts
from electra_tf.text.normalization import NFC, UNCASED

ENGLISH = ("“It isn’t easy,” said Zoë of the café – a naïve reader’s guess: 5 °C, π ≈ 3.14, "
           "Łódź and 東京 … ") + "plain words of an English text follow each other here " * 20


@pytest.mark.parametrize(("text", "normalization"), [
    (ENGLISH, UNCASED), ("", UNCASED), ("12 + 3 = 15 ❤️", UNCASED),
    ("春天来了，山上的花开了。", UNCASED), ("שלום עולם", UNCASED),
    ("Über den Dächern", NFC), ("Cafe\u0301 cre\u0300me", NFC), ("Съешь ещё этих", NFC),
    ("หมู่บ้าน", NFC), ("がんばって", NFC), ("한국어", NFC), ("नमस्ते", NFC), ("أهلا وسهلا", NFC)])
def test_what_would_change_decides(text, normalization):
    assert scripts.proposed(scripts.count_characters([text])) == normalization


def test_a_hundredth_of_the_letters_may_change():
    assert scripts.proposed({"a": 99, "é": 1}) == UNCASED
    assert scripts.proposed({"a": 98, "é": 1}) == NFC


def test_characters_of_words_count_as_often_as_the_words():
    counts = {"한국 a".encode(): 3, b"ab": 2}
    assert scripts.count_characters_of_words(counts) == collections.Counter(
        {"한": 3, "국": 3, " ": 3, "a": 5, "b": 2})
    assert scripts.count_characters(["aba", "é"]) == {"a": 2, "b": 1, "é": 1}


def test_the_reason_names_scripts_and_what_would_change():
    reason = scripts.described({"한": 60, "a": 40, "1": 50})
    assert reason == ("Hangul 60.0%, Latin 40.0% of the letters; stripping accents would change "
                      "60.00%, mostly Hangul")
    assert scripts.described({"1": 5}) == "no letters"
    assert scripts.described({"a": 5}).endswith("would change 0.00%")
