"""Words that became [UNK] are counted by the script that they are of."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.text.normalization import UNCASED, Normalization
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.unknown_words import UnknownScripts
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from electra_tf.text.word_scripts import scripts_of
from tests.text import nasty_lines

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, "un", "##able", "!", "known", "я"))


def counted(texts, vocabulary=VOCABULARY, normalization=UNCASED):
    rows = Tokenizer(vocabulary, normalization).tokenize(tf.constant(texts))
    counter = UnknownScripts(vocabulary, normalization)
    counter.add(texts, rows.flat_values.numpy(), rows.row_splits.numpy()[1:])
    assert sum(counter.counts.values()) == np.count_nonzero(
        rows.flat_values.numpy() == vocabulary.unk_id)
    return dict(counter.counts)


def test_unknown_words_are_told_from_known_ones_beside_them():
    assert counted(["Unable! дом known", "", "я known", "странный я strange? 7",
                    "unable 漢字"]) == {
        "Cyrillic": 2, "Latin": 1, "signs": 1, "digits": 1, "Han": 2}


def test_a_text_without_any_counts_nothing():
    assert counted(["known unable!", ""]) == {} == counted([""])


def test_a_word_that_is_too_long_is_one_unknown_word():
    assert counted([f"known {'б' * 201} known {'un' * 101}"]) == {"Cyrillic": 1, "Latin": 1}


def test_counts_add_up():
    counter = UnknownScripts(VOCABULARY, UNCASED)
    for _ in range(3):
        counter.add(["дом"], np.array([VOCABULARY.unk_id]), np.array([1]))
    assert counter.counts == {"Cyrillic": 3}


@pytest.mark.parametrize("normalization", [UNCASED, Normalization(lower_case=False,
                                                                  strip_accents=False)])
def test_nasty_lines_one_by_one_and_together(normalization):
    """Against the tokenizer's words, each tokenized by itself."""
    lines = nasty_lines.lines(200, seed=1)
    tokenizer = Tokenizer(VOCABULARY, normalization)
    words = [word.decode() for row in tokenizer.splitter.words(tf.constant(lines)).to_list()
             for word in row]
    pieces = tokenizer.tokenize(tf.constant(words))
    unknown = [word for word, row in zip(words, pieces.to_list(), strict=True)
               if row == [VOCABULARY.unk_id]]
    expected = scripts_of(unknown)
    assert len(set(expected)) > 5
    assert counted(lines, normalization=normalization) == {
        script: expected.count(script) for script in set(expected)}
