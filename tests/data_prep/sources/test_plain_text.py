"""Lines and documents come out of files as they stand there, whatever their form."""

import lzma

import pytest

from electra_tf.platform.errors import UserError
from tests.data_prep.reading import read

TEXT = "one\ntwo\n\n\nthree\n"
LINES = [["one", "two"], ["three"]]


@pytest.mark.parametrize("content", [
    TEXT.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + TEXT.encode(), TEXT.rstrip().encode(),
    b"\n \t\n" + TEXT.encode() + b"\n\n", "one \n\u3000two\n\u00a0\nthree".encode()])
def test_line_ends_byte_order_marks_and_blank_lines_do_not_matter(tmp_path, content):
    (tmp_path / "a.txt").write_bytes(content)
    assert read(tmp_path / "a.txt") == LINES


def test_files_are_sorted_read_once_and_each_ends_a_document(tmp_path):
    for name in ("b.txt", "a.txt"):
        (tmp_path / name).write_text(name)
    assert read(f"{tmp_path}/b*,{tmp_path}/*.txt") == [["a.txt"], ["b.txt"]]


@pytest.mark.parametrize("letter", ["a", "é", "中", "👍"])
def test_an_endless_word_is_cut_between_characters_and_loses_nothing(tmp_path, letter):
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


def test_an_empty_corpus_is_refused(tmp_path):
    (tmp_path / "empty.txt").touch()
    with pytest.raises(UserError, match="empty.txt is empty"):
        read(tmp_path / "empty.txt")
