"""Records of cleaned text: what the manifest counts, and that nothing depends on workers."""

import json
import pathlib

import pytest

from data_prep import vocabulary_learner
from data_prep.cleaning import plan
from data_prep.local_runner import LocalRunner
from data_prep.settings import BuildSettings, CleaningSettings
from data_prep.sources.registry import open_source
from electra_tf.core.errors import UserError
from electra_tf.text.normalization import UNCASED
from tests.data_prep.reading import make_text

EVERYTHING = {
    "unicode": "nfkc", "drop_letterless_lines": True, "min_line_characters": 3,
    "max_line_characters": 5000, "drop_duplicate_lines": True, "drop_near_duplicates": True}


@pytest.fixture
def dirty(tmp_path):
    """A text of 30 documents with something for each filter."""
    documents = make_text(30, seed=7).split("\n\n")
    documents[3] += "\n123 456\nab"
    documents[4] = documents[2] + "\nand more"
    documents[5] += "\n" + documents[6].splitlines()[0]
    path = tmp_path / "dirty.txt"
    path.write_text("\n\n".join(documents) + "\n")
    return str(path)


def test_only_filters_that_are_on_are_settings_of_a_build():
    plain = BuildSettings().identity(UNCASED)
    made = BuildSettings(cleaning=CleaningSettings(drop_near_duplicates=True))
    assert made.identity(UNCASED) == plain | {
        "drop_near_duplicates": True, "near_duplicate_threshold": 0.8,
        "near_duplicate_permutations": 128}


def test_every_filter_is_counted(build, dirty, tmp_path):
    """The longest line is a test text."""
    (tmp_path / "tasks").mkdir()
    line = max(pathlib.Path(dirty).read_text().splitlines(), key=len)
    (tmp_path / "tasks" / "own.jsonl").write_text(json.dumps({"text": line}) + "\n")
    made = build(text=dirty, shard_text_bytes=4000, cleaning=CleaningSettings(
        **EVERYTHING, decontaminate=str(tmp_path / "tasks")))
    counts = made.counts
    assert (counts.letterless_lines, counts.short_or_long_lines,
            counts.near_duplicate_documents, counts.contaminated_lines,
            counts.duplicate_lines) == (1, 1, 1, 1, 1)
    assert len(made.shards) > 3


def test_an_interrupted_build_reuses_its_decisions(
        build, stopped_build, dirty, tmp_path, monkeypatch):
    cleaning = CleaningSettings(drop_duplicate_lines=True)
    whole = build("whole", text=dirty, cleaning=cleaning)
    stopped_build(0, text=dirty, cleaning=cleaning)
    assert (tmp_path / "records" / ".cleaning-decisions").exists()
    monkeypatch.setattr(plan, "survey_unit", None)  # A second survey would fail.
    assert build(text=dirty, cleaning=cleaning) == whole
    assert not list((tmp_path / "records").glob(plan.FILES))


def test_a_vocabulary_is_learned_from_cleaned_lines(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("one ﬁsh\n42\n")
    counts = vocabulary_learner.count_corpus_words(
        open_source(str(text)), UNCASED, LocalRunner(1), CleaningSettings(
            unicode="nfkc", drop_letterless_lines=True))
    assert counts == {b"one": 1, b"fish": 1}
    text.write_text("42\n")
    with pytest.raises(UserError, match="--input holds no word: .* dropped by cleaning"):
        vocabulary_learner.count_corpus_words(
            open_source(str(text)), UNCASED, LocalRunner(1),
            CleaningSettings(drop_letterless_lines=True))
