"""What stands beside a vocabulary decides how text is read with it, and nothing contradicts it."""

import json

import pytest

from electra_tf.platform.errors import UserError
from electra_tf.text import tokenization
from electra_tf.text.normalization import AUTO, MODES, NFC, UNCASED, Normalization, asked_for
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS = Vocabulary((*SPECIAL_TOKENS, "한글", "##은"))


@pytest.fixture
def vocab_file(tmp_path):
    tokenization.save(WORDS, NFC, tmp_path / "vocab.txt")
    return tmp_path / "vocab.txt"


def test_the_normalization_is_read_again(vocab_file):
    assert Vocabulary.load(vocab_file) == WORDS
    assert tokenization.recorded_normalization(WORDS, vocab_file) == NFC
    assert tokenization.normalization_for(WORDS, vocab_file, None) == NFC
    assert tokenization.normalization_for(WORDS, vocab_file, NFC) == NFC


def test_without_a_manifest_it_is_the_users_or_berts_uncased(tmp_path):
    WORDS.save(tmp_path / "vocab.txt")
    assert tokenization.recorded_normalization(WORDS, tmp_path / "vocab.txt") is None
    assert tokenization.normalization_for(WORDS, tmp_path / "vocab.txt", None) == UNCASED
    assert tokenization.normalization_for(WORDS, tmp_path / "vocab.txt", NFC) == NFC


def test_another_normalization_than_the_recorded_one_is_refused(vocab_file):
    with pytest.raises(UserError, match="learned with normalization nfc, not bert_uncased"):
        tokenization.normalization_for(WORDS, vocab_file, UNCASED)


def test_a_manifest_of_another_vocabulary_is_refused(vocab_file):
    other = Vocabulary((*SPECIAL_TOKENS, "other"))
    other.save(vocab_file)
    with pytest.raises(UserError, match=r"vocab.txt.manifest.json is of another vocabulary \(7 e"):
        tokenization.normalization_for(other, vocab_file, None)


@pytest.mark.parametrize(("changes", "message"), [
    ({"strip_accents": True}, "strip_accents can't be True with nfc"),
    ({"nfc": "yes"}, "'nfc' must be true or false"),
    ({"colour": 1}, "'colour' is unknown")])
def test_a_damaged_manifest_is_named(vocab_file, changes, message):
    path = tokenization.manifest_of(vocab_file)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(UserError, match=message):
        tokenization.recorded_normalization(WORDS, vocab_file)


def test_files_of_earlier_versions_are_what_they_were():
    facts = {"lower_case": True, "strip_accents": False}
    assert Normalization.of_facts(facts | {"dataset": "x"}).facts() == facts
    assert NFC.facts() == {"lower_case": False, "strip_accents": False, "nfc": True}
    assert UNCASED.facts() == {"lower_case": True, "strip_accents": True}


@pytest.mark.parametrize(("mode", "lower", "strip", "expected"), [
    (AUTO, None, None, None), ("nfc", None, None, NFC), ("bert_uncased", None, None, UNCASED),
    ("bert_cased", None, None, Normalization.of(False)),
    (AUTO, False, None, Normalization.of(False)), (AUTO, None, False, Normalization.of(None, False))
])
def test_flags_ask_for_a_normalization(mode, lower, strip, expected):
    assert asked_for(mode, lower, strip) == expected


@pytest.mark.parametrize(("mode", "lower", "message"), [
    ("nfkc", None, "one of auto, bert_uncased, bert_cased, nfc. Received: 'nfkc'"),
    ("nfc", True, "--normalization=nfc says all; leave --lower_case and --strip_accents out")])
def test_flags_that_make_no_sense_are_refused(mode, lower, message):
    with pytest.raises(UserError, match=message):
        asked_for(mode, lower, None)


def test_a_normalization_shows_its_name():
    assert [str(mode) for mode in MODES.values()] == list(MODES)
    assert str(Normalization.of(True, False)) == "lower_case=True, strip_accents=False"
