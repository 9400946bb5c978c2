"""A vocabulary file, and what stands beside it, decide how text is read; bad ones are refused."""

import json
import re
import subprocess
import sys
import types

import pytest

from electra_tf.core.errors import UserError
from electra_tf.text import normalization
from electra_tf.text.normalization import (
    AUTO,
    NFC,
    UNCASED,
    Normalization,
    TextSettings,
    Tokenization,
    normalization_from_flags,
)
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.refusals import refused

GOOD = (*SPECIAL_TOKENS, "the", "un", "##able")
WORDS = TextSettings(vocabulary=Vocabulary((*SPECIAL_TOKENS, "한글", "##은")), normalization=NFC)


def test_a_vocabulary_survives_its_file_in_every_form(tmp_path):
    path, vocabulary = tmp_path / "vocab.txt", Vocabulary(GOOD)
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary
    assert path.read_text() == "\n".join(GOOD) + "\n"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(GOOD).encode())
    assert Vocabulary.load(path).sha256 == vocabulary.sha256


@pytest.mark.parametrize("end", ["\n", "\r\n", "  \n"])
def test_one_line_is_one_token_whatever_character_it_holds(tmp_path, end):
    """Google's Chinese vocabulary has a line with U+2028; str.splitlines would shift later ids."""
    odd = ["\u2028", "##\u2028", "\x85", "a\x85b", "\x0b", "\x0c", "\x1c", "\x1e", "\u3000",
           "\ufeff"]
    content = end.join([*SPECIAL_TOKENS, *odd, "\u6211"])
    (tmp_path / "vocab.txt").write_bytes(content.encode())
    vocabulary = Vocabulary.load(tmp_path / "vocab.txt")
    assert list(vocabulary.tokens) == [*SPECIAL_TOKENS, *odd, "\u6211"]
    Tokenizer(TextSettings(vocabulary=vocabulary))
    assert vocabulary.ids["\u6211"] == 15
    vocabulary.save(tmp_path / "vocab.txt")
    assert Vocabulary.load(tmp_path / "vocab.txt").sha256 == vocabulary.sha256


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("empty", ["", " ", "\t", "\r"])
def test_an_empty_line_is_a_token_that_no_text_gives(tmp_path, end, empty):
    """A token that is a line end takes two lines, as in transformers."""
    lines = [*SPECIAL_TOKENS, "a", empty, empty, "b", empty, "line", "7", "[", "]", "empty"]
    (tmp_path / "vocab.txt").write_bytes(end.join([*lines, empty, empty, ""]).encode())
    vocabulary = Vocabulary.load(tmp_path / "vocab.txt")
    assert vocabulary.size == len(lines)
    assert [vocabulary.ids[token] for token in ("a", "b", "line", "empty")] == [5, 8, 10, 14]
    tokenizer = Tokenizer(TextSettings(vocabulary=vocabulary))
    assert tokenizer.tokenize(["a b \n\t \r b", " ".join(vocabulary.tokens[6:8])]).to_list() == [
        [5, 8, 8], [12, 14, 10, 11, 13, 12, 14, 10, vocabulary.unk_id, 13]]
    vocabulary.save(tmp_path / "vocab.txt")
    assert Vocabulary.load(tmp_path / "vocab.txt").tokens == vocabulary.tokens


def test_ids_are_line_numbers_and_the_digest_is_of_the_lines():
    vocabulary = Vocabulary(("x", "[MASK]", "[SEP]", "[PAD]", "[CLS]", "[UNK]"))
    assert (vocabulary.pad_id, vocabulary.unk_id, vocabulary.cls_id, vocabulary.sep_id,
            vocabulary.mask_id, vocabulary.size) == (3, 5, 4, 2, 1, 6)
    # printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n' | sha256sum
    expected = "271c7d38dd85366dc3a357106604ea5b212a5cbdaef9f46829f81402e8719f3e"
    assert Vocabulary((*SPECIAL_TOKENS, "a")).sha256 == expected


