"""Plain text and books: documents, lines, and refusals of other formats that say what to do."""

import gzip
import json
import lzma
import os
import re
import subprocess
import tarfile

import pytest
import zstandard

from data_prep import documents
from data_prep.sources.registry import open_source
from electra_tf.core import storage
from electra_tf.core.errors import UserError
from tests.data_prep.reading import dump, page, read, read_skipping
from tests.support.refusals import refused

TEXT = "one\ntwo\n\n\nthree\n"
ROW = json.dumps({"id": "1", "body": "One two three."}) + "\n"
BODY = """CHAPTER I.

Call me Ishmael.  Some years ago--never mind how long
precisely--having little or no money in my purse, and
nothing particular to interest me on shore, I thought--
I would sail about a little and see the watery part of
the world.

It is a way I have of driving off the spleen, and well-
known for regulating the circulation of
the blood."""
LINES = [
    "CHAPTER I.",
    "Call me Ishmael.  Some years ago--never mind how long precisely--having little or no money in "
    "my purse, and nothing particular to interest me on shore, I thought--I would sail about a "
    "little and see the watery part of the world.",
    "It is a way I have of driving off the spleen, and well-known for regulating the circulation "
    "of the blood."]
LICENCE = "START: FULL LICENSE\n\nTHE FULL PROJECT GUTENBERG LICENSE\nPlease read this.\n"
FRAMES = {
    "2020s": ("\ufeffThe Project Gutenberg eBook of Moby Dick\n\nThis ebook is for the use of\n\n"
              "*** START OF THE PROJECT GUTENBERG EBOOK MOBY DICK ***\n\n\n",
              "\n\n*** END OF THE PROJECT GUTENBERG EBOOK MOBY DICK ***\n\n" + LICENCE),
    "2010s": ("Project Gutenberg's Moby Dick, by Melville\n\nCharacter set encoding: UTF-8\n\n"
              "*** START OF THIS PROJECT GUTENBERG EBOOK MOBY DICK ***\n\n\nProduced by A, B and "
              "the\nOnline Distributed Proofreading Team\n\n\n",
              "\n\nEnd of Project Gutenberg's Moby Dick, by Melville\n\n***** This file\n"),
    "no end mark": ("*** START OF THIS PROJECT GUTENBERG EBOOK MOBY DICK ***\n\n",
                    "\n\n*** " + LICENCE),
    "none": ("", "\n"),
}
"""Headers and footers of books."""


@pytest.mark.parametrize("content", [
    TEXT.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + TEXT.encode(), TEXT.rstrip().encode(),
    b"\n \t\n" + TEXT.encode() + b"\n\n", "one \n\u3000two\n\u00a0\nthree".encode()])
def test_line_ends_byte_order_marks_and_blank_lines_do_not_matter(tmp_path, content):
    (tmp_path / "a.txt").write_bytes(content)
    assert read(tmp_path / "a.txt") == [["one", "two"], ["three"]]


def test_files_are_sorted_read_once_and_each_ends_a_document(tmp_path, monkeypatch):
    for name in ("b.txt", "a.txt"):
        (tmp_path / name).write_text(name)
    assert read(f"{tmp_path}/b*,{tmp_path}/*.txt") == [["a.txt"], ["b.txt"]]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read("~/*.txt") == read("text:~/a.txt,text:~/b.txt") == [["a.txt"], ["b.txt"]]
    assert storage.path("~nobody-of-that-name/a").parts[0] == "~nobody-of-that-name"


@pytest.mark.parametrize("letter", ["a", "中"])
def test_an_endless_word_is_cut_between_characters(tmp_path, letter):
    text = "x" + letter * 600_000
    (tmp_path / "a.txt").write_text(text)
    assert ["".join(lines) for lines in read(tmp_path / "a.txt")] == [text]


def test_bytes_that_are_not_utf8_are_named_by_file_and_offset(tmp_path):
    content = b"good line\nbad \xe9 line\n"
    (tmp_path / "a.txt").write_bytes(content)
    (tmp_path / "a.txt.xz").write_bytes(lzma.compress(content))
    with pytest.raises(UserError, match="a.txt is not UTF-8: bad byte 0xe9 at offset 14; "):
        read(tmp_path / "a.txt")
    with pytest.raises(UserError, match="a.txt.xz .* at offset 14 of the decompressed text; "):
        read(tmp_path / "a.txt.xz")


