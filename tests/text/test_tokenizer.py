"""The tokenizer's graph equals the Python tokenizer of BERT and ELECTRA."""

import pydoc_data.topics
import time
import unicodedata

import pytest
import tensorflow as tf

from data_prep.sources import embedded
from electra_tf.core.errors import UserError
from electra_tf.text.normalization import NFC, UNCASED, Normalization, TextSettings
from electra_tf.text.tokenizer import Tokenizer, WordSplitter
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.text.nasty_lines import assigned, lines
from tests.text.reference import Reference, vocabulary_of

MODES = {"uncased": (True, None), "cased": (False, None), "keep accents": (True, False)}


@pytest.fixture(scope="module")
def nasty() -> list[str]:
    return lines(2500, seed=1)


@pytest.fixture(scope="module")
def nasty_vocabulary(nasty, tmp_path_factory) -> Vocabulary:
    return vocabulary_of(nasty, tmp_path_factory.mktemp("vocabulary"))


def tokenizer_of(vocabulary: Vocabulary, normalization: Normalization = UNCASED) -> Tokenizer:
    return Tokenizer(TextSettings(vocabulary=vocabulary, normalization=normalization))


def differing(tokenizer: Tokenizer, reference: Reference, texts: list[str]) -> list[str]:
    rows = tokenizer.tokenize(tf.constant(texts)).to_list()
    return [text for text, ids in zip(texts, rows, strict=True) if ids != reference.ids(text)]


@pytest.mark.parametrize("mode", MODES)
def test_nasty_lines_give_the_reference_ids(mode, nasty, nasty_vocabulary, tmp_path):
    tokenizer = tokenizer_of(nasty_vocabulary, Normalization.of(*MODES[mode]))
    assert differing(tokenizer, Reference(nasty_vocabulary, tmp_path, *MODES[mode]), nasty) == []
    ids = tokenizer.tokenize(tf.constant(nasty)).flat_values.numpy()
    assert 0.02 < (ids == nasty_vocabulary.unk_id).mean() < 0.5


def test_real_text_gives_the_reference_ids(tmp_path):
    """Topics line by line with their grammar and code, and some modules' prose as one text each."""
    texts = [line for topic in pydoc_data.topics.topics.values() for line in topic.splitlines()]
    texts = texts[::2] + ["\n".join(paragraphs) for paragraphs in embedded.documents()[::9]]
    vocabulary = vocabulary_of(texts, tmp_path)
    assert len(texts) > 4500
    assert differing(tokenizer_of(vocabulary), Reference(vocabulary, tmp_path), texts) == []


@pytest.mark.parametrize("mode", MODES)
def test_every_character_between_letters_acts_as_in_the_reference(mode, tmp_path):
    """Dropped gives a ##b, a separator a ? b, a part of the word [UNK]; each looks different."""
    codes = [*range(0x3400), *range(0x4DB0, 0x4E10), *range(0x9FF0, 0xD800),
             *range(0xE000, 0x1FFFF)]
    texts = [f"a{character}b" for character in assigned(codes)]
    vocabulary = Vocabulary((*SPECIAL_TOKENS, "a", "##b", "b", "##i"))
    tokenizer = tokenizer_of(vocabulary, Normalization.of(*MODES[mode]))
    assert len(texts) > 50_000
    assert differing(tokenizer, Reference(vocabulary, tmp_path, *MODES[mode]), texts) == []


@pytest.mark.parametrize("letter", ["a", "д", "𐍈"])
def test_words_past_200_characters_are_unknown_whatever_their_bytes(letter):
    vocabulary = Vocabulary((*SPECIAL_TOKENS, letter, f"##{letter}"))
    tokenizer = tokenizer_of(vocabulary, Normalization(strip_accents=False))
    at_limit, past_limit = tokenizer.tokenize(tf.constant([letter * 200, letter * 201])).to_list()
    assert len(at_limit) == 200
    assert past_limit == [vocabulary.unk_id]


