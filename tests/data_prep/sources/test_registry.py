"""What --input means: each entry, mistakes, and several sources as one."""

import pickle

import pytest

from data_prep.documents import lines_of
from data_prep.sources import files
from data_prep.sources.registry import entries_of, open_source
from electra_tf.platform.errors import UserError
from tests.data_prep.reading import dump, page, read


@pytest.mark.parametrize(("text", "meaning"), [
    ("a.txt, b*.txt,", [("text", "a.txt", "text"), ("text", "b*.txt", "text")]),
    ("gs://bucket/a:b", [("text", "gs://bucket/a:b", "text")]),
    ("jsonl:gs://bucket/a.jsonl#body,text:b", [
        ("jsonl", "gs://bucket/a.jsonl", "body"), ("text", "b", "text")]),
    ("tfds:wiki40b/en:1.3.0,books:b#c", [
        ("tfds", "wiki40b/en:1.3.0", "text"), ("books", "b#c", "text")]),
    ("text:odd:name.txt", [("text", "odd:name.txt", "text")]),
    ("hf:a/b@c:20231101.en:train#body", [("hf", "a/b@c:20231101.en:train", "body")]),
    ("jsonl:a#b#c", [("jsonl", "a#b", "c")]),
])
def test_an_input_means(text, meaning):
    assert [(one.source, one.pattern, one.field) for one in entries_of(text)] == meaning


@pytest.mark.parametrize(("text", "message"), [
    (" , ,", "--input is empty"),
    ("wikipedai:a.xml", "no file matches 'wikipedai:a.xml', and 'wikipedai' is no source; the "
     "sources are text, wikipedia, books, jsonl, parquet, hf, tfds, embedded"),
    ("jsonl:a*,b*", "'b.*' stands beside a source with a name and has none.*write text:b"),
    ("jsonl:a#", "'jsonl:a#' must be jsonl:PATTERN#FIELD"),
    ("books:", "'books:' must be books:PATTERN;"),
    ("embedded:ruby", "the embedded texts are python, docstrings"),
    ("embedded:python,embedded:python", "names 'embedded:python' twice"),
    ("text:\0", "no file matches"),
    ("nosuch://a", "TensorFlow has no file system for nosuch://"),
])
def test_a_mistake_is_one_line(text, message):
    with pytest.raises(UserError, match=message):
        open_source(text)


def test_a_file_with_a_colon_is_plain_text_unless_a_source_has_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "books:a.txt").write_text("One.")
    (tmp_path / "odd:c.txt").write_text("Three.")
    assert read("text:books:a.txt") == read("./books:a.txt") == [["One."]]
    assert read("odd:c.txt") == [["Three."]]


def test_pieces_in_order_have_the_documents_of_the_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PIECE_BYTES", 1)
    (tmp_path / "a.txt").write_text("One.\n\nTwo.")
    (tmp_path / "b.txt").write_text("More.")
    (tmp_path / "c.jsonl").write_text('{"text": "Three."}\n')
    (tmp_path / "d.xml").write_bytes(dump(page("A", "Four.")))
    source = open_source(f"jsonl:{tmp_path}/*.jsonl,text:{tmp_path}/*.txt,books:{tmp_path}/a.txt,"
                         f"wikipedia:{tmp_path}/d.xml")
    pieces = [pickle.loads(pickle.dumps(piece)) for piece in source.pieces()]
    assert len(pieces) == 5
    whole = list(source.documents())
    assert {part.source for part in whole} == {0, 1, 2, 3}
    assert [part for piece in pieces for part in piece.documents()] == whole
    assert list(lines_of(whole, pieces[0].parse)) == list(lines_of(whole, source.parse)) == [
        "Three.", "", "One.", "", "Two.", "", "More.", "", "One.", "Two.", "", "Four.", ""]
