"""--on_error=skip: what is left out, and where it is told."""

import pytest

from data_prep import record_builder, settings, summary
from data_prep.cleaning.settings import CleaningSettings
from data_prep.local_runner import LocalRunner
from data_prep.sources.registry import open_source
from data_prep.sources.source import SourceOptions
from electra_tf.platform.errors import UserError
from electra_tf.text.tokenization import TextSettings

SKIP = SourceOptions(on_error="skip")


@pytest.fixture
def damaged(tmp_path):
    """Three documents, of which the second isn't UTF-8."""
    path = tmp_path / "text.txt"
    path.write_bytes(b"the first one\n\nthe \xff second\n\nthe third one\n")
    return path


@pytest.fixture
def build(tmp_path, vocabulary):
    def built(source, **cleaning):
        return record_builder.build_records(
            source, TextSettings(vocabulary=vocabulary), settings.BuildSettings(
                max_seq_length=32, held_out_fraction=0.0,
                cleaning=CleaningSettings(**cleaning)),
            tmp_path / "records", LocalRunner())
    return built


def test_a_build_counts_what_it_skips_and_says_why(damaged, build):
    made = build(open_source(str(damaged), SKIP))
    assert (made.counts.documents, made.counts.skipped_documents, made.counts.lines) == (3, 1, 2)
    assert [str(damaged) in line and "0xff" in line for line in made.skipped] == [True]
    assert "damaged documents skipped     1\n" in summary.table(made, 1.0)


def test_without_skipping_a_build_stops(damaged, build):
    with pytest.raises(UserError, match="text.txt is not UTF-8: bad byte 0xff at offset 19"):
        build(open_source(str(damaged)), drop_near_duplicates=True)
    made = build(open_source(str(damaged), SKIP), drop_near_duplicates=True)
    assert (made.counts.skipped_documents, made.counts.lines) == (1, 2)


def test_files_of_several_sources_are_counted_apart(damaged, build, tmp_path):
    (tmp_path / "text.jsonl").write_text('{"text": "from an object"}\n{"text": 3}\n')
    made = build(open_source(f"text:{damaged},jsonl:{tmp_path}/text.jsonl", SKIP))
    assert [(one.name, one.documents, one.text_bytes) for one in made.sources] == [
        (f"text:{damaged}", 2, len("the first onethe third one")),
        (f"jsonl:{tmp_path}/text.jsonl", 1, len("from an object"))]
    assert made.counts.skipped_documents == len(made.skipped) == 2
