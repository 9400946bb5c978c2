"""What a build tells: documents that --on_error=skip leaves out, and words it does not know."""

import pytest

from data_prep import summary
from data_prep.cleaning.settings import CleaningSettings
from data_prep.sources.source import SourceOptions

NEAR = CleaningSettings(drop_near_duplicates=True)
SKIP = SourceOptions(on_error="skip")


@pytest.fixture
def damaged(tmp_path):
    """Three documents, of which the second isn't UTF-8."""
    path = tmp_path / "text.txt"
    path.write_bytes(b"the first one\n\nthe \xff second\n\nthe third one\n")
    return path


def test_a_build_counts_what_it_skips_and_says_why(damaged, build):
    made = build(text=str(damaged), options=SKIP)
    assert (made.counts.documents, made.counts.skipped_documents, made.counts.lines) == (3, 1, 2)
    assert [str(damaged) in line and "0xff" in line for line in made.skipped] == [True]
    assert "damaged documents skipped     1\n" in summary.table(made, 1.0)


def test_files_of_several_sources_are_counted_apart(damaged, build, tmp_path):
    (tmp_path / "text.jsonl").write_text('{"text": "from an object"}\n{"text": 3}\n')
    made = build(text=f"text:{damaged},jsonl:{tmp_path}/text.jsonl", options=SKIP)
    assert [(one.name, one.documents, one.text_bytes) for one in made.sources] == [
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
