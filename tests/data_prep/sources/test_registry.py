"""--input: its entries, mistakes, and several sources that are read as one."""

import json
import pickle
import random

import pytest

from data_prep.documents import lines_of
from data_prep.sources import files
from data_prep.sources.registry import entries_of, open_source
from electra_tf.core.errors import UserError
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
    assert [(entry.source, entry.pattern, entry.field, *([entry.share] if entry.share else []))
            for entry in entries_of(text)] == meaning


@pytest.mark.parametrize(("text", "message"), [
    ("wikipedai:a.xml", "no file matches 'wikipedai:a.xml', and 'wikipedai' is no source; the "
     "sources are text, wikipedia, books, jsonl, parquet, hf, tfds, embedded"),
    ("jsonl:a*,b*", "'b.*' has no source name and others have.*write text:b"),
    ("text:a:0.5,books:b", "'books:b' has no share and others have; give every source one"),
    ("a:0,b:1", "a share must be in \\(0, 1000000\\]. Received: 'a:0'"),
    ("text:1", "could be a path that ends with a number or a source with the share 1"),
    ("embedded:python:0.5,embedded:python:0.5", "names 'embedded:python' twice"),
    ("embedded:ruby", "embedded must be one of python, docstrings. Received: 'ruby'"),
])
def test_a_mistake_is_one_line(text, message):
    with pytest.raises(UserError, match=message):
        open_source(text)


def test_a_file_of_two_patterns_is_refused_unless_they_read_other_fields(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"title": "x", "text": "y"}\n')
    with pytest.raises(UserError, match=r"--input names '.*a\.jsonl' twice"):
        open_source(f"jsonl:{tmp_path}/*.jsonl,jsonl:{tmp_path}/a.jsonl")
    assert open_source(f"jsonl:{tmp_path}/a.jsonl,jsonl:{tmp_path}/*.jsonl#title").size == 56


def test_a_file_with_several_paths_is_read_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("One.")
    (tmp_path / "link.txt").symlink_to("a.txt")
    assert read(f"a.txt,{tmp_path}/a.txt,../{tmp_path.name}/a.txt,*.txt") == [["One."]]
    assert read(f"text:a.txt,text:{tmp_path}/*.txt") == [["One."]]
    with pytest.raises(UserError, match=r"--input names '.*a\.txt' twice"):
        open_source(f"books:a.txt,text:a.txt,books:{tmp_path}/link.txt")


def test_a_file_with_a_colon_is_plain_text_unless_a_source_has_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "books:a.txt").write_text("One.")
    (tmp_path / "odd:c.txt").write_text("Three.")
    assert read("text:books:a.txt") == read("./books:a.txt") == [["One."]]
    assert read("odd:c.txt") == [["Three."]]


def test_corpus_parts_in_order_have_the_documents_of_the_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CORPUS_PART_BYTES", 1)
    (tmp_path / "a.txt").write_text("One.\n\nTwo.")
    (tmp_path / "b.txt").write_text("More.")
    (tmp_path / "c.jsonl").write_text('{"text": "Three."}\n')
    (tmp_path / "d.xml").write_bytes(dump(page("A", "Four.")))
    source = open_source(f"jsonl:{tmp_path}/*.jsonl,text:{tmp_path}/*.txt,books:{tmp_path}/a.txt,"
                         f"wikipedia:{tmp_path}/d.xml")
    corpus_parts = [pickle.loads(pickle.dumps(corpus_part)) for corpus_part in source.parts()]
    assert len(corpus_parts) == 5
    parts = list(source.documents())
    assert {part.source for part in parts} == {0, 1, 2, 3}
    assert [part for corpus_part in corpus_parts for part in corpus_part.documents()] == parts
    assert list(lines_of(parts, corpus_parts[0].parse)) == list(lines_of(parts, source.parse)) == [
        "Three.", "", "One.", "", "Two.", "", "More.", "", "One.", "Two.", "", "Four.", ""]


@pytest.fixture
def mixture(tmp_path):
    """Mixes plain text, JSON lines with much around the text, and a dump; 2,000 documents each."""
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


def test_a_mixture_has_its_shares_of_text_at_any_time(mixture):
    shares = 0.5, 0.3, 0.2
    source = mixture(*shares)
    read_bytes, differences = [0] * len(shares), [0.0]
    for number, part in enumerate(source.documents()):
        read_bytes[part.source] += sum(map(len, source.parse(part)))
        if number >= 200:
            differences += [abs(size / sum(read_bytes) - share / sum(shares))
                            for size, share in zip(read_bytes, shares, strict=True)]
    # All is parsed to estimate, so each is within a document of its share: 360 of 30,000 bytes.
    assert max(differences) < 360 / 20_000


def test_a_mixture_ends_with_its_first_source_that_ends(mixture):
    source = mixture(0.8, 0.1, 0.1)
    parts = list(source.documents())
    numbers = [part.source for part in parts if part.ends]
    assert numbers.count(0) == 2000 and 150 < numbers.count(1) < 400
    assert "a.txt has no more documents, so the mixture ends; read of the other sources" in (
        source.note)
    copy = pickle.loads(pickle.dumps(mixture(0.8, 0.1, 0.1)))
    assert list(copy.documents()) == parts
    assert copy.sha256() == source.sha256() != mixture(0.7, 0.2, 0.1).sha256()
    assert copy.parts() == (copy,)


def test_a_name_with_brackets_is_a_file_if_it_matches_none_as_a_pattern(tmp_path):
    (tmp_path / "a[1].txt").write_text("One.")
    (tmp_path / "b[1].jsonl").write_text('{"text": "Two."}')
    assert read(f"{tmp_path}/a[1].txt") == [["One."]]
    assert read(f"jsonl:{tmp_path}/b[1].jsonl") == [["Two."]]
    (tmp_path / "Doe, J.txt").write_text("Four.")
    assert read(f"{tmp_path}/Doe, J.txt") == [["Four."]]
    assert read(f"jsonl:{tmp_path}/b[1].jsonl,text:{tmp_path}/Doe? J.txt") == [["Two."], ["Four."]]
    (tmp_path / "a1.txt").write_text("Three.")
    assert read(f"{tmp_path}/a[1].txt") == [["Three."]]
