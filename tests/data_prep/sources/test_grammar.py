"""What --input means, and that nothing with two meanings is taken for either."""

import pytest

from data_prep.sources import grammar
from data_prep.sources.registry import SOURCES, open_source
from electra_tf.platform.errors import UserError
from tests.data_prep.reading import read


def entries(text):
    return [(entry.source, entry.pattern, entry.field, entry.share)
            for entry in grammar.entries_of(text, SOURCES, ("jsonl", "parquet", "hf", "tfds"))]


@pytest.mark.parametrize(("text", "meaning"), [
    ("a*.txt", [("text", "a*.txt", "", 0)]),
    ("a.txt, b.txt,", [("text", "a.txt", "", 0), ("text", "b.txt", "", 0)]),
    ("gs://bucket/a:b", [("text", "gs://bucket/a:b", "", 0)]),
    ("gs://bucket/*.txt:0.5,hdfs://x:1", [
        ("text", "gs://bucket/*.txt", "", 0.5), ("text", "hdfs://x", "", 1)]),
    ("jsonl:gs://bucket/a.jsonl#body:.25,text:b:3.", [
        ("jsonl", "gs://bucket/a.jsonl", "body", 0.25), ("text", "b", "", 3)]),
    ("tfds:wiki40b/en:1.3.0", [("tfds", "wiki40b/en:1.3.0", "", 0)]),
    ("tfds:lm1b:1.1.0#text:2,books:b#c:1", [
        ("tfds", "lm1b:1.1.0", "text", 2), ("books", "b#c", "", 1)]),
    ("text:odd:name.txt", [("text", "odd:name.txt", "", 0)]),
    ("hf:a/b@c:20231101.en:train#body:0.5", [("hf", "a/b@c:20231101.en:train", "body", 0.5)]),
    ("jsonl:a#b#c", [("jsonl", "a#b", "c", 0)]),
    ("embedded:python", [("embedded", "python", "", 0)]),
])
def test_an_input_means(text, meaning):
    assert entries(text) == meaning


@pytest.mark.parametrize(("text", "message"), [
    ("", "--input is empty"),
    (" , ,", "--input is empty"),
    ("wikipedai:a.xml", "no file matches 'wikipedai:a.xml', and 'wikipedai' is no source; the "
     "sources are text, wikipedia, wikiextractor, books, jsonl, parquet, hf, tfds, embedded"),
    ("jsonl:a*,b*", "'b.*' stands beside a source with a name and has none.*write text:b"),
    ("text:a:0.5,books:b", "'books:b' has no share and others have; give every source one"),
    ("a:0,b:1", "a share must be in \\(0, 1000000\\]. Received: 'a:0'"),
    ("text:a:" + "9" * 400 + ",b:1", "a share must be in \\(0, 1000000\\]"),
    ("text:1", "could be a path that ends with a number or a source with the share 1"),
    ("jsonl:a#", "no name stands behind the # of 'jsonl:a#'"),
    ("jsonl:#text", "nothing stands behind jsonl: in 'jsonl:#text'"),
    ("books:", "nothing stands behind books:"),
    ("embedded:ruby", "the embedded texts are python, docstrings"),
    ("embedded:python:0.5,embedded:python:0.5", "names 'embedded:python' twice"),
    ("text:\0", "no file matches"),
    ("nosuch://a:0.5,b:0.5", "TensorFlow has no file system for nosuch://"),
])
def test_a_mistake_is_one_line(text, message):
    with pytest.raises(UserError, match=message):
        open_source(text)


def test_files_that_look_like_sources_are_asked_about(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "books:a.txt").write_text("One.")
    (tmp_path / "b.txt:0.5").write_text("Two.")
    (tmp_path / "odd:c.txt").write_text("Three.")
    with pytest.raises(UserError, match="'books:a.txt' is a file here and could name a source too"):
        open_source("books:a.txt")
    with pytest.raises(UserError, match="could be a path that ends with a number or a source"):
        open_source("b.txt:0.5,odd:c.txt:0.5")
    assert read("text:books:a.txt") == read("./books:a.txt") == [["One."]]
    assert read("odd:c.txt") == [["Three."]]
