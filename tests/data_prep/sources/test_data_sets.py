"""Data sets by name: of a hub on this machine, and of TensorFlow Datasets made here."""

import hashlib
import re
import shutil
import time
from urllib.parse import unquote, urlsplit

import huggingface_hub
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow_datasets as tfds
from huggingface_hub import constants

from data_prep.sources.registry import open_source
from data_prep.sources.source import SourceOptions
from electra_tf.core.errors import UserError
from tests.data_prep.reading import documents_of, read, read_skipping
from tests.support import hub_server
from tests.support.refusals import refused

CONVERTED = "refs/convert/parquet"
_INFO = re.compile(r"/api/datasets/([^/]+/[^/]+)(?:/revision/(.+))?")
_FILE = re.compile(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
WIKI = ("\n_START_ARTICLE_\nParis\n_START_SECTION_\nHistory\n_START_PARAGRAPH_\n"
        "One.\u2029_NEWLINE_Two._NEWLINE_ Three.")
LINES = [[f"Text {number}.", "More."] for number in range(50)]


class Handler(hub_server.Handler):
    """Serves `data_sets`: name -> revision -> file name -> content."""

    def _answer(self):
        path = unquote(urlsplit(self.path).path)
        self.server.requests.append(f"{self.command} {path}")
        name, revision, *file = (_INFO.fullmatch(path) or _FILE.fullmatch(path)).groups()
        if name not in self.server.data_sets:
            return self._refuse(401, "RepoNotFound")
        revisions = self.server.data_sets[name]
        by_commit = {commit(name, ref): files for ref, files in revisions.items()}
        sha = revision if revision in by_commit else commit(name, revision or "main")
        if sha not in by_commit:
            return self._refuse(404, "RevisionNotFound")
        if not file:
            return self._json({"id": name, "sha": sha, "tags": [], "siblings": [
                {"rfilename": known, "size": len(content), "blobId": "0"}
                for known, content in by_commit[sha].items()]})
        return self._content(by_commit[sha][file[0]], sha)


def commit(name, revision):
    return hashlib.sha1(f"{name} {revision}".encode()).hexdigest()


def parquet(*texts, column="text"):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({column: list(texts)}), sink)
    return sink.getvalue().to_pybytes()


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A server with one data set of the Hub's form, one of its own, and one without Parquet."""
    with hub_server.running(monkeypatch, tmp_path, Handler) as server:
        server.data_sets = {
            "a/news": {"main": {"news.csv": b"text"}, CONVERTED: {
                "de/train/0000.parquet": parquet("Eins."),
                "de/train/0001.parquet": parquet("Zwei."),
                "en/train/0000.parquet": parquet("One."),
                "en/test/0000.parquet": parquet("Two.", column="body")}},
            "a/own": {"main": {"data/train-00000-of-00002-ab.parquet": parquet("One."),
                               "data/train-00001-of-00002-cd.parquet": parquet("Two."),
                               "README.md": b"Text."}},
            "a/csv": {"main": {"train.csv": b"text"}}}
        yield server


@pytest.mark.parametrize(("name", "texts"), [
    ("a/news:de", ["Eins.", "Zwei."]), ("a/news:en:test#body", ["Two."]),
    ("a/own", ["One.", "Two."]), ("a/own@main:default:train", ["One.", "Two."]),
    (f"a/news@{commit('a/news', CONVERTED)}:en:train", ["One."])])
def test_a_name_selects_files_of_the_hub(hub, name, texts):
    assert read(f"hf:{name}") == [[text] for text in texts]


def test_a_file_is_downloaded_once_and_when_it_is_read(hub):
    source = open_source("hf:a/news:de")
    assert source.sha256() == open_source("hf:a/news:de").sha256()
    assert not any("/resolve/" in request for request in hub.requests)
    assert documents_of(source) == documents_of(source) == [["Eins."], ["Zwei."]]
    assert sum(request.startswith("GET /datasets/") for request in hub.requests) == 2
    assert 0 < source.position() == source.size


def test_a_build_records_the_commit_and_refuses_another(hub, build):
    hub.data_sets["a/news"][CONVERTED]["de/train/0000.parquet"] = parquet("ein wort", "zwei")
    pinned = f"a/news@{commit('a/news', CONVERTED)}"
    made = build(text="hf:a/news:de")
    assert made.settings["hub_revisions"] == pinned and made.counts.documents == 3
    hub.data_sets["a/news"]["v2"] = {"de/train/0000.parquet": parquet("drei", "vier")}
    with pytest.raises(UserError, match=f"hub_revisions \\('{pinned}' there, 'a/news@"):
        build(text="hf:a/news@v2:de")
    assert build(text=f"hf:{pinned}:de") is None  # Finished.


