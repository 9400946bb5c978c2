"""Hashes of words and n-grams: equal for equal words, at any place."""

import hashlib

import numpy as np

from data_prep.cleaning.word_ngrams import (
    ngram_hashes,
    row_hashes,
    text_hash,
    word_hashes,
    words_of,
)


def grams(text, n):
    return ngram_hashes(word_hashes(words_of(text)), n).tolist()


def test_a_text_has_the_hash_that_blake2b_gives():
    digest = hashlib.blake2b("für".encode(), digest_size=8).digest()
    assert text_hash("für") == int.from_bytes(digest, "little")
    assert word_hashes(["für"]).tolist() == [text_hash("für")]


def test_equal_ngrams_have_equal_hashes_wherever_they_stand():
    one, other = grams("a b c d e", 3), grams("x b, C: d y", 3)
    assert (len(one), len(other)) == (3, 3)
    assert one[1] == other[1]
    assert len({*one, *other}) == 5


def test_rows_have_equal_hashes_if_they_are_equal():
    rows = np.array([[1, 2, 3], [1, 2, 4], [1, 2, 3], [2, 1, 3]], np.uint32)
    found = row_hashes(rows)
    assert found[0] == found[2]
    assert len(set(found.tolist())) == 3
