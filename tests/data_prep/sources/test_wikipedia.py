"""Dumps: articles and nothing else, with an index or without, and damage by its place."""

import bz2
import gzip

import pytest

from data_prep.documents import DocumentPart
from data_prep.sources import multistream
from data_prep.sources.registry import open_source
from electra_tf.platform.errors import UserError
from tests.data_prep.reading import FOOTER, HEADER, documents_of, dump, page, read, read_skipping

PAGES = [page(f"Article {number}", f"'''Text''' of {number} & <b>more</b>.\n\nLine two.")
         for number in range(10)]
LINES = [[f"Text of {number} & more.", "Line two."] for number in range(10)]


def write_multistream(directory, groups, index=True, name="enwiki-1-pages-articles-multistream"):
    """Writes a dump in streams: the header, groups of pages, the footer; and its index."""
    streams = [bz2.compress(HEADER.encode())]
    entries = []
    for group in groups:
        entries += [f"{sum(map(len, streams))}:1:Title: x\n"] * len(group)
        streams.append(bz2.compress("".join(group).encode()))
    streams.append(bz2.compress(FOOTER.encode()))
    path = directory / f"{name}.xml.bz2"
    path.write_bytes(b"".join(streams))
    if index:
        (directory / f"{name}-index.txt.bz2").write_bytes(bz2.compress("".join(entries).encode()))
    return path, streams


@pytest.mark.parametrize(("name", "pack"), [
    ("a.xml", bytes), ("a.xml.bz2", bz2.compress), ("a.xml.gz", gzip.compress)])
def test_articles_are_documents(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(dump(*PAGES)))
    assert read(f"wikipedia:{tmp_path}/{name}") == LINES


def test_other_namespaces_and_redirects_are_not(tmp_path):
    (tmp_path / "a.xml").write_bytes(dump(
        page("Talk:A", "No.", namespace=1), PAGES[0], page("B", "#REDIRECT [[A]]", redirect=True),
        page("C", " #redirect [[A]]"), page("D", "The word #REDIRECT in a text."),
        page("File:E", "No.", namespace=6)))
    assert read(f"wikipedia:{tmp_path}/a.xml") == [LINES[0], ["The word #REDIRECT in a text."]]


def test_titles_and_headings_are_an_option(tmp_path):
    (tmp_path / "a.xml").write_bytes(dump(page("A & B", "One.\n== Two ==\nThree.")))
    pattern = f"wikipedia:{tmp_path}/a.xml"
    assert read(pattern) == [["One.", "Three."]]
    assert read(pattern, headings=True) == [["A & B", "One.", "Two", "Three."]]
    digests = {open_source(pattern).sha256(), read_digest(pattern, headings=True)}
    assert len(digests) == 2


def read_digest(pattern, **options):
    from data_prep.sources.source import Options
    return open_source(pattern, Options(**options)).sha256()


def test_the_wiki_says_what_it_calls_files(tmp_path):
    (tmp_path / "a.xml").write_bytes(dump(page("A", "[[Datei:x.jpg|mini|Bild]]Text.")))
    assert read(f"wikipedia:{tmp_path}/a.xml") == [["Text."]]


def test_of_several_revisions_the_last_one_is_read(tmp_path):
    old = page("A", "Old.")
    two = old.replace("<revision>", "<revision><text>Older.</text></revision><revision>")
    (tmp_path / "a.xml").write_bytes(dump(two, page("B", "").replace(
        "></text>", " />")))
    assert read(f"wikipedia:{tmp_path}/a.xml") == [["Old."], []]


@pytest.mark.parametrize("index", [True, False])
def test_a_multistream_dump_reads_alike_with_an_index_and_without(tmp_path, index):
    path, _ = write_multistream(tmp_path, [PAGES[:3], PAGES[3:7], PAGES[7:]], index)
    assert (multistream.index_of(path) is not None) is index
    source = open_source(f"wikipedia:{path}")
    assert documents_of(source) == LINES
    assert source.position() == source.size
    assert documents_of(source) == LINES


def test_the_index_is_found_whatever_part_of_the_wiki_it_is_of(tmp_path):
    for dump_name, index_name in (
            ("a-multistream.xml.bz2", "a-multistream-index.txt.bz2"),
            ("b-multistream.xml.bz2", "b-multistream-index.txt"),
            ("c-multistream1.xml-p1p9.bz2", "c-multistream-index1.txt-p1p9.bz2")):
        (tmp_path / index_name).touch()
        assert multistream.index_of(tmp_path / dump_name) == tmp_path / index_name
    assert multistream.index_of(tmp_path / "a.xml.bz2") is None


def test_a_pattern_may_match_the_index_too(tmp_path):
    write_multistream(tmp_path, [PAGES])
    assert read(f"wikipedia:{tmp_path}/*") == LINES
    with pytest.raises(UserError, match="is the index of a dump, not the dump"):
        read(f"wikipedia:{tmp_path}/*index*")


@pytest.mark.parametrize(("content", "message"), [
    (b"x:1:A\n", "index.txt.bz2 is damaged behind line 0"),
    (b"600:1:A\n9999999:1:B\n", "doesn't have the streams that its index says"),
])
def test_an_index_that_does_not_fit_is_refused(tmp_path, content, message):
    path, _ = write_multistream(tmp_path, [PAGES])
    multistream.index_of(path).write_bytes(bz2.compress(content))
    with pytest.raises(UserError, match=message):
        read(f"wikipedia:{path}")


