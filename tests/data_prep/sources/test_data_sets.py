"""TensorFlow Datasets, of data sets that are made here."""

import shutil

import numpy as np
import pytest
import tensorflow_datasets as tfds

from data_prep.sources.registry import open_source
from data_prep.sources.source import SourceOptions
from electra_tf.platform.errors import UserError
from tests.data_prep.reading import documents_of, read, read_skipping

WIKI = ("\n_START_ARTICLE_\nParis\n_START_SECTION_\nHistory\n_START_PARAGRAPH_\n"
        "One.\u2029_NEWLINE_Two._NEWLINE_ Three.")
LINES = [[f"Text {number}.", "More."] for number in range(50)]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    home = tmp_path_factory.mktemp("tfds")
    text = tfds.features.Text()
    for name, config, version, features, rows in (
            ("letters", None, "1.0.0", {"text": text, "body": text, "size": "int64"},
             [{"text": f"Text {n}.\nMore.", "body": f"Body {n}.", "size": n} for n in range(50)]),
            ("wiki40b", "en", "1.3.0", {"text": text, "wikidata_id": text, "version_id": text},
             [{"text": WIKI, "wikidata_id": "Q90", "version_id": "1"}])):
        tfds.dataset_builders.store_as_tfds_dataset(
            name=name, version=version, config=config, data_dir=home, disable_shuffling=True,
            features=tfds.features.FeaturesDict(
                {key: value if value is text else tfds.features.Scalar(np.int64)
                 for key, value in features.items()}),
            split_datasets={"train": list(enumerate(rows)), "test": list(enumerate(rows[:2]))})
    return str(home)


def test_a_row_is_a_document(data_dir):
    source = open_source("tfds:letters", SourceOptions(tfds_data_dir=data_dir))
    assert documents_of(source) == LINES
    assert source.position() == source.size > 0
    assert source.pieces() == (source,)


def test_feature_and_split_have_names(data_dir):
    assert read("tfds:letters:1.0.0#body", tfds_data_dir=data_dir, tfds_split="train[:3]") == [
        [f"Body {number}."] for number in range(3)]
    assert read("tfds:letters", tfds_data_dir=data_dir, tfds_split="test+test") == LINES[:2] * 2
    digests = {
        open_source(f"tfds:letters{field}", SourceOptions(
            tfds_data_dir=data_dir, tfds_split=split)).sha256()
        for field in ("", "#body") for split in ("train", "test", "train[:3]")}
    assert len(digests) == 6


def test_the_words_of_wiki40b_are_no_text(data_dir):
    assert read("tfds:wiki40b/en", tfds_data_dir=data_dir) == [["One.", "Two.", "Three."]]
    assert read("tfds:wiki40b/en", tfds_data_dir=data_dir, wiki_headings=True) == [
        ["Paris", "History", "One.", "Two.", "Three."]]


@pytest.mark.parametrize(("name", "changes", "message"), [
    ("nosuchset", {}, "TensorFlow Datasets has no 'nosuchset' in .* and can't get it"),
    ("letters#size", {}, "letters has no text feature 'size'; it has body, text"),
    ("letters", {"tfds_split": "dev"}, "letters has no split 'dev'; it has train, test"),
])
def test_a_mistake_is_one_line(data_dir, name, changes, message):
    with pytest.raises(UserError, match=message):
        read(f"tfds:{name}", tfds_data_dir=data_dir, **changes)


def test_a_file_cut_short_is_told(data_dir, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(data_dir, copy)
    (path,) = copy.glob("letters/1.0.0/*train*")
    path.write_bytes(path.read_bytes()[:-700])
    found, (message,) = read_skipping("tfds:letters", tfds_data_dir=str(copy))
    assert found == LINES[:len(found)] and 30 < len(found) < 50
    assert f"is corrupt or cut short after row {len(found)}" in message
