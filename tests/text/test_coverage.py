"""Text that the tokenizer can't do justice to is told of, with the share and the fix."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.text import coverage
from electra_tf.text.tokenization import TextSettings
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, "un", "##able", "!", "known"))


def test_words_are_counted_not_pieces():
    texts = tf.constant(["Unable! known strange", "known"])
    ids = Tokenizer(TextSettings(vocabulary=VOCABULARY)).tokenize(texts)
    assert coverage.count_words(ids.flat_values.numpy(), VOCABULARY) == (5, 1)
    assert coverage.count_words(np.array([], np.int32), VOCABULARY) == (0, 0)


def test_letters_that_stripping_accents_changes_are_counted():
    assert coverage.count_changed(["abc", "한국어 text", "日本語", "", "Ünit é 5° “q”"]) == 5


@pytest.mark.parametrize(("unknown", "words"), [(5, 100), (0, 0), (0, 10)])
def test_few_unknown_words_are_no_news(unknown, words):
    assert coverage.unknown_warning(unknown, words) == ""
    assert coverage.changed_warning(unknown, words) == ""


def test_a_warning_names_the_share_and_the_fix():
    assert coverage.unknown_warning(6, 100).startswith("6.0% of the words became [UNK]")
    assert "data_prep.build_vocab" in coverage.unknown_warning(6, 100)
    warning = coverage.changed_warning(6, 10)
    assert "60% of the characters change" in warning and "--normalization=nfc" in warning
