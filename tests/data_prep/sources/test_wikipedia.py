"""Dumps: only articles, in one stream or many, and damage by its offset."""

import bz2
import gzip
import re

import pytest

from data_prep.sources import wikipedia
from data_prep.sources.registry import open_source
from data_prep.sources.source import SourceOptions
from electra_tf.core.errors import UserError
from tests.data_prep.reading import FOOTER, HEADER, documents_of, dump, page, read, read_skipping

PAGES = [page(f"Article {number}", f"'''Text''' of {number} & <b>more</b>.\n\nLine two.")
         for number in range(10)]
LINES = [[f"Text of {number} & more.", "Line two."] for number in range(10)]


def write_multistream(directory, *groups):
    """Writes a dump in streams: the header, groups of pages, the footer."""
    streams = [bz2.compress(part.encode())
               for part in (HEADER, *("".join(group) for group in groups), FOOTER)]
    path = directory / "enwiki-1-pages-articles-multistream.xml.bz2"
    path.write_bytes(b"".join(streams))
    return path, streams


@pytest.mark.parametrize(("name", "pack"), [
    ("a.xml", bytes), ("a.xml.bz2", bz2.compress), ("a.xml.gz", gzip.compress)])
def test_articles_are_documents(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(dump(
        page("Talk:A", "No.", namespace=1), *PAGES, page("B", "#REDIRECT [[A]]", redirect=True),
        page("C", " #redirect [[A]]"), page("D", "The word #REDIRECT in a text."),
        page("File:E", "No.", namespace=6))))
    assert read(f"wikipedia:{tmp_path}/{name}") == [*LINES, ["The word #REDIRECT in a text."]]


def test_pages_of_old_dumps_are_articles_by_their_titles_and_texts(tmp_path):
    """MediaWiki's export-0.3 to 0.5 have no <ns>; redirects have a word of their language."""
    pages = [page(title, text).replace("    <ns>0</ns>\n", "") for title, text in (
        ("Datei:Ada.jpg", "No."), ("Alien: Covenant", "A film."), ("B", "#WEITERLEITUNG [[Ada]]"),
        ("C", "#redirect: [[Ada]]"), ("Datei", "A file."), ("D", "# See [[Ada]]."))]
    (tmp_path / "a.xml").write_bytes(dump(*pages, page("E", "#F [[Ada]].")))
    assert read(f"wikipedia:{tmp_path}/a.xml") == [
        ["A film."], ["A file."], ["See Ada."], ["F Ada."]]


def test_pages_that_are_not_wikitext_are_no_articles(tmp_path):
    models = ("wikitext", "wikibase-item", "json")  # Items of Wikidata are in namespace 0.
    (tmp_path / "a.xml").write_bytes(dump(*(page("A", f"Of {model}.").replace(
        "<text", f"<model>{model}</model><text") for model in models), page("B", "<model>json")))
    assert read(f"wikipedia:{tmp_path}/a.xml") == [["Of wikitext."], ["json"]]


def test_titles_and_headings_are_an_option(tmp_path):
    (tmp_path / "a.xml").write_bytes(dump(page("A & B", "One.\n== Two ==\nThree.")))
    pattern = f"wikipedia:{tmp_path}/a.xml"
    assert read(pattern) == [["One.", "Three."]]
    assert read(pattern, wiki_headings=True) == [["A & B", "One.", "Two", "Three."]]
    with_headings = SourceOptions(wiki_headings=True)
    assert open_source(pattern).sha256() != open_source(pattern, with_headings).sha256()


def test_a_dump_of_many_streams_is_read_to_its_end(tmp_path):
    write_multistream(tmp_path, PAGES[:3], PAGES[3:7], PAGES[7:])
    (tmp_path / "enwiki-1-pages-articles-multistream-index.txt.bz2").write_bytes(b"x")
    source = open_source(f"wikipedia:{tmp_path}/*")
    assert documents_of(source) == LINES == documents_of(source)
    assert source.position() == source.size
    with pytest.raises(UserError, match="is the index of a dump, not the dump"):
        read(f"wikipedia:{tmp_path}/*index*")


@pytest.mark.parametrize(("cut", "count"), [(0, 10), (40, 5)])
def test_a_dump_that_is_cut_short_is_named(tmp_path, cut, count):
    path, streams = write_multistream(tmp_path, PAGES[:5], PAGES[5:])
    path.write_bytes(path.read_bytes()[:-len(streams[-1]) - cut])
    articles, messages = read_skipping(f"wikipedia:{path}")
    assert articles == LINES[:count]
    assert "cut short" in messages[0]
    path.write_bytes(bz2.compress(b"text\tlabel\n"))
    with pytest.raises(UserError, match=r"is not a MediaWiki dump, which begins with <med"):
        read(f"wikipedia:{path}")


@pytest.mark.parametrize(("old", "new", "message"), [
    ("Article 3</title>", "Article 3<title>", "the page at byte {} is not XML: mismatched tag"),
    ("  </page>\n  <page>\n    <title>Article 4", "  \n  <page>\n    <title>Article 4",
     "the content from byte .* is not a page"),
    ("<page>\n    <title>Article 3", "<pagX>\n    <title>Article 3",
     "the content from byte .* is not a page"),
])
def test_malformed_xml_skips_one_page_and_names_its_offset(tmp_path, old, new, message):
    content = dump(*PAGES).decode()
    assert old in content
    (tmp_path / "a.xml").write_bytes(content.replace(old, new, 1).encode())
    articles, (skipped,) = read_skipping(f"wikipedia:{tmp_path}/a.xml")
    assert articles == LINES[:3] + LINES[4:]
    assert re.search(message.format(content.index(PAGES[3].lstrip())), skipped)


def test_a_page_may_extend_over_chunks_but_not_without_end(tmp_path, monkeypatch):
    path = tmp_path / "a.xml"
    for size in (1, 7, 500):
        monkeypatch.setattr(wikipedia, "_CHUNK", size)
        path.write_bytes(dump(*PAGES))
        assert read(f"wikipedia:{path}") == LINES
    monkeypatch.setattr(wikipedia, "_MAX_PAGE_BYTES", 5000)
    path.write_bytes(dump(PAGES[0], page("Long", "word " * 9000), PAGES[1]))
    articles, messages = read_skipping(f"wikipedia:{path}")
    assert articles == LINES[:2]
    assert "has no end (</page>)" in messages[0]
