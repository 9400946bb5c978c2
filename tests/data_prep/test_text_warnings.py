"""Building tells of text that the vocabulary or the normalisation doesn't suit."""

import collections

from data_prep import summary, vocabulary_learner

KOREAN = "\uc138\uc885\ub300\uc655\uc740 \ud55c\uae00\uc744 \ub9cc\ub4e4\uc5c8\ub2e4\n"


def test_unknown_words_are_counted_by_script(build, tmp_path):
    (tmp_path / "text.txt").write_text("a b 7 дом c\n\nдом ไทย a\n" * 9)
    made = build(text=str(tmp_path / "text.txt"))
    assert made.counts.unknown_by_script == {"Cyrillic": 18, "Thai": 9, "digits": 9}
    (warning,) = summary.warnings(made)
    assert warning.endswith("pre-train with it.") and "of the words became [UNK]" in warning
    usual = build("usual")
    assert usual.counts.unknown_by_script == {} and summary.warnings(usual) == []


def test_korean_is_told_of_only_where_accents_are_stripped(build, tmp_path):
    (tmp_path / "text.txt").write_text(KOREAN * 3)
    stripped, kept = (
        summary.warnings(build(name, text=str(tmp_path / "text.txt"), **changes))
        for name, changes in (("stripped", {}), ("kept", {"strip_accents": False})))
    assert len(stripped) == 2 and "--normalization=nfc" in stripped[1]
    assert len(kept) == 1 and "[UNK]" in kept[0]


def test_a_vocabulary_of_korean_letters_is_told_of():
    counts = collections.Counter({"\u1112\u1161\u11ab".encode(): 2, b"word": 8})
    assert "20% of the words are Korean" in vocabulary_learner.korean_warning(counts)
    whole = collections.Counter({"\ud55c".encode(): 2, b"word": 8})
    assert vocabulary_learner.korean_warning(whole) == ""
