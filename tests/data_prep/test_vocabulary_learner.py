"""The learned vocabulary is well-formed, and the same however the words were counted."""

import collections

import pytest
import tensorflow as tf

from data_prep import vocabulary_learner, word_counter
from data_prep.documents import DocumentPart, lines_of, parse_plain_text
from data_prep.local_runner import LocalRunner
from data_prep.sources import registry as sources
from data_prep.work_units import WorkUnit, work_units
from electra_tf.errors import UserError
from electra_tf.text.normalization import UNCASED, Normalization
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary


@pytest.fixture(scope="module")
def counts():
    return vocabulary_learner.count_corpus_words(
        sources.open_source("embedded:python"), UNCASED, LocalRunner())


@pytest.fixture(scope="module")
def learned(counts) -> Vocabulary:
    return vocabulary_learner.learn(counts, 1000)


def test_it_has_the_size_asked_for_and_begins_with_the_special_tokens(learned):
    assert 970 <= learned.size <= 1000
    assert learned.tokens[:5] == SPECIAL_TOKENS
    assert len(set(learned.tokens)) == learned.size


def test_it_knows_nearly_every_word_of_its_text_and_the_common_ones_whole(learned, counts):
    text = sources.open_source("embedded:python")
    lines = [line for line in lines_of(text.documents(), text.parse) if line]
    ids = Tokenizer(learned).tokenize(tf.constant(lines)).flat_values.numpy()
    assert (ids == learned.unk_id).mean() < 0.001
    assert len(ids) / counts.total() < 1.7
    assert {"the", "python", "function"} <= set(learned.tokens)


def test_learning_is_repeatable_and_order_does_not_matter(learned, counts):
    shuffled = collections.Counter(dict(reversed(list(counts.items()))))
    assert vocabulary_learner.learn(shuffled, 1000) == learned


def test_a_small_size_keeps_all_characters_or_is_refused():
    letters = collections.Counter({chr(c) * 2: 5 for c in range(0x3B1, 0x3B1 + 12)}
                                  | {b"the".decode(): 50})
    encoded = collections.Counter({word.encode(): n for word, n in letters.items()})
    assert vocabulary_learner.learn(encoded, 100).size <= 100
    for size in (99, 1_000_001):
        with pytest.raises(UserError, match=f"--vocab_size must be in .*Received: {size}"):
            vocabulary_learner.learn(encoded, size)


def test_a_quarter_of_the_size_may_be_different_characters():
    letters = "abcdefghijklmnopqrstuvwxyz0123456789" + "".join(map(chr, range(0x3B1, 0x3B1 + 24)))
    words = {f"{one}{two}".encode(): 20 for one in letters for two in letters}
    learned = vocabulary_learner.learn(collections.Counter(words), 240)
    assert set(letters) <= set(learned.tokens)
    assert {f"##{letter}" for letter in letters} <= set(learned.tokens)


def test_words_are_counted_as_the_tokenizer_sees_them():
    parts = [DocumentPart(content=text.encode(), key=0) for text in ("Café, CAFÉ!", "x cafe")]
    unit = WorkUnit(split="train", index=0, parts=tuple(parts), parse=parse_plain_text)
    assert word_counter.count_words(unit, UNCASED) == {b"cafe": 3, b",": 1, b"!": 1, b"x": 1}
    assert word_counter.count_words(unit, Normalization.of(False))["Café".encode()] == 1


def test_counts_do_not_depend_on_how_the_text_is_cut(counts):
    text = sources.open_source("embedded:python")
    parts = [word_counter.count_words(unit, UNCASED)
             for unit in work_units(text.documents(), text.parse, 50_000)]
    assert len(parts) > 20
    assert word_counter.merge_counts(parts) == counts


def test_the_rarest_words_go_when_there_are_too_many():
    parts = [collections.Counter(a=9, b=2, c=1), collections.Counter(a=1, d=3, e=1)]
    assert word_counter.merge_counts(parts, most_words=5) == dict(a=10, b=2, c=1, d=3, e=1)
    assert word_counter.merge_counts(parts, most_words=4) == dict(a=10, d=3)


def test_a_text_without_words_is_refused(tmp_path):
    (tmp_path / "blank.txt").write_text("\n\n")
    with pytest.raises(UserError, match="holds no word"):
        vocabulary_learner.count_corpus_words(
            sources.open_source(str(tmp_path / "blank.txt")), UNCASED, LocalRunner())
