"""Building tells of text that the vocabulary or the normalisation doesn't suit."""

from data_prep import summary


def test_unknown_words_are_counted_by_script(build, tmp_path):
    (tmp_path / "text.txt").write_text("a b 7 дом c\n\nдом ไทย a\n" * 9)
    made = build(text=str(tmp_path / "text.txt"))
    assert made.counts.unknown_by_script == {"Cyrillic": 18, "Thai": 9, "digits": 9}
    (warning,) = summary.warnings(made)
    assert warning.endswith("pre-train with it.") and "of the words became [UNK]" in warning
    usual = build("usual")
    assert usual.counts.unknown_by_script == {} and summary.warnings(usual) == []
