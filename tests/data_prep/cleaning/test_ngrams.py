"""Equal n-grams have equal hashes, and documents that nearly equal an earlier one go."""

import hashlib
import random

import numpy as np
import pytest

from data_prep.cleaning import ngrams
from data_prep.cleaning.ngrams import ngram_hashes, text_hash, word_hashes, words_of


def text_of(seed, words=400):
    generator = random.Random(seed)
    return " ".join(f"w{generator.randrange(5000)}" for _ in range(words))


def changed(text, every):
    return " ".join(f"other{place}" if place % every == 0 else word
                    for place, word in enumerate(text.split()))


def test_copies_go_and_the_first_stays(clean):
    first, other = text_of(1), text_of(2)
    documents = [[first], [other], [changed(first, 200)], [first], [changed(first, 3)], [other]]
    found, tally = clean(documents, drop_near_duplicates=True)
    assert found["train"] == [[first], [other], [], [], [changed(first, 3)], []]
    assert tally["near_duplicate_documents"] == tally["lines_of_dropped_documents"] == 3


def test_the_index_of_datasketch_finds_the_same_copies():
    datasketch = pytest.importorskip("datasketch")
    generator = random.Random(5)
    texts = [text_of(seed, 60) for seed in range(40)]
    texts += [changed(generator.choice(texts), generator.choice([3, 10, 30])) for _ in range(80)]
    signatures = np.stack([ngrams.signature(text, 128) for text in texts])
    index = datasketch.MinHashLSH(threshold=0.6, num_perm=128)
    sketches, expected = {}, []
    for number, values in enumerate(signatures):
        sketch = datasketch.MinHash(hashvalues=values, scheme="affine32")
        expected.append(any(sketches[other].jaccard(sketch) >= 0.6
                            for other in index.query(sketch)))
        if not expected[-1]:
            index.insert(number, sketch)
            sketches[number] = sketch
    assert ngrams.copies(np.split(signatures, [7, 7, 50]), 0.6).tolist() == expected
    assert 10 < sum(expected) < 80


def test_a_document_goes_with_all_its_parts(clean):
    lines = [text_of(seed, 30) for seed in range(6)]
    for unit_bytes in (1, 10**9):
        found, tally = clean([lines, [*lines[:2], "its end differs"]], part_lines=2,
                             unit_bytes=unit_bytes, drop_near_duplicates=True)
        assert found["train"] == [lines, []]
        assert (tally["near_duplicate_documents"], tally["lines_of_dropped_documents"]) == (1, 3)


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