@pytest.mark.parametrize("marks", ["\u0301\u0323", "\u05b0\u05b1", "\U0001d16d\U0001d165"])
def test_runs_of_marks_are_read_in_linear_time_as_the_reference_reads_them(marks, tmp_path):
    vocabulary = Vocabulary((*SPECIAL_TOKENS, "a", "##b", "b"))
    text = f"a b a{marks * 3000}b a{marks}b"
    tokenizer = tokenizer_of(vocabulary)
    assert differing(tokenizer, Reference(vocabulary, tmp_path, True, None), [text]) == []
    begin = time.perf_counter()
    tokenizer.tokenize(tf.constant([marks * 150_000]))
    # A tenth of a second; two minutes where NFD sorts them.
    assert time.perf_counter() - begin < 10.0


def test_words_that_cleaning_takes_away_stay_in_the_list_without_pieces():
    vocabulary = Vocabulary((*SPECIAL_TOKENS, "a", "b"))
    words = tokenizer_of(vocabulary).tokenize_words(tf.constant(["a \u200b(b", "", "\x00a"]))
    assert [[word.decode() for word in row] for row in words.texts.to_list()] == [
        ["a", "\u200b", "(", "b"], [], ["\x01a"]]
    assert words.starts.to_list() == [[0, 2, 5, 6], [], [0]]
    assert words.ends.to_list() == [[1, 5, 6, 7], [], [2]]
    assert words.pieces.to_list() == [[5], [], [1], [6], [5]]


@pytest.mark.parametrize("mode", [
    mode if mode == "uncased" else pytest.param(mode, marks=pytest.mark.slow) for mode in MODES])
