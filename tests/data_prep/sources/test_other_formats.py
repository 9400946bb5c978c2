"""Inputs that are not plain text are refused with what they are and what to do."""

import bz2
import gzip
import io
import json
import lzma
import os
import re
import sqlite3
import subprocess
import tarfile
import zipfile

import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from data_prep.sources.registry import open_source
from electra_tf.platform import file_kinds, storage
from electra_tf.platform.errors import UserError
from tests.data_prep.reading import read, read_skipping
from tests.support.refusals import refused

ROW = json.dumps({"id": "1", "body": "One two three."}) + "\n"


def zipped(name):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, "One.")
    return file.getvalue()


def tarred():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"), io.BytesIO(b""))
    return file.getvalue()


def parquet():
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": ["One."]}), file)
    return file.getvalue()


def database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE a (b TEXT)")
    connection.close()
    return path.read_bytes()


@pytest.mark.parametrize(("content", "kind"), [
    (zipped("a.txt"), "a zip archive"), (zipped("word/document.xml"), "an Office document"),
    (tarred(), "a tar archive; unpack it with `tar -xf`"), (b"7z\xbc\xaf\x27\x1c\0\4", "7z x"),
    (b"Rar!\x1a\x07\x01\0", "unrar"), (b"%PDF-1.7\n", "a PDF; extract its text with pdftotext"),
    (gzip.compress(b"a", mtime=0), "end with .gz"), (bz2.compress(b"a"), "`bzip2 -dc`"),
    (lzma.compress(b"a"), "`xz -dc`"), (zstandard.compress(b"a"), "`zstd -dc`"),
    (parquet(), "Parquet; .* --input='parquet:PATTERN#COLUMN'"),
    (b"\x89HDF\r\n\x1a\n\0", "HDF5"), ("Ünï".encode("utf-16"), "UTF-16; convert it with `iconv"),
    ("One two.".encode("utf-16le"), "UTF-16; convert it with `iconv -f utf-16le -t utf-8`"),
    ("One two.".encode("utf-16be"), "iconv -f utf-16be"), ("a".encode("utf-32"), "UTF-32"),
    (b"{\\rtf1 a}", "RTF"), (b"One\0two three.", "not text: NUL is at byte 3"),
    (b'<doc id="1" url="u" title="T">\nT\n', "WikiExtractor's output"), (b"One.\r\rTwo.\r", "CR"),
    (b'<mediawiki xml:lang="en">\n<page>', "a dump of a MediaWiki"),
    (b"\xef\xbb\xbf<!DOCTYPE html>\n<p>", "HTML, XML or JSON"), (b'[\n  {"a": "b"}]', "HTML, XML"),
    (b'{\n  "a": "b"\n}', "HTML, XML or JSON"), (ROW.encode(), "JSON lines; .*#body'"),
])
def test_a_text_file_is_refused_if_it_is(tmp_path, content, kind):
    (tmp_path / "a.txt").write_bytes(content)
    with refused(rf"a\.txt (is|looks like) .*{kind}"):
        read(f"{tmp_path}/a.txt")
    (tmp_path / "b.txt").write_text("Whole.")
    assert read_skipping(f"{tmp_path}/*.txt")[0] == [["Whole."]]


def test_a_database_is_refused(tmp_path):
    with refused("a SQLite database"):
        file_kinds.require_text("a", database(tmp_path / "a.db"))


@pytest.mark.parametrize("content", [
    ROW, f'{{"body": "{"One. " * 2000}"}}\n',
    '<mediawiki xmlns="a" xml:lang="en"><page><title>A</title><ns>0</ns><revision>'
    "<text>One.</text></revision></page></mediawiki>\n"], ids=["row", "long", "dump"])
def test_the_advised_source_reads_the_file(tmp_path, content):
    (tmp_path / "a.txt").write_text(content)
    with pytest.raises(UserError) as error:
        read(f"{tmp_path}/a.txt")
    (document,) = read(re.search("--input='(.*)'", str(error.value))[1])
    assert document[0].startswith("One")


@pytest.mark.parametrize("content", ["<html>One.", '[{"a": "b"}]', ROW])
def test_the_name_text_reads_markup_as_it_is(tmp_path, content):
    (tmp_path / "a.txt").write_text(content)
    assert read(f"text:{tmp_path}/a.txt") == [[content.strip()]]


@pytest.mark.parametrize("content", [
    "{curly} text", "<b>bold</b>", "[1] A note.", "BZh is a name", "PK is a name", "ustar", "{}",
    "One.\r\nTwo.\r\n", "a\u2028b\u0085c\x0bd\x0ce\x1cf"])
def test_plain_text_is_read(tmp_path, content):
    (tmp_path / "a.txt").write_bytes(content.encode())
    assert read(f"{tmp_path}/a.txt") == [content.strip().split("\r\n")]


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
        for given in ("corpus", "corpus/", "jsonl:corpus", "wikipedia:corpus"):
            with refused(f"is a directory; name its files, for example '{re.escape(pattern)}'"):
                open_source(given)
        assert read(pattern) == [["One."]]


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "pipe", "/dev/null"])
def test_a_pipe_is_named(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with refused(f"{name} is a pipe or a device, and the text is read several times; write it to"):
        open_source(name)


def test_a_tilde_is_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.txt").write_text("One.")
    assert read("~/*.txt") == read("text:~/a.txt") == [["One."]]
    assert storage.path("~nobody-of-that-name/a").parts[0] == "~nobody-of-that-name"


def test_the_advised_command_reads_wikiextractor_s_articles(tmp_path):
    (tmp_path / "wiki_00").write_text(
        '<doc id="1" url="u" title="A">\nA\n\nOne.\n\nTwo.\n\n</doc>\n'
        '<doc id="2" url="u" title="C">\nC\n</doc>\n'
        '<doc id="3" url="u" title="D">\nD\nD is.\n</doc>\n')
    with pytest.raises(UserError) as error:
        read(f"{tmp_path}/wiki_00")
    subprocess.run(re.search("`(.*)`", str(error.value))[1], shell=True, check=True)
    assert read(f"{tmp_path}/*.documents.txt") == [["One.", "Two."], ["D is."]]
