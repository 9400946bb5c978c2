"""Books: what Project Gutenberg puts around them goes, wrapped lines are joined, others stay."""

import gzip

import pytest

from data_prep import documents
from data_prep.sources.registry import open_source
from tests.data_prep.reading import read

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
YEARS = {
    "2020s": ("\ufeffThe Project Gutenberg eBook of Moby Dick\n\nThis ebook is for the use of\n\n"
              "*** START OF THE PROJECT GUTENBERG EBOOK MOBY DICK ***\n\n\n",
              "\n\n*** END OF THE PROJECT GUTENBERG EBOOK MOBY DICK ***\n\nUpdated editions\n"
              + LICENCE),
    "2010s": ("Project Gutenberg's Moby Dick, by Melville\n\nCharacter set encoding: UTF-8\n\n"
              "*** START OF THIS PROJECT GUTENBERG EBOOK MOBY DICK ***\n\n\nProduced by A, B and "
              "the\nOnline Distributed Proofreading Team\n\n\n",
              "\n\nEnd of Project Gutenberg's Moby Dick, by Melville\n\n"
              "*** END OF THIS PROJECT GUTENBERG EBOOK MOBY DICK ***\n\n***** This file\n"),
    "licence without an end mark": (
        "*** START OF THIS PROJECT GUTENBERG EBOOK MOBY DICK ***\n\n", "\n\n*** " + LICENCE),
    "none": ("", "\n"),
}


@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("year", YEARS)
def test_header_and_footer_go_whatever_their_year(tmp_path, year, ends):
    before, behind = YEARS[year]
    (tmp_path / "a.txt").write_text((before + BODY + behind).replace("\n", ends), newline="")
    assert read(f"books:{tmp_path}/a.txt") == [LINES]


@pytest.mark.parametrize("text", [
    "the cat sat .\n`` it did , '' he said .\nwhy ?\n`` because ! ''\n",  # BooksCorpus
    "A paragraph a line, of some length. It ends.\nAnother one ends too.\n\nA third (here.)\n",
    "x" * 150 + "\n" + "y" * 150 + "\n",
    "Title\n\nOne.\n\nTwo\n",
])
def test_lines_that_are_not_wrapped_stay(tmp_path, text):
    (tmp_path / "a.txt").write_text(text)
    assert read(f"books:{tmp_path}/a.txt") == [[line for line in text.split("\n") if line]]


def test_a_directory_is_read_whole_a_file_a_document(tmp_path):
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "c" / "2.TXT").write_text("Two.\n\nAnd more.")
    (tmp_path / "b" / "1.txt.gz").write_bytes(gzip.compress(b"One."))
    (tmp_path / "b" / "3.html").write_text("<p>")
    assert read(f"books:{tmp_path}") == [["One."], ["Two.", "And more."]]


def test_a_long_book_comes_in_parts_of_one_document(tmp_path):
    before, behind = YEARS["2010s"]
    text = (BODY + "\n\n") * 16000
    (tmp_path / "a.txt").write_text(before + text + behind)
    source = open_source(f"books:{tmp_path}/a.txt")
    parts = list(source.documents())
    assert len(parts) > 2
    assert max(len(part.content) for part in parts) < 4 * documents.MAX_PART_BYTES
    assert [part.begins for part in parts] == [True] + [False] * (len(parts) - 1)
    assert [part.ends for part in parts] == [False] * (len(parts) - 1) + [True]
    assert len({part.key for part in parts}) == 1
    assert read(f"books:{tmp_path}/a.txt") == [LINES * 16000]
