"""The summary of a build: skipped, held-out and counted documents, and unknown words."""

from data_prep import summary
from data_prep.sources.source import SourceOptions


def test_documents_of_several_sources_are_counted_apart_and_skipped(build, tmp_path):
    text, lines = tmp_path / "text.txt", tmp_path / "text.jsonl"
    text.write_bytes(b"the first one\n\nthe \xff second\n\nthe third one\n")
    lines.write_text('{"text": "from an object"}\n{"text": 3}\n')
    made = build(text=f"text:{text},jsonl:{lines}", options=SourceOptions(on_error="skip"))
    assert [(source.name, source.documents, source.text_bytes) for source in made.sources] == [
        (f"text:{text}", 2, len("the first onethe third one")),
        (f"jsonl:{lines}", 1, len("from an object"))]
    assert (made.counts.documents, made.counts.lines, made.counts.skipped_documents) == (5, 3, 2)
    assert str(text) in made.skipped[0] and "0xff" in made.skipped[0]
    assert "damaged documents skipped     2\n" in summary.table(made, 1.0)


def test_many_unknown_words_are_warned_of(build, tmp_path):
    (tmp_path / "text.txt").write_text("a b 7 дом c\n\nдом ไทย a\n" * 9)
    made = build(text=str(tmp_path / "text.txt"))
    assert made.counts.unknown_words == 9 * 4
    (warning,) = summary.warnings(made)
    assert warning.endswith("pre-train with it.") and "of the words became [UNK]" in warning
    usual = build("usual")
    assert usual.counts.unknown_words == 0 and summary.warnings(usual) == []
