"""Tokenizers that this program can't follow are refused in one line that names the entry."""

import json

import pytest
import tensorflow as tf

from electra_tf.formats import hugging_face_tokenizer
from electra_tf.text.normalization import Normalization, TextSettings
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.hugging_face_files import change_json
from tests.support.refusals import refused

WORDS = Vocabulary((*SPECIAL_TOKENS, "the", "berlin", "e", "1", "[", "]", "[E1]", "covid-19"))
SEQUENCE = {"type": "Sequence", "normalizers": [
    {"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}]}


@pytest.fixture
def directory(tmp_path):
    hugging_face_tokenizer.write_text(TextSettings(vocabulary=WORDS), tmp_path, 512)
    return tmp_path


@pytest.mark.parametrize(("file", "entries", "words"), [
    ("config", {"tokenizer_class": "BertJapaneseTokenizer"}, "'BertJapaneseTok"),
    ("tokenizer_config", {"never_split": ["[E1]"]}, r"config.json: never_split .*\[\]"),
    ("tokenizer_config", {"tokenize_chinese_chars": False}, "tokenize_chinese_chars is False"),
    ("tokenizer_config", {"padding_side": "left"}, "padding_side is 'left'.*\"right\""),
    ("tokenizer_config", {"cls_token": "<s>"}, "cls_token is '<s>'"),
    ("special_tokens_map", {"sep_token": {"content": "</s>"}}, "map.json: sep_token is '</s>'"),
    ("added_tokens", {"##x": 13}, "'##x' begins"), ("added_tokens", {"the": 13}, "'the'.* 5"),
    ("added_tokens", {"new": 15}, "14 tokens aren't 0, 1, 2"),
    ("tokenizer", {"normalizer": SEQUENCE}, "normalizer .*NFD.*Lowercase"),
    ("tokenizer", {"pre_tokenizer/type": "WhitespaceSplit"}, "pre_tokenizer .*WhitespaceSplit"),
    ("tokenizer", {"model/continuing_subword_prefix": ""}, "'continuing_subword_prefix'"),
    ("tokenizer", {"model/max_input_chars_per_word": 5000}, "'max_input_chars_per_word'"),
    ("tokenizer", {"added_tokens": [{"id": 11, "content": "[E1]", "single_word": True}]},
     "\"single_word\": false"),
    ("tokenizer", {"added_tokens": [{"id": 5, "content": "the", "special": True}]},
     "'the' .*\"normalized\": true"), (None, {}, "PreTrainedTokenizerFast needs tokenizer.json")])
def test_what_gives_other_ids_is_refused_by_name(directory, file, entries, words):
    if file is None:
        (directory / "tokenizer.json").unlink()
    elif file == "config":  # Its class counts if tokenizer_config.json has none.
        (directory / "tokenizer_config.json").unlink()
    if file:
        change_json(directory / f"{file}.json", **entries)
    with refused(words):
        hugging_face_tokenizer.read_text(directory)


def test_a_cased_vocabulary_whose_files_do_not_say_so_is_lower_cased_with_a_note(tmp_path, capsys):
    """Transformers' BertTokenizer lower-cases by default."""
    (tmp_path / "vocab.txt").write_text("\n".join((*SPECIAL_TOKENS, "the", "Berlin")) + "\n")
    assert hugging_face_tokenizer.read_text(tmp_path).normalization.lower_case
    assert ("1 tokens with capitals, such as 'Berlin', and no file says that text isn't lower-cased"
            ", so text is lower-cased") in capsys.readouterr().err
    for lower_case in (False, True):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower_case}))
        assert hugging_face_tokenizer.read_text(tmp_path).normalization.lower_case is lower_case
    assert not capsys.readouterr().err


@pytest.mark.parametrize("tokenizer_class", ["BertTokenizer", "PreTrainedTokenizerFast"])
def test_capitals_that_only_tokenizer_json_keeps_are_noted(tmp_path, capsys, tokenizer_class):
    """BertTokenizer follows its own default, the library's class tokenizer.json."""
    text = TextSettings(vocabulary=Vocabulary((*SPECIAL_TOKENS, "the", "Berlin")),
                        normalization=Normalization.of(False))
    hugging_face_tokenizer.write_text(text, tmp_path, 512)
    change_json(tmp_path / "tokenizer.json", **{"model/max_input_chars_per_word": 100})
    change_json(tmp_path / "tokenizer_config.json", do_lower_case=None, strip_accents=None,
                tokenizer_class=tokenizer_class)
    is_lower = tokenizer_class == "BertTokenizer"
    assert hugging_face_tokenizer.read_text(tmp_path).normalization.lower_case is is_lower
    assert ("do_lower_case" in capsys.readouterr().err) == is_lower


def test_two_vocabularies_that_disagree_are_refused(directory):
    (directory / "vocab.txt").write_text("\n".join(reversed(WORDS.tokens)))
    with refused("vocab.txt: the token of id 0 is 'covid-19', but another one in .*json; remove"):
        hugging_face_tokenizer.read_text(directory)


@pytest.mark.parametrize(("vocab", "lines"), [
    ({"": 7, "x": 8}, None), ({"": 7, "x": 8}, ["", "", "x"]),  # As transformers 5 saves two lines.
    ({"\n": 6, "x": 7}, None), ({"": 6, "x": 7}, ["", "x"])])
def test_a_token_that_is_a_line_end_keeps_the_ids_of_the_others(tmp_path, vocab, lines):
    tokens = (*SPECIAL_TOKENS, "the")
    hugging_face_tokenizer.write_text(TextSettings(vocabulary=Vocabulary(tokens)), tmp_path, 512)
    change_json(tmp_path / "tokenizer.json",
                **{"model/vocab": {token: index for index, token in enumerate(tokens)} | vocab})
    (tmp_path / "vocab.txt").unlink()
    if lines:
        (tmp_path / "vocab.txt").write_text("\n".join([*tokens, *lines]) + "\n")
    text = hugging_face_tokenizer.read_text(tmp_path)
    assert text.vocabulary.size == max(vocab.values()) + 1
    assert Tokenizer(text).tokenize(["the \n x"]).to_list() == [[5, vocab["x"]]]
    change_json(tmp_path / "tokenizer.json", added_tokens=[{"id": 6, "content": "\n"}])
    if "\n" in vocab:
        with refused(r"the added token '\\n' is empty or a line end; remove it"):
            hugging_face_tokenizer.read_text(tmp_path)


def test_added_tokens_are_words_of_their_own(directory):
    text = TextSettings(vocabulary=WORDS, normalization=Normalization(
        literal_tokens=("[E1]",), normalized_tokens=("covid-19",)))
    words = Tokenizer(text).tokenize_words(tf.constant(["the [E1] COVID-19 [e1]"]))
    assert [word.decode() for word in words.texts[0].numpy()] == [
        "the", "[E1]", "COVID-19", "[", "e1", "]"]
    assert words.pieces.to_list()[:3] == [[5], [11], [12]]


def test_a_final_sigma_is_that_of_unicode(directory):
    fast = pytest.importorskip("tokenizers").Tokenizer.from_file(str(directory / "tokenizer.json"))
    # Python's own lower-casing follows the same rule.
    for word in ("ΟΔΟΣ", "Σ", "ΣΑΣ.", "ΑΣ'Α", "Α'Σ", "ΑΣ.Α", "ΑΣ1", "1Σ", "中Σ"):
        assert fast.normalizer.normalize_str(word).replace(" ", "") == word.lower()
