"""Data sets of a hub on this machine: which files are read, at which commit, and every refusal."""

import hashlib
import re
import time
from urllib.parse import unquote, urlsplit

import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import constants

from data_prep.local_runner import LocalRunner
from data_prep.sources.registry import open_source
from electra_tf.platform.errors import UserError
from tests.data_prep.reading import documents_of, read
from tests.support import hub_server
from tests.support.refusals import refused

CONVERTED = "refs/convert/parquet"
_INFO = re.compile(r"/api/datasets/([^/]+/[^/]+)(?:/revision/(.+))?")
_FILE = re.compile(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


class Handler(hub_server.Handler):
    """Serves `data_sets`: name -> revision -> file name -> content."""

    def _answer(self):
        path = unquote(urlsplit(self.path).path)
        self.server.requests.append(f"{self.command} {path}")
        name, revision, *file = (_INFO.fullmatch(path) or _FILE.fullmatch(path)).groups()
        if name == "a/gated":
            return self._refuse(403, "GatedRepo")
        if name not in self.server.data_sets:
            return self._refuse(401, "RepoNotFound")
        revisions = self.server.data_sets[name]
        files = {known: found for ref, found in revisions.items()
                 for known in (ref, commit(name, ref))}
        if (revision or "main") not in files:
            return self._refuse(404, "RevisionNotFound")
        sha = revision if revision not in (None, *revisions) else commit(name, revision or "main")
        found = files[revision or "main"]
        if not file:
            return self._json({"id": name, "sha": sha, "tags": [], "siblings": [
                {"rfilename": one, "size": len(content), "blobId": "0"}
                for one, content in found.items()]})
        return self._content(found[file[0]], sha)


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
    ("a/news:de", ["Eins.", "Zwei."]), ("a/news:de:train", ["Eins.", "Zwei."]),
    ("a/news:en:test#body", ["Two."]), ("a/own", ["One.", "Two."]),
    ("a/own:train", ["One.", "Two."]), ("a/own@main:default:train", ["One.", "Two."]),
    (f"a/news@{commit('a/news', CONVERTED)}:en:train", ["One."])])
def test_a_name_selects_files(hub, name, texts):
    assert read(f"hf:{name}") == [[text] for text in texts]


def test_files_are_downloaded_when_they_are_read_and_once(hub):
    source = open_source("hf:a/news:de")
    assert source.sha256() == open_source("hf:a/news:de").sha256()
    assert not any("/resolve/" in request for request in hub.requests)
    assert documents_of(source) == documents_of(source) == [["Eins."], ["Zwei."]]
    assert sum(request.startswith("GET /datasets/") for request in hub.requests) == 2
    assert 0 < source.position() == source.size


def test_the_manifest_has_the_commit_and_another_one_is_refused(hub, build):
    hub.data_sets["a/news"][CONVERTED]["de/train/0000.parquet"] = parquet("ein wort", "zwei")
    pinned = f"a/news@{commit('a/news', CONVERTED)}"
    found = build(text="hf:a/news:de", runner=LocalRunner())
    assert found.settings["hub_revisions"] == pinned and found.counts.documents == 3
    hub.data_sets["a/news"]["v2"] = {"de/train/0000.parquet": parquet("drei", "vier")}
    with pytest.raises(UserError, match=f"hub_revisions \\('{pinned}' there, 'a/news@"):
        build(text="hf:a/news@v2:de")
    assert build(text=f"hf:{pinned}:de") is None  # Finished.


@pytest.mark.parametrize(("name", "problem"), [
    ("news", "must be hf:OWNER/DATASET"),
    ("a/nothing", "a/nothing is not a public data set at http://127.0.0.1:.* hf auth login"),
    ("a/gated", "a/gated is gated .*: accept its terms at http.*/datasets/a/gated, then"),
    ("a/own@v9", "a/own has no revision 'v9'; http.*/datasets/a/own/commits lists"),
    ("a/csv", "a/csv has no Parquet files of splits"),
    ("a/news", "a/news has no configuration 'default'; name one after a colon: de, en"),
    ("a/news:eng", "has no configuration 'eng'.* Did you mean 'en'"),
    ("a/news:en:dev", "a/news:en has no split 'dev'; name one after a colon: test, train"),
    ("a/news:en:test", "must have one column 'text'; it has ..body"),
])
def test_a_refusal_is_one_line(hub, name, problem):
    with refused(problem):
        read(f"hf:{name}")


@pytest.mark.parametrize("name", ["../x.parquet", "/etc/x.parquet", "data/../../x.parquet"])
def test_a_data_set_that_lists_paths_outside_its_directory_is_refused(hub, name):
    hub.data_sets["a/own"]["main"][name] = parquet("One.")
    with refused(f"a/own lists the file '{name}', which is outside its directory"):
        read("hf:a/own")


def test_a_file_with_another_hash_than_the_hubs_is_refused(hub):
    hub.etags = lambda content: "0" * 64
    with refused("isn't the Hub's file: its hash is .*, the Hub's 000000000000"):
        read("hf:a/own")


def test_without_a_connection_there_is_one_line(hub, monkeypatch):
    source = open_source("hf:a/own")
    hub.shutdown()
    hub.server_close()
    huggingface_hub.close_session()
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # Between five attempts.
    with pytest.raises(UserError, match="a/own is not whole in the cache .* can't be reached"):
        documents_of(source)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    huggingface_hub.close_session()
    with pytest.raises(UserError, match="HF_HUB_OFFLINE is set; unset it"):
        open_source("hf:a/own")