@pytest.mark.parametrize(("name", "problem"), [
    ("a/nothing", "a/nothing is not a public data set at http://127.0.0.1:.* hf auth login"),
    ("a/own@v9", "a/own has no revision 'v9'; http.*/datasets/a/own/commits lists"),
    ("a/csv", "a/csv has no Parquet files of splits"),
    ("a/news", "a/news has no configuration 'default'; name one after a colon: de, en"),
    ("a/news:en:dev", "a/news:en has no split 'dev'; name one after a colon: test, train"),
    ("a/news:en:test", "must have one column 'text'; it has ..body"),
])
def test_a_wrong_name_of_the_hub_is_one_line(hub, name, problem):
    with refused(problem):
        read(f"hf:{name}")


@pytest.mark.parametrize("name", ["/etc/x.parquet", "data/../../x.parquet"])
def test_a_data_set_with_paths_outside_its_directory_is_refused(hub, name):
    hub.data_sets["a/own"]["main"][name] = parquet("One.")
    with refused(f"a/own lists the file '{name}', which is outside its directory"):
        read("hf:a/own")


def test_a_wrong_file_and_no_connection_are_one_line(hub, monkeypatch):
    hub.etags = lambda content: "0" * 64
    with refused("isn't the Hub's file: its hash is .*, the Hub's 000000000000"):
        read("hf:a/own")
    source = open_source("hf:a/news:de")
    hub.shutdown()
    hub.server_close()
    huggingface_hub.close_session()
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # Between five attempts.
    with pytest.raises(UserError, match="a/news is incomplete in the cache .* can't be reached"):
        documents_of(source)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    huggingface_hub.close_session()
    with pytest.raises(UserError, match="HF_HUB_OFFLINE is set; unset it"):
        open_source("hf:a/own")


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """A directory of TensorFlow Datasets with the data sets letters and wiki40b/en."""
    home = tmp_path_factory.mktemp("tfds")
    text, number = tfds.features.Text(), tfds.features.Scalar(np.int64)
    for name, config, version, features, rows in (
            ("letters", None, "1.0.0", {"text": text, "body": text, "size": number},
             [{"text": f"Text {n}.\nMore.", "body": f"Body {n}.", "size": n} for n in range(50)]),
            ("wiki40b", "en", "1.3.0", {"text": text, "wikidata_id": text, "version_id": text},
             [{"text": WIKI, "wikidata_id": "Q90", "version_id": "1"}])):
        tfds.dataset_builders.store_as_tfds_dataset(
            name=name, version=version, config=config, data_dir=home, disable_shuffling=True,
            features=tfds.features.FeaturesDict(features),
            split_datasets={"train": list(enumerate(rows)), "test": list(enumerate(rows[:2]))})
    return str(home)


def test_name_feature_and_split_select_rows_of_tfds(data_dir):
    source = open_source("tfds:letters", SourceOptions(tfds_data_dir=data_dir))
    assert documents_of(source) == LINES
    assert source.position() == source.size > 0
    assert source.parts() == (source,)
    assert read("tfds:letters:1.0.0#body", tfds_data_dir=data_dir, tfds_split="train[:3]") == [
        [f"Body {number}."] for number in range(3)]
    assert read("tfds:letters", tfds_data_dir=data_dir, tfds_split="test+test") == LINES[:2] * 2
    digests = {
        open_source(f"tfds:letters{field}", SourceOptions(
            tfds_data_dir=data_dir, tfds_split=split)).sha256()
        for field in ("", "#body") for split in ("train", "test", "train[:3]")}
    assert len(digests) == 6


def test_the_markers_of_wiki40b_are_dropped(data_dir):
    assert read("tfds:wiki40b/en", tfds_data_dir=data_dir) == [["One.", "Two.", "Three."]]
    assert read("tfds:wiki40b/en", tfds_data_dir=data_dir, wiki_headings=True) == [
        ["Paris", "History", "One.", "Two.", "Three."]]


@pytest.mark.parametrize(("name", "changes", "message"), [
    ("nosuchset", {}, "TensorFlow Datasets has no 'nosuchset' in .* and can't download it"),
    ("letters#size", {}, "letters has no text feature 'size'; it has body, text"),
    ("letters", {"tfds_split": "dev"}, "letters has no split 'dev'; it has train, test"),
])
def test_a_wrong_name_of_tfds_is_one_line(data_dir, name, changes, message):
    with pytest.raises(UserError, match=message):
        read(f"tfds:{name}", tfds_data_dir=data_dir, **changes)


def test_a_file_of_tfds_that_is_cut_short_is_named(data_dir, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(data_dir, copy)
    (path,) = copy.glob("letters/1.0.0/*train*")
    path.write_bytes(path.read_bytes()[:-700])
    rows, (message,) = read_skipping("tfds:letters", tfds_data_dir=str(copy))
    assert rows == LINES[:len(rows)] and 30 < len(rows) < 50
    assert f"is corrupt or cut short after row {len(rows)}" in message
