"""The summary of a build: skipped, held-out and counted documents, and unknown words."""

import pytest

from data_prep import summary
from data_prep.settings import CleaningSettings
from data_prep.sources.source import SourceOptions

NEAR = CleaningSettings(drop_near_duplicates=True)
SKIP = SourceOptions(on_error="skip")


@pytest.fixture
def damaged(tmp_path):
    """Three documents, of which the second isn't UTF-8."""
    path = tmp_path / "text.txt"
    path.write_bytes(b"the first one\n\nthe \xff second\n\nthe third one\n")
    return path


def test_skipped_documents_are_counted_and_explained(damaged, build):
    made = build(text=str(damaged), options=SKIP)
    assert (made.counts.documents, made.counts.skipped_documents, made.counts.lines) == (3, 1, 2)
    assert [str(damaged) in line and "0xff" in line for line in made.skipped] == [True]
    assert "damaged documents skipped     1\n" in summary.table(made, 1.0)


def test_files_of_several_sources_are_counted_apart(damaged, build, tmp_path):
    (tmp_path / "text.jsonl").write_text('{"text": "from an object"}\n{"text": 3}\n')
    made = build(text=f"text:{damaged},jsonl:{tmp_path}/text.jsonl", options=SKIP)
    assert [(source.name, source.documents, source.text_bytes) for source in made.sources] == [
        (f"text:{damaged}", 2, len("the first onethe third one")),
        (f"jsonl:{tmp_path}/text.jsonl", 1, len("from an object"))]
    assert made.counts.skipped_documents == len(made.skipped) == 2


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