@pytest.mark.parametrize(("content", "kind"), [
    (tarfile.TarInfo("a.txt").tobuf(), "a tar archive; unpack it with `tar -xf`"),
    (gzip.compress(b"a", mtime=0), "end with .gz"), (zstandard.compress(b"a"), "`zstd -dc`"),
    (b"PAR1\x15\4", "Parquet; .* --input='parquet:PATTERN#COLUMN'"),
    ("Ünï".encode("utf-16"), "UTF-16; convert it with `iconv"),
    ("One two.".encode("utf-16be"), "iconv -f utf-16be"), ("a".encode("utf-32"), "UTF-32"),
    (b"One\0two three.", "not text: NUL is at byte 3"),
    (b'<doc id="1" url="u" title="T">\nT\n', "WikiExtractor's output"), (b"One.\r\rTwo.\r", "CR"),
    (b'<mediawiki xml:lang="en">\n<page>', "a dump of a MediaWiki"),
    (b"\xef\xbb\xbf<!DOCTYPE html>\n<p>", "HTML, XML or JSON"),
    (b'<DOC id="NYT_1" type="story">\n<TEXT>\nOne.\n</TEXT>\n</DOC>\n', "HTML, XML or JSON"),
    (b"<corpus><doc>One.</doc></corpus>", "HTML, XML or JSON"),
    (ROW.encode(), "JSON lines; .*#body'"),
])
def test_a_file_of_another_format_is_refused_as(tmp_path, content, kind):
    (tmp_path / "a.txt").write_bytes(content)
    with refused(rf"a\.txt (is|looks like) .*{kind}"):
        read(f"{tmp_path}/a.txt")
    (tmp_path / "b.txt").write_text("Whole.")
    assert read_skipping(f"{tmp_path}/*.txt")[0] == [["Whole."]]


def test_a_table_is_refused_unless_it_is_named_as_text(tmp_path):
    for name in ("a.csv", "a.tsv.gz"):
        content = b"id\ttext\n1\tOne.\n"
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        with refused(rf"{name} is a table; .*read_csv\('/.*{name}', sep='[,\\t]+'\).*jsonl:"):
            read(f"{tmp_path}/{name}")
        assert read(f"text:{tmp_path}/{name}") == [["id\ttext", "1\tOne."]]


@pytest.mark.parametrize("content", [
    ROW, f'{{"body": "{"One. " * 2000}"}}\n', dump(page("A", "One.")).decode()],
    ids=["row", "long", "dump"])
def test_the_advised_source_reads_the_file(tmp_path, content):
    (tmp_path / "a.txt").write_text(content)
    with pytest.raises(UserError) as error:
        read(f"{tmp_path}/a.txt")
    (document,) = read(re.search("--input='(.*)'", str(error.value))[1])
    assert document[0].startswith("One")


@pytest.mark.parametrize(("source", "content"), [
    *(("", content) for content in (
        "{curly} text", "<b>bold</b>", "[1] A note.", "BZh is a name", "PK is a name", "{}",
        "One.\r\nTwo.\r\n", "a\u2028b\u0085c\x0bd\x0ce\x1cf",
        "<nick> Hello.\r\n<other> Hi.", "\tOne.\r\n\tTwo.\r\n\tThree.\r\n",
        "At 10:00,000 --> 2", "A\tB\r\nC\tD\tE\r\nF\tG\r\n")),
    *(("text:", content) for content in ("<html>One.", '[{"a": "b"}]', ROW))])
def test_plain_text_is_read_and_with_the_name_text_also_markup(tmp_path, source, content):
    (tmp_path / "a.txt").write_bytes(content.encode())
    assert read(f"{source}{tmp_path}/a.txt") == [
        [line.strip() for line in content.strip().split("\r\n")]]


def test_a_directory_is_named_with_a_pattern_that_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus" / "sub").mkdir(parents=True)
    with refused("corpus/sub is a directory without files"):
        read("corpus/sub")
    for name, pattern in (("a.txt.gz", "corpus/**/*.txt.gz"), ("sub/wiki_00", "corpus/**/*")):
        for path in (tmp_path / "corpus").rglob("*.gz"):
            path.unlink()
        content = gzip.compress(b"One.", mtime=0) if name.endswith("gz") else b"One."
        (tmp_path / "corpus" / name).write_bytes(content)
        for text in ("corpus", "corpus/", "jsonl:corpus", "wikipedia:corpus"):
            with refused(f"is a directory; name its files, for example '{re.escape(pattern)}'"):
                open_source(text)
        assert read(pattern) == [["One."]]


