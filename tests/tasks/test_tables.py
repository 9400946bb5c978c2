"""Rows come whole, with their line, or as an error that names it."""


import pytest

from electra_tf.platform.errors import UserError
from electra_tf.tasks.tables import read_rows


def rows(tmp_path, name, data, **options):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return [(row.line, dict(row.values)) for row in read_rows(path, **options)]


def test_tabs_are_read_without_quoting_and_with_a_byte_order_mark(tmp_path):
    data = b'\xef\xbb\xbfa\tb\r\n"x\ty "z"\r\n\xc2\x85\t\r\n'
    assert rows(tmp_path, "t.tsv", data) == [
        (2, {"a": '"x', "b": 'y "z"'}), (3, {"a": "\x85", "b": ""})]


def test_commas_quotes_and_line_ends_within_quotes(tmp_path):
    data = 'a,b\n"x, ""y""",1\n"two\nlines",2\nlast,3\n'
    assert rows(tmp_path, "t.csv", data) == [
        (2, {"a": 'x, "y"', "b": "1"}), (3, {"a": "two\nlines", "b": "2"}),
        (5, {"a": "last", "b": "3"})]


@pytest.mark.parametrize(("name", "data", "message"), [
    ("t.tsv", "a\tb\n1\t2\n1\n", r"t\.tsv:3: 1 columns, but 2 are expected \(a, b\)\."),
    ("t.tsv", "a\tb\n1\t2\t3\n", r"t\.tsv:2: 3 columns"),
    ("t.tsv", "a\tb\n\n1\t2\n", r"t\.tsv:2: 1 columns"),
    ("t.tsv", "a\ta\n1\t2\n", r"t\.tsv:1: the header names 'a' twice"),
    ("t.tsv", "a\tb\n", "holds no rows"),
    ("t.tsv", "", "holds no rows"),
    ("t.tsv", b"a\tb\n1\t\xff\n", r"t\.tsv:2: not UTF-8 at byte 3"),
    ("t.csv", 'a,b\n"x,1\n', r"t\.csv:2: unexpected end of data"),
    ("t.csv", "a,b\n1\n", r"t\.csv:2: 1 columns"),
    ("t.jsonl", '{"a": 1}\n{"a": \n', r"t\.jsonl:2: not JSON"),
    ("t.jsonl", "[1]\n", r"t\.jsonl:1: a JSON object is expected"),
    ("t.txt", "a\n", r"must end in \.tsv, \.csv or \.jsonl"),
])
def test_damage_is_named_with_its_line(tmp_path, name, data, message):
    with pytest.raises(UserError, match=message):
        rows(tmp_path, name, data)


def test_a_column_that_is_missing_or_no_text_is_named(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": 1, "b": "x"}\n')
    (row,) = read_rows(tmp_path / "t.jsonl")
    assert row.text("b") == "x"
    with pytest.raises(UserError, match=r"t\.jsonl:1: no column 'c'\. There are: a, b\."):
        row.text("c")
    with pytest.raises(UserError, match="'a' must be text. Received: 1"):
        row.text("a")
