"""The learned vocabulary is well-formed, and the same however the words were counted."""

import collections

import pytest
import tensorflow as tf

from data_prep import vocabulary_learner
from data_prep.documents import DocumentPart, lines_of, parse_plain_text
from data_prep.local_runner import LocalRunner
from data_prep.sources.registry import open_source
from data_prep.work_units import WorkUnit
from electra_tf.text.normalization import UNCASED, Normalization, TextSettings
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import SPECIAL_TOKENS


@pytest.fixture(scope="module")
def counts():
    return vocabulary_learner.count_corpus_words(
        open_source("embedded:python"), UNCASED, LocalRunner())


def test_a_vocabulary_has_its_size_and_covers_its_text(counts):
    learned = vocabulary_learner.learn(counts, 1000)
    assert learned.size == 1000 and learned.tokens[:5] == SPECIAL_TOKENS
    reordered = collections.Counter(dict(reversed(list(counts.items()))))
    assert vocabulary_learner.learn(reordered, 1000) == learned
    text = open_source("embedded:python")
    lines = [line for line in lines_of(text.documents(), text.parse) if line]
    tokenizer = Tokenizer(TextSettings(vocabulary=learned))
    ids = tokenizer.tokenize(tf.constant(lines)).flat_values.numpy()
    assert (ids == learned.unk_id).mean() < 0.001
    assert len(ids) / counts.total() < 1.44  # tensorflow-text's learner: 1.441.
    assert {"the", "python", "function"} <= set(learned.tokens)


def test_merges_are_those_of_the_paper():
    """Sennrich et al. (2016), algorithm 1 and its toy text; a word's end isn't marked here."""
    words = {b"low": 5, b"lower": 2, b"newest": 6, b"widest": 3}
    pieces = vocabulary_learner.learn(words, 24 + len(SPECIAL_TOKENS)).tokens[5:]
    # e s: 9, es t: 9; l o and o w: 7, and "##o" comes before "l"; l ow: 7.
    assert set(pieces[:11]) == {
        "##e", "##w", "##s", "##t", "l", "##o", "n", "##i", "##d", "w", "##r"}
    assert pieces[11:15] == ("##es", "##est", "##ow", "low")


def test_counts_after_many_merges_are_those_of_a_fresh_count(counts):
    words = dict(counts.most_common(400))
    pieces = vocabulary_learner.learn(words, 250 + len(SPECIAL_TOKENS)).tokens[5:]
    merges = [piece for piece in pieces if len(piece.removeprefix("##")) > 1]
    assert merges == plain_merges(words, len(merges))


def plain_merges(words, size):
    """Counts all pairs of all words anew for every merge."""
    split = [([word[:1], *(f"##{letter}" for letter in word[1:])], count)
             for word, count in ((word.decode(), count) for word, count in words.items())]
    characters = collections.Counter()
    for pieces, count in split:
        for piece in pieces:
            characters[piece] += count
    ranked = sorted(characters, key=lambda piece: (-characters[piece], piece))
    merged = []
    while len(merged) < size:
        pairs = collections.Counter()
        for pieces, count in split:
            for pair in zip(pieces, pieces[1:], strict=False):
                pairs[pair] += count
        numbers = {piece: number for number, piece in enumerate([*ranked, *merged])}
        first, second = min(pairs, key=lambda pair: (-pairs[pair], *(numbers[p] for p in pair)))
        piece = first + second.removeprefix("##")
        if piece not in numbers:
            merged.append(piece)
        for pieces, _ in split:
            for index in range(len(pieces) - 1):
                if pieces[index:index + 2] == [first, second]:
                    pieces[index:index + 2] = [piece]
    return merged


def test_no_piece_is_too_long_for_the_tokenizer():
    words = {("\u0e01" * 99).encode(): 30, ("\U00020000" * 7 + "ab" * 60).encode(): 9}
    vocabulary = vocabulary_learner.learn(words, 500)
    assert 30 < max(len(token.removeprefix("##")) for token in vocabulary.tokens) <= 50
    Tokenizer(TextSettings(vocabulary=vocabulary))


def test_reserved_tokens_follow_the_special_ones(counts):
    learned = vocabulary_learner.learn(counts, 500, reserved_tokens=20)
    assert learned.size == 500
    assert learned.tokens[5:25] == tuple(f"[unused{number}]" for number in range(20))
    tokenizer = Tokenizer(TextSettings(vocabulary=learned))
    typed = tokenizer.tokenize(tf.constant(["a word [unused3] here"]))
    assert not set(range(5, 25)) & set(typed.flat_values.numpy().tolist())


def test_words_are_counted_as_the_tokenizer_sees_them():
    parts = [DocumentPart(content=text.encode(), key=0) for text in ("Café, CAFÉ!", "x cafe")]
    unit = WorkUnit(split="train", name="train-00000", parts=tuple(parts), parse=parse_plain_text)
    assert vocabulary_learner.count_words(unit, UNCASED) == {b"cafe": 3, b",": 1, b"!": 1, b"x": 1}
    assert vocabulary_learner.count_words(unit, Normalization.of(False))["Café".encode()] == 1


def test_the_rarest_words_are_dropped_when_there_are_too_many():
    counts = collections.Counter(a=10, b=2, c=1, d=3, e=1)
    assert vocabulary_learner.without_rarest(counts, 5) == counts
    assert vocabulary_learner.without_rarest(counts, 2) == dict(a=10, d=3)
