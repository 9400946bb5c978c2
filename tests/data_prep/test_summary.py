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


def test_unknown_words_are_counted_by_script(build, tmp_path):
    (tmp_path / "text.txt").write_text("a b 7 дом c\n\nдом ไทย a\n" * 9)
    made = build(text=str(tmp_path / "text.txt"))
    assert made.counts.unknown_by_script == {"Cyrillic": 18, "Thai": 9, "digits": 9}
    (warning,) = summary.warnings(made)
    assert warning.endswith("pre-train with it.") and "of the words became [UNK]" in warning
    usual = build("usual")
    assert usual.counts.unknown_by_script == {} and summary.warnings(usual) == []


def test_a_note_names_what_is_held_out(build, tmp_path):
    (tmp_path / "few.txt").write_text(
        "\n\n".join("word " * (number + 3) for number in range(5)) + "\n")
    made = build("few", text=str(tmp_path / "few.txt"), held_out_fraction=0.01)
    (shard,) = made.shards_of("eval")
    assert shard.tokens == 5 * 4 + 3  # Five words of four letters; [CLS] and two [SEP].
    assert "1 of the 5 documents was held out" in summary.held_out_note(made)
    (tmp_path / "one.txt").write_text("a single document\n")
    note = summary.held_out_note(build("single", text=str(tmp_path / "one.txt")))
    assert "the text is a single document. Put blank lines between documents" in note
    (tmp_path / "equal.txt").write_text("one document\n\n" * 30)
    note = summary.held_out_note(build("equal", text=str(tmp_path / "equal.txt")))
    assert "its 30 documents are equal or begin alike" in note