def test_an_index_of_another_dump_loses_nothing_without_a_word(tmp_path):
    path, streams = write_multistream(tmp_path, [PAGES])
    multistream.index_of(path).write_bytes(bz2.compress(f"{len(streams[0]) + 3}:1:A\n".encode()))
    with pytest.raises(UserError, match="stream at byte 0: corrupt or cut short"):
        read(f"wikipedia:{path}")


def test_a_damaged_stream_is_skipped_and_the_others_are_read(tmp_path):
    path, streams = write_multistream(tmp_path, [PAGES[:3], PAGES[3:7], PAGES[7:]])
    start = len(streams[0]) + len(streams[1])
    content = bytearray(path.read_bytes())
    content[start + 30] ^= 255
    path.write_bytes(content)
    found, (message,) = read_skipping(f"wikipedia:{path}")
    assert found == LINES[:3] + LINES[7:]
    assert f"multistream.xml.bz2, stream at byte {start}: corrupt or cut short" in message


@pytest.mark.parametrize("index", [True, False])
def test_a_dump_cut_short_is_told(tmp_path, index):
    path, streams = write_multistream(tmp_path, [PAGES[:5], PAGES[5:]], index)
    whole = path.read_bytes()
    path.write_bytes(whole[:-len(streams[-1])])
    found, (message,) = read_skipping(f"wikipedia:{path}")
    assert found == LINES
    assert "is cut short: </mediawiki> is missing behind" in message
    path.write_bytes(whole[:-len(streams[-1]) - 40])
    found, messages = read_skipping(f"wikipedia:{path}")
    assert found == (LINES[:5] if index else found)
    assert "cut short" in messages[0]


def place_of(content, mark):
    return content.index(mark.encode())


@pytest.mark.parametrize(("old", "new", "message", "lost"), [
    ("Article 3</title>", "Article 3<title>", "the page at byte {} is no XML: mismatched tag", [3]),
    ("of 3 &amp;", "of 3 &", "the page at byte {} is no XML: not well-formed", [3]),
    ("of 3 &amp;", "of 3 &unknown;", "the page at byte {} is no XML: undefined entity", [3]),
    ("  </page>\n  <page>\n    <title>Article 4", "  \n  <page>\n    <title>Article 4",
     "what stands from byte .* is no page", [3]),
    ("<page>\n    <title>Article 3", "<pagX>\n    <title>Article 3",
     "what stands from byte .* is no page", [3]),
])
def test_malformed_xml_is_one_page_and_its_place(tmp_path, old, new, message, lost):
    whole = dump(*PAGES).decode()
    content = whole.replace(old, new, 1).encode()
    assert content != whole.encode()
    (tmp_path / "a.xml").write_bytes(content)
    start = whole.index(PAGES[3].lstrip())
    found, messages = read_skipping(f"wikipedia:{tmp_path}/a.xml")
    assert found == [lines for number, lines in enumerate(LINES) if number not in lost]
    assert len(messages) == 1
    import re
    assert re.search(message.format(start), messages[0])
    with pytest.raises(UserError, match=r"a\.xml: "):
        read(f"wikipedia:{tmp_path}/a.xml")


def test_the_byte_of_malformed_xml_is_exact(tmp_path):
    content = dump(*PAGES).replace(b"of 3 &amp;", b"of 3 \xff;")
    (tmp_path / "a.xml").write_bytes(content)
    with pytest.raises(UserError, match=f"at byte {content.index(bytes([255]))}; get a whole"):
        read(f"wikipedia:{tmp_path}/a.xml")


@pytest.mark.parametrize("keep", ["Article 5", "</revision>\n  </page>\n" + FOOTER, FOOTER])
def test_a_dump_that_ends_early_says_where(tmp_path, keep):
    whole = dump(*PAGES)
    (tmp_path / "a.xml").write_bytes(whole[:whole.rindex(keep.encode())])
    found, messages = read_skipping(f"wikipedia:{tmp_path}/a.xml")
    assert found == LINES[:{"A": 5, "<": 10}[keep[0]] - (keep.count("page") > 0)]
    assert any("is cut short: </mediawiki> is missing" in message for message in messages)


def test_what_is_no_dump_is_told(tmp_path):
    (tmp_path / "a.xml").write_text("plain text")
    with pytest.raises(UserError, match="doesn't begin as a MediaWiki dump"):
        read(f"wikipedia:{tmp_path}/a.xml")


def test_pages_come_whole_across_chunks(tmp_path, monkeypatch):
    from data_prep.sources import wikipedia
    (tmp_path / "a.xml").write_bytes(dump(*PAGES))
    for size in (1, 7, 500):
        monkeypatch.setattr(wikipedia, "_CHUNK", size)
        parts = list(open_source(f"wikipedia:{tmp_path}/a.xml").documents())
        whole = dump(*PAGES)
        assert all(isinstance(part, DocumentPart) and not part.damage for part in parts)
        assert [whole[part.offset:part.offset + len(part.content)] for part in parts] == [
            part.content for part in parts]
        assert len(parts) == 10


def test_a_page_without_end_does_not_fill_the_memory(tmp_path, monkeypatch):
    from data_prep.sources import wikipedia
    monkeypatch.setattr(wikipedia, "_LONGEST_PAGE", 5000)
    monkeypatch.setattr(wikipedia, "_CHUNK", 1000)
    (tmp_path / "a.xml").write_bytes(dump(PAGES[0], page("Long", "word " * 9000), PAGES[1]))
    found, messages = read_skipping(f"wikipedia:{tmp_path}/a.xml")
    assert found == LINES[:2]
    assert "has no end (</page>)" in messages[0]