@pytest.mark.parametrize("name", ["-", "pipe"])
def test_a_pipe_and_an_empty_file_are_named(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    (tmp_path / "empty.txt").touch()
    with refused("empty.txt is empty"):
        open_source("empty.txt")
    with refused(f"{name} is a pipe or a device, and the text is read several times; write it to"):
        open_source(name)


@pytest.mark.parametrize(("content", "expected"), [
    ('<doc id="1" url="u" title="A">\nA\n\nOne.\n\nTwo.\n\n</doc>\n'
     '<doc id="2" url="u" title="C">\nC\n</doc>\n'
     '<doc id="3" url="u" title="D">\nD\nD is.\n</doc>\n', [["One.", "Two."], ["D is."]]),
    ("WARC/1.0\r\nWARC-Type: warcinfo\r\n\r\nSoftware: s\r\n\r\n\r\n"
     "WARC/1.0\r\nWARC-Type: conversion\r\n\r\nOne.\n\nTwo.\n\r\n\r\n"
     "WARC/1.0\r\nWARC-Type: conversion\r\n\r\nD is.\n\r\n\r\n", [["One.", "Two."], ["D is."]]),
    ("Once.\n\nTwice.\n<|endoftext|>\n\nThen.\n<|endoftext|>\n", [["Once.", "Twice."], ["Then."]]),
    ("1\n00:00:01,000 --> 00:00:02,000\nOne.\n\n2\n00:01:03,000 --> 00:01:04,000\nTwo.\n",
     [["One.", "Two."]]),
    ("WEBVTT\n\n00:01.000 --> 00:02.000 align:start\nOne.\n", [["One."]]),
    ("# sent_id = 1\n# text = It is.\n1\tIt\tit\n2\tis\tbe\n3\t.\t.\n\n", [["It is."]]),
    ("1\tOne is here.\n2\tTwo is here.\n3\tThree.\n",
     [["One is here.", "Two is here.", "Three."]]),
    ("Go.\tVa !\nRun.\tCours !\nHi.\tSalut !\n", [["Va !", "Cours !", "Salut !"]]),
    (gzip.compress(b"1\tOne is here.\n2\tTwo is here.\n3\tThree.\n"),
     [["One is here.", "Two is here.", "Three."]]),
], ids=["WikiExtractor", "WET", "end of text", "srt", "vtt", "CoNLL-U", "numbered", "pairs", "gz"])
def test_the_advised_command_writes_the_text(tmp_path, content, expected):
    name = tmp_path / ("a" if isinstance(content, str) else "a.gz")
    name.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UserError) as error:
        read(name)
    subprocess.run(re.search("`(.*)`", str(error.value))[1], shell=True, check=True)
    assert read(f"{tmp_path}/*.documents.txt") == expected


@pytest.mark.parametrize("year", FRAMES)
def test_header_and_footer_of_a_book_are_dropped(tmp_path, year):
    header, footer = FRAMES[year]
    for ends in ("\n", "\r\n"):
        (tmp_path / "a.txt").write_text((header + BODY + footer).replace("\n", ends), newline="")
        assert read(f"books:{tmp_path}/a.txt") == [LINES]


@pytest.mark.parametrize("text", [
    "the cat sat .\n`` it did , '' he said .\nwhy ?\n`` because ! ''\n",  # BooksCorpus
    "A paragraph a line, of some length. It ends.\nAnother one ends too.\n\nA third (here.)\n",
    "x" * 150 + "\n" + "y" * 150 + "\n",
    "Title\n\nOne.\n\nTwo\n",
])
def test_lines_that_are_not_wrapped_are_kept(tmp_path, text):
    (tmp_path / "a.txt").write_text(text)
    assert read(f"books:{tmp_path}/a.txt") == [[line for line in text.split("\n") if line]]


def test_each_file_of_a_directory_is_a_book(tmp_path):
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "c" / "2.TXT").write_text("Two.\n\nAnd more.")
    (tmp_path / "b" / "1.txt.gz").write_bytes(gzip.compress(b"One."))
    (tmp_path / "b" / "3.html").write_text("<p>")
    assert read(f"books:{tmp_path}") == [["One."], ["Two.", "And more."]]


def test_a_long_book_comes_in_parts_of_one_document(tmp_path):
    header, footer = FRAMES["2010s"]
    text = (BODY + "\n\n") * 16000
    (tmp_path / "a.txt").write_text(header + text + footer)
    source = open_source(f"books:{tmp_path}/a.txt")
    parts = list(source.documents())
    assert len(parts) > 2
    assert max(len(part.content) for part in parts) < 4 * documents.MAX_PART_BYTES
    assert [part.begins for part in parts] == [True] + [False] * (len(parts) - 1)
    assert [part.ends for part in parts] == [False] * (len(parts) - 1) + [True]
    assert len({part.key for part in parts}) == 1
    assert read(f"books:{tmp_path}/a.txt") == [LINES * 16000]
