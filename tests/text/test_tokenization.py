"""What stands beside a vocabulary decides how text is read with it; contradictions are errors."""

import json

import pytest
from absl import flags

from electra_tf.platform.errors import UserError
from electra_tf.text import tokenization
from electra_tf.text.tokenization import (
    AUTO,
    NFC,
    UNCASED,
    Normalization,
    TextSettings,
    Tokenization,
    normalization_from_flags,
)
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS = TextSettings(vocabulary=Vocabulary((*SPECIAL_TOKENS, "한글", "##은")), normalization=NFC)


@pytest.fixture
def vocab_file(tmp_path):
    WORDS.save(tmp_path / "vocab.txt")
    return tmp_path / "vocab.txt"


def parsed_flags(mode=AUTO):
    values = flags.FlagValues()
    flags.DEFINE_string("normalization", mode, "", flag_values=values)
    values.mark_as_parsed()
    return values


def test_the_normalization_is_read_again(vocab_file):
    assert TextSettings.load(vocab_file) == TextSettings.load(vocab_file, NFC) == WORDS
    assert json.loads(tokenization.manifest_of(vocab_file).read_text()) == {
        "size": 7, "sha256": WORDS.vocabulary.sha256, "lower_case": False, "strip_accents": False,
        "nfc": True}


def test_without_a_manifest_it_is_the_users_or_berts_uncased(vocab_file):
    with pytest.raises(UserError, match="normalization nfc, not bert_uncased"):
        TextSettings.load(vocab_file, UNCASED)
    tokenization.manifest_of(vocab_file).unlink()
    assert TextSettings.load(vocab_file).normalization == UNCASED
    assert TextSettings.load(vocab_file, NFC) == WORDS


def test_a_manifest_of_another_vocabulary_is_refused(vocab_file):
    Vocabulary((*SPECIAL_TOKENS, "other")).save(vocab_file)
    with pytest.raises(UserError, match=r"vocab.txt.manifest.json is of another vocabulary \(7 e"):
        TextSettings.load(vocab_file)


@pytest.mark.parametrize(("changes", "message"), [
    ({"strip_accents": True}, "strip_accents can't be True with nfc"),
    ({"colour": 1}, "'colour' is unknown")])
def test_a_damaged_manifest_is_named(vocab_file, changes, message):
    path = tokenization.manifest_of(vocab_file)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(UserError, match=message):
        TextSettings.load(vocab_file)


def test_files_of_earlier_versions_are_what_they_were():
    facts = {"lower_case": True, "strip_accents": False}
    assert Normalization.of_facts(facts | {"dataset": "x"}).facts() == facts
    assert NFC.facts() == {"lower_case": False, "strip_accents": False, "nfc": True}
    kept = Tokenization(size=7, sha256="a", **facts)
    assert list(kept.facts().items()) == [("size", 7), ("sha256", "a"), *facts.items()]
    assert kept.normalization == Normalization(strip_accents=False)
    assert WORDS.facts() == {"vocabulary": WORDS.vocabulary.sha256} | NFC.facts()


@pytest.mark.parametrize(("mode", "expected"), [
    (AUTO, None), ("nfc", NFC), ("bert_uncased", UNCASED), ("bert_cased", Normalization.of(False)),
    ("lower_case", Normalization(strip_accents=False))])
def test_the_flag_names_a_normalization(mode, expected):
    assert normalization_from_flags(parsed_flags(mode)) == expected
    assert expected is None or str(expected) == mode
