"""Words that became [UNK] are counted by the script that they are of."""


import pytest
import tensorflow as tf

from electra_tf.text.normalization import UNCASED, Normalization
from electra_tf.text.tokenization import TextSettings
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.unknown_words import DIGITS, OTHER, SIGNS, UnknownScripts, scripts_of
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.text import nasty_lines

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, "un", "##able", "!", "known", "я"))


def counted(texts, normalization=UNCASED):
    text = TextSettings(vocabulary=VOCABULARY, normalization=normalization)
    rows = Tokenizer(text).tokenize(tf.constant(texts))
    counter = UnknownScripts(text)
    counter.add(texts, rows.flat_values.numpy(), rows.row_splits.numpy()[1:])
    return dict(counter.counts)


def test_unknown_words_are_told_from_known_ones_beside_them():
    assert counted(["Unable! дом known", "", "я known", "странный я strange? 7",
                    "unable 漢字", ""]) == {
        "Cyrillic": 2, "Latin": 1, "signs": 1, "digits": 1, "Han": 2}


@pytest.mark.parametrize("normalization", [UNCASED, Normalization(lower_case=False,
                                                                  strip_accents=False)])
def test_nasty_lines_one_by_one_and_together(normalization):
    """Against the tokenizer's words, each tokenized by itself."""
    lines = nasty_lines.lines(200, seed=1)
    tokenizer = Tokenizer(TextSettings(vocabulary=VOCABULARY, normalization=normalization))
    words = [word.decode() for row in tokenizer.splitter.words(tf.constant(lines)).to_list()
             for word in row]
    pieces = tokenizer.tokenize(tf.constant(words))
    unknown = [word for word, row in zip(words, pieces.to_list(), strict=True)
               if row == [VOCABULARY.unk_id]]
    expected = scripts_of(unknown)
    assert len(set(expected)) > 5
    assert counted(lines, normalization=normalization) == {
        script: expected.count(script) for script in set(expected)}


def test_the_script_of_a_word_is_that_of_its_first_letter():
    expected = {
        "word": "Latin", "##ß": "Latin", "3rd": "Latin", "x3": "Latin", "Ωmega": "Greek",
        "дом": "Cyrillic", "漢字": "Han", "かな": "Hiragana", "カナ": "Katakana", "한국": "Hangul",
        "\u1112\u1161": "Hangul", "שלום": "Hebrew", "سلام": "Arabic", "हिन्दी": "Devanagari",
        "ไทย": "Thai", "ᏣᎳᎩ": "Cherokee", "ꯃꯤꯇꯩ": OTHER, "1,5": DIGITS, "٣": "Arabic",
        "７": DIGITS, "##7": DIGITS, "—": SIGNS, "😀": SIGNS, "##": SIGNS, "\u0301": SIGNS,
        "": SIGNS}
    assert dict(zip(expected, scripts_of(list(expected)), strict=True)) == expected
    assert scripts_of([]) == []
