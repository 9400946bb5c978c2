"""What --input means: each entry, mistakes, and several sources as one."""

import json
import pickle
import random

import pytest

from data_prep.documents import lines_of
from data_prep.sources import files
from data_prep.sources.registry import entries_of, open_source
from electra_tf.platform.errors import UserError
from tests.data_prep.reading import dump, page, read


@pytest.mark.parametrize(("text", "meaning"), [
    ("a.txt, b*.txt,", [("text", "a.txt", "text"), ("text", "b*.txt", "text")]),
    ("tfds:wiki40b/en:1.3.0,books:b#c", [
        ("tfds", "wiki40b/en:1.3.0", "text"), ("books", "b#c", "text")]),
    ("jsonl:a#b#c", [("jsonl", "a#b", "c")]),
    ("jsonl:gs://bucket/a.jsonl#body:.25,text:b:3.", [
        ("jsonl", "gs://bucket/a.jsonl", "body", 0.25), ("text", "b", "text", 3)]),
    ("tfds:lm1b:1.1.0#text:2,hf:a/b@c:20231101.en:train:1", [
        ("tfds", "lm1b:1.1.0", "text", 2), ("hf", "a/b@c:20231101.en:train", "text", 1)]),
])
def test_an_input_means(text, meaning):
    assert [(one.source, one.pattern, one.field, *([one.share] if one.share else []))
            for one in entries_of(text)] == meaning


@pytest.mark.parametrize(("text", "message"), [
    (" , ,", "--input is empty"),
    ("wikipedai:a.xml", "no file matches 'wikipedai:a.xml', and 'wikipedai' is no source; the "
     "sources are text, wikipedia, books, jsonl, parquet, hf, tfds, embedded"),
    ("jsonl:a*,b*", "'b.*' has no source name and others have.*write text:b"),
    ("text:a:0.5,books:b", "'books:b' has no share and others have; give every source one"),
    ("a:0,b:1", "a share must be in \\(0, 1000000\\]. Received: 'a:0'"),
    ("text:1", "could be a path that ends with a number or a source with the share 1"),
    ("embedded:python:0.5,embedded:python:0.5", "names 'embedded:python' twice"),
    ("jsonl:a#", "'jsonl:a#' must be jsonl:PATTERN#FIELD"),
    ("books:", "'books:' must be books:PATTERN;"),
    ("embedded:ruby", "embedded must be one of python, docstrings. Received: 'ruby'"),
    ("text:\0", "must not contain NUL"),
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


@pytest.fixture
def corpora(tmp_path):
    """Plain text, JSON lines with much around the text, and a dump; 2,000 documents each."""
    words = random.Random(1)

    def text(name):
        return " ".join([name] * words.randint(1, 60))

    (tmp_path / "a.txt").write_text("\n\n".join(text("plain") for _ in range(2000)))
    (tmp_path / "b.jsonl").write_text("".join(
        json.dumps({"meta": "x" * 300, "text": text("jsonl")}) + "\n" for _ in range(2000)))
    (tmp_path / "c.xml").write_bytes(dump(*(
        page(str(number), f"{{{{box|a=b}}}}\n[[wikis|{text('wikis')}]]")
        for number in range(2000))))
    return lambda a, b, c: open_source(
        f"text:{tmp_path}/a.txt:{a},jsonl:{tmp_path}/b.jsonl:{b},wikipedia:{tmp_path}/c.xml:{c}")


@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.2), (1, 1, 2)], ids=str)
def test_a_mixture_has_its_shares_of_text_at_any_time(corpora, shares):
    source = corpora(*shares)
    found, most = [0] * len(shares), 0.0
    for number, part in enumerate(source.documents()):
        found[part.source] += sum(map(len, source.parse(part)))
        if number >= 200:
            most = max(most, *(abs(one / sum(found) - share / sum(shares))
                               for one, share in zip(found, shares, strict=True)))
    # All is parsed to estimate, so each is within a document of its share: 360 of 30,000 bytes.
    assert most < 360 / 20_000


def test_a_mixture_ends_with_its_first_source_that_ends(corpora):
    source = corpora(0.8, 0.1, 0.1)
    assert source.note == ""
    found = [part.source for part in source.documents() if part.ends]
    assert found.count(0) == 2000 and 150 < found.count(1) < 400
    assert "a.txt has no more documents, and the mixture ends with it; read of the others" in (
        source.note)


def test_a_mixture_is_the_same_every_time(corpora):
    first, again = corpora(0.5, 0.3, 0.2), pickle.loads(pickle.dumps(corpora(0.5, 0.3, 0.2)))
    assert list(first.documents()) == list(again.documents())
    assert first.sha256() == again.sha256() != corpora(0.6, 0.3, 0.2).sha256()
    assert first.pieces() == (first,)