def test_texts_known_to_be_valid_and_words_give_the_same_ids(mode, nasty, nasty_vocabulary):
    """Every character, first in its text and last: noncharacters and byte-order marks, too."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    splitter = WordSplitter(Normalization.of(*MODES[mode]))
    texts = tf.constant([a + b for a, b in zip(characters, reversed(characters), strict=True)])
    assert tf.reduce_all(splitter.normalize_valid(texts) == splitter.normalize(texts))
    tokenizer = tokenizer_of(nasty_vocabulary, splitter.normalization)
    assert (tokenizer.tokenize_valid(tf.constant(nasty)).to_list()
            == tokenizer.tokenize(tf.constant(nasty)).to_list())
    texts = tf.constant([*(line for line in nasty if "Σ" not in line), "clark\x00able \x00 un\x00"])
    pieces = tokenizer.tokenize_with_offsets(texts)
    assert pieces.ids.to_list() == tokenizer.tokenize(texts).to_list()
    assert pieces.starts.row_lengths().numpy().tolist() == (
        pieces.ends.row_lengths().numpy().tolist()) == pieces.ids.row_lengths().numpy().tolist()


@pytest.mark.parametrize(("mode", "pieces", "text", "expected"), [
    (Normalization.of(False), "임수경 ##을", "임수경을 임수경", "임수경|을|임수경"),
    (Normalization.of(False), "アメリカ ##は", "アメリカは", "アメリカ|は"),
    # A syllable's three letters are in two pieces, which both stand for the syllable.
    (UNCASED, "\u110b\u1175\u11b7\u1109\u116e \u110b\u1175 ##\u11b7\u1109\u116e", "임수 임",
     "임수|임"),
    (UNCASED, "\u110b\u1175 ##\u11b7", "임", "임|임"),
    (UNCASED, "cafe ##s", "CAFE\u0301s Cafés ca\u200bfe\u0301\u200bs\u00ad",
     "CAFE\u0301|s|Café|s|ca\u200bfe\u0301|s"),
    (UNCASED, "i ##stanbul", "İstanbul", "İ|stanbul"),
    (Normalization(strip_accents=False), "i\u0307 ##stanbul", "İstanbul", "İ|stanbul"),
    (UNCASED, "\u0932\u0921\u0915 ##\u0940", "लड़के लड़की", "लड़के|लड़क|ी"),
    (NFC, "café ##s 한 ##글", "cafe\u0301s \u1112\u1161\u11ab글",
     "cafe\u0301|s|\u1112\u1161\u11ab|글"),
    (NFC, "ก ##ก", "ก" * 201, "|".join("ก" * 201)),  # Cut after 100 characters.
    (UNCASED, "a ##a", f"{'a' * 201} \0aa", f"{'a' * 201}|a|a"), (UNCASED, "=", "a≠b", "a|≠|b")])
def test_pieces_are_found_in_the_text_that_they_come_from(mode, pieces, text, expected):
    tokenizer = tokenizer_of(Vocabulary((*SPECIAL_TOKENS, *pieces.split())), mode)
    pieces = tokenizer.tokenize_with_offsets(tf.constant([text]))
    assert [text.encode()[start:end].decode() for start, end in zip(
        pieces.starts[0].numpy(), pieces.ends[0].numpy(), strict=True)] == expected.split("|")


@pytest.mark.parametrize("mode", MODES)
def test_the_text_of_a_piece_is_the_shortest_that_gives_the_piece(
        mode, nasty, nasty_vocabulary, tmp_path):
    reference = Reference(nasty_vocabulary, tmp_path, *MODES[mode])
    tokenizer = tokenizer_of(nasty_vocabulary, Normalization.of(*MODES[mode]))
    lines = [line for line in nasty[:600] if "Σ" not in line]
    pieces, checked = tokenizer.tokenize_with_offsets(tf.constant(lines)), 0
    for line, *places in zip(lines, *(part.to_list() for part in pieces), strict=True):
        for index, start, end in zip(*places, strict=True):
            text = line.encode()[start:end].decode()
            words = ["".join(reference.words(part)) for part in (text, text[1:], text[:-1])]
            token = nasty_vocabulary.tokens[index].removeprefix("##")
            if index != nasty_vocabulary.unk_id:
                checked += 1
                assert [token in word for word in words] == [
                    True, False, unicodedata.category(text[-1]) == "Mn" and MODES[mode] != MODES[
                        "cased"] and words[2] == words[0]], (line, text, token)
    assert checked > 3000


def test_a_token_that_is_too_long_for_the_op_is_named():
    tokenizer_of(Vocabulary((*SPECIAL_TOKENS, "##" + "a" * 254)))
    with pytest.raises(UserError, match="line 7 has more than 256 bytes: 'éé.*; remove it"):
        tokenizer_of(Vocabulary((*SPECIAL_TOKENS, "a", "é" * 129)))


def test_composing_gives_one_way_to_write_a_letter_in_little_time():
    texts = {"Cafe\u0301 İstanbul ISPARTA": "Café İstanbul ISPARTA", "\u1112\u1161\u11ab글": "한글",
             "\u304b\u3099 カ": "が カ", "नमस्ते หมู่": "नमस्ते หมู่",
             "a" + "\u0301\u0323" * 200_000: "a", "b" + "\u0323" * 30: "ḅ" + "\u0323" * 29}
    start = time.process_time()
    normalized = WordSplitter(NFC).normalize(tf.constant(list(texts))).numpy()
    assert time.process_time() - start < 5
    assert [text.decode() for text in normalized] == list(texts.values())


@pytest.mark.parametrize("word", ["ก" * 101, "กิ" * 150, "ก" * 99 + "ิ" * 3 + "ก" * 250])
def test_a_long_word_without_spaces_is_cut_before_a_letter(word):
    vocabulary = Vocabulary((*SPECIAL_TOKENS, "ก", "##ก", "##ิ"))
    tokenizer = tokenizer_of(vocabulary, NFC)
    ids = tokenizer.tokenize(tf.constant([f"ก {word} ก"])).to_list()[0]
    assert vocabulary.unk_id not in ids
    assert "".join(vocabulary.tokens[index].removeprefix("##") for index in ids) == f"ก{word}ก"
    parts = WordSplitter(NFC).words(tf.constant([word])).to_list()[0]
    assert all(100 <= len(part.decode()) <= 130 for part in parts[:-1])
    assert tokenizer.tokenize_words(tf.constant([word])).pieces.to_list() == [ids[1:-1]]
    kept = tokenizer_of(vocabulary, Normalization.of(False)).tokenize(tf.constant([word])).to_list()
    assert (kept == [[vocabulary.unk_id]]) == (len(word) > 200)
