"""Records of cleaned text: what the manifest counts, and that nothing depends on workers."""

import json
import pathlib

import pytest
import tensorflow as tf

from data_prep import record_builder, vocabulary_learner
from data_prep.cleaning import plan, survey
from data_prep.cleaning.settings import CleaningSettings
from data_prep.local_runner import LocalRunner
from data_prep.sources import registry as sources
from electra_tf.data import manifest
from electra_tf.data.pipeline import parse_examples
from electra_tf.platform.errors import UserError
from electra_tf.text.normalization import UNCASED
from tests.data_prep.conftest import make_text

EVERYTHING = {
    "unicode": "nfkc", "drop_letterless_lines": True, "drop_boilerplate": True,
    "min_line_characters": 3, "max_line_characters": 5000, "drop_duplicate_lines": True,
    "drop_near_duplicates": True, "languages": ("en", "la", "zxx"), "language_confidence": 0.01,
    "min_language_characters": 1000}


def files(directory):
    return {path.name: path.read_bytes() for path in directory.glob("*.tfrecord")}


def words_of(directory, made, vocabulary):
    """Returns all text of the records, without spaces."""
    pieces = []
    for shard in made.shards:
        for record in tf.data.TFRecordDataset(str(directory / shard.name)).batch(256):
            batch = parse_examples(record, made.max_seq_length, made.token_bytes, vocabulary.pad_id)
            pieces += [vocabulary.tokens[i] for i in
                       tf.boolean_mask(batch.ids, batch.valid).numpy().tolist()]
    return "".join(piece.removeprefix("##") for piece in pieces if not piece.startswith("["))


@pytest.fixture
def dirty(tmp_path):
    """A text of 30 documents with something for each measure."""
    documents = make_text(30, seed=7).split("\n\n")
    documents[3] += "\n123 456\nall rights reserved\nab"
    documents[4] = documents[2] + "\nand more"
    documents[5] += "\n" + documents[6].splitlines()[0]
    path = tmp_path / "dirty.txt"
    path.write_text("\n\n".join(documents) + "\n")
    return str(path)


@pytest.fixture
def tasks(tmp_path):
    """Task files with a test text that is the corpus's line, by words."""
    def put(line):
        directory = tmp_path / "tasks"
        directory.mkdir(exist_ok=True)
        (directory / "own.jsonl").write_text(json.dumps({"text": line}) + "\n")
        return str(directory)
    return put


@pytest.mark.slow
def test_neither_bytes_nor_counts_depend_on_the_number_of_workers(build, dirty, tmp_path, tasks):
    made = built_with_everything(build, dirty, tasks, "with 1", workers=1)
    assert made == built_with_everything(build, dirty, tasks, "with 2", workers=2)
    assert files(tmp_path / "with 1") == files(tmp_path / "with 2")


def built_with_everything(build, dirty, tasks, name, workers):
    line = max(pathlib.Path(dirty).read_text().splitlines(), key=len)
    cleaning = CleaningSettings(**EVERYTHING, decontaminate=tasks(line))
    return build(name, text=dirty, num_workers=workers, shard_text_bytes=4000, cleaning=cleaning)


def test_every_measure_is_counted(build, dirty, tasks):
    made = built_with_everything(build, dirty, tasks, "records", workers=1)
    counts = made.counts
    assert (counts.letterless_lines, counts.boilerplate_lines, counts.short_or_long_lines,
            counts.near_duplicate_documents, counts.contaminated_lines) == (1, 1, 1, 1, 1)
    assert counts.duplicate_lines == 1
    assert len(made.shards) > 3


def test_the_records_hold_what_is_left_and_the_manifest_counts_the_rest(
        build, tmp_path, vocabulary):
    text = tmp_path / "text.txt"
    text.write_text("first line\n42\nsecond line\n\nfirst line\nthird line\n")
    made = build(text=str(text), held_out_fraction=0.0,
                 cleaning=CleaningSettings(drop_duplicate_lines=True, drop_letterless_lines=True))
    assert words_of(tmp_path / "records", made, vocabulary) == "firstlinesecondlinethirdline"
    counts = made.counts
    assert (counts.documents, counts.lines, counts.duplicate_lines, counts.letterless_lines,
            counts.dropped_text_bytes) == (2, 3, 1, 1, len("42first line"))
    assert manifest.load(tmp_path / "records") == made
    assert made.settings["drop_duplicate_lines"] is True
    assert {path.name for path in (tmp_path / "records").iterdir()} == {
        "manifest.json", "vocab.txt", "vocab.txt.manifest.json",
        *(shard.name for shard in made.shards)}


def test_an_interrupted_build_goes_on_with_its_decisions(build, dirty, tmp_path, monkeypatch):
    cleaning = CleaningSettings(drop_duplicate_lines=True)
    whole = build("whole", text=dirty, cleaning=cleaning)

    class Stopped(Exception):
        pass

    def stop(*_):
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(record_builder, "_finish_unit", stop)
        with pytest.raises(Stopped):
            build(text=dirty, cleaning=cleaning)
    assert (tmp_path / "records" / ".cleaning-decisions").exists()
    monkeypatch.setattr(survey, "survey", stop)
    assert build(text=dirty, cleaning=cleaning) == whole
    assert not list((tmp_path / "records").glob(plan.FILES))


def test_a_vocabulary_is_learned_from_lines_that_stay(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("one ﬁsh\nall rights reserved\n42\n")
    counts = vocabulary_learner.count_corpus_words(
        sources.open_source(str(text)), UNCASED, LocalRunner(1), CleaningSettings(
            unicode="nfkc", drop_boilerplate=True, drop_letterless_lines=True))
    assert counts == {b"one": 1, b"fish": 1}
    text.write_text("42\n")
    with pytest.raises(UserError, match="--input holds no word: .* dropped by cleaning"):
        vocabulary_learner.count_corpus_words(
            sources.open_source(str(text)), UNCASED, LocalRunner(1),
            CleaningSettings(drop_letterless_lines=True))