@pytest.mark.parametrize("content, message", [
    (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n", r"no line holds \[MASK\]"),
    (b"a\n", r"no line holds \[PAD\] or \[UNK\] or \[CLS\] or \[SEP\] or \[MASK\]"),
    (b"[PAD]\n[UNK]\nx\n[CLS]\n[SEP]\n[MASK]\nx\n", "'x' is in line 3 and again in line 7, "
     r".* write another token in line 3, such as \[unused-3\]"),
    (b"", r"no line holds \[PAD\]"),
    (b"the\t-3.4\n", r"line 1 must hold one token, without tabs .* 'the\\t-3.4'"),
    (b"[PAD]\r[UNK]\r[CLS]\r", "line 1 must hold one token"),
    (b"[PAD]\n[UNK]\n\xff\n", "not UTF-8: bad byte at offset 12"),
])
def test_a_bad_vocabulary_is_refused_with_its_place(tmp_path, content, message):
    (tmp_path / "vocab.txt").write_bytes(content)
    with pytest.raises(UserError, match=f"vocab.txt.*{message}"):
        Vocabulary.load(tmp_path / "vocab.txt")


@pytest.fixture
def vocab_file(tmp_path):
    WORDS.save(tmp_path / "vocab.txt")
    return tmp_path / "vocab.txt"


def test_the_advised_command_writes_the_vocabulary_of_a_tokenizer_json(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": {"vocab": {
        "a": 5, **{token: index for index, token in enumerate(SPECIAL_TOKENS)}}}}))
    with refused("is JSON") as error:
        Vocabulary.load(path)
    command = re.search("`python (.*)`", str(error.value))[1]
    subprocess.run(f"{sys.executable} {command}", shell=True, check=True, cwd=tmp_path)
    assert Vocabulary.load(tmp_path / "vocab.txt").tokens == (*SPECIAL_TOKENS, "a")


def test_the_normalization_is_read_again(vocab_file):
    assert TextSettings.load(vocab_file) == TextSettings.load(vocab_file, NFC) == WORDS
    assert json.loads(normalization.manifest_of(vocab_file).read_text()) == {
        "size": 7, "sha256": WORDS.vocabulary.sha256, "lower_case": False, "strip_accents": False,
        "nfc": True}


def test_without_a_manifest_it_is_the_users_or_berts_uncased(vocab_file):
    with pytest.raises(UserError, match="normalization nfc, not bert_uncased"):
        TextSettings.load(vocab_file, UNCASED)
    normalization.manifest_of(vocab_file).unlink()
    assert TextSettings.load(vocab_file).normalization == UNCASED
    assert TextSettings.load(vocab_file, NFC) == WORDS


@pytest.mark.parametrize("word", ["Paris", "Москва", "##Étés"])
def test_a_cased_vocabulary_without_a_manifest_needs_a_normalization(tmp_path, word):
    words = Vocabulary((*SPECIAL_TOKENS, word, *(f"word{number}" for number in range(90))))
    words.save(tmp_path / "vocab.txt")
    with pytest.raises(UserError, match=f"capitals, such as '{word}', .* Give --norm"):
        TextSettings.load(tmp_path / "vocab.txt")
    for chosen in (UNCASED, NFC):
        assert TextSettings.load(tmp_path / "vocab.txt", chosen).normalization == chosen


def test_a_manifest_of_another_vocabulary_is_refused(vocab_file):
    Vocabulary((*SPECIAL_TOKENS, "other")).save(vocab_file)
    with pytest.raises(UserError, match=r"vocab.txt.manifest.json is of another vocabulary \(7 e"):
        TextSettings.load(vocab_file)


@pytest.mark.parametrize(("changes", "message"), [
    ({"strip_accents": True}, "strip_accents can't be True with nfc"),
    ({"colour": 1}, "'colour' is unknown")])
def test_a_damaged_manifest_is_named(vocab_file, changes, message):
    path = normalization.manifest_of(vocab_file)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(UserError, match=message):
        TextSettings.load(vocab_file)


def test_files_of_earlier_versions_are_what_they_were():
    facts = {"lower_case": True, "strip_accents": False}
    assert Normalization.from_dict(facts | {"dataset": "x"}).to_dict() == facts
    assert NFC.to_dict() == {"lower_case": False, "strip_accents": False, "nfc": True}
    kept = Tokenization(size=7, sha256="a", **facts)
    assert list(kept.to_dict().items()) == [("size", 7), ("sha256", "a"), *facts.items()]
    assert kept.normalization == Normalization(strip_accents=False)
    assert WORDS.to_dict() == {"vocabulary": WORDS.vocabulary.sha256} | NFC.to_dict()


@pytest.mark.parametrize(("mode", "expected"), [
    (AUTO, None), ("nfc", NFC), ("bert_uncased", UNCASED), ("bert_cased", Normalization.of(False)),
    ("lower_case", Normalization(strip_accents=False))])
def test_the_flag_names_a_normalization(mode, expected):
    assert normalization_from_flags(types.SimpleNamespace(normalization=mode)) == expected
    assert expected is None or str(expected) == mode
