"""JSON lines: a string of every object, and every bad line by its place."""

import gzip

import pytest

from data_prep.sources import fields
from electra_tf.platform.errors import UserError
from tests.data_prep.reading import read, read_skipping


def test_a_line_is_a_document_and_blank_lines_and_marks_do_not_matter(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(
        '\ufeff{"text": "One.\\n\\nTwo \u2028é."}\r\n\n  \n{"text": ""}\n{"text": "3."}'.encode()))
    assert read(f"jsonl:{tmp_path}/a.jsonl.gz") == [["One.", "Two \u2028é."], [], ["3."]]


GOOD = b'{"text": "good"}\n'


@pytest.mark.parametrize(("bad", "message"), [
    (b'{"text": "a" "b"}', "the line at byte 17 is no JSON: Expecting ',' delimiter at byte 30;"),
    (b'{"text": "cut', "the line at byte 17 is no JSON: Invalid control character at at byte 30"),
    (b"[1]", "the line at byte 17 is no JSON object; it holds [1]."),
    (b'{"body": "a"}', "has no field 'text'; it has ['body']. Name the field"),
    (b'{"text": 3}', "the field 'text' must be a string. Received: 3"),
    (b'{"text": "\\ud800"}', "the field 'text' has half of a character"),
    (b'{"text": "\xe9"}', "is not UTF-8: bad byte 0xe9 at offset 27; convert the file"),
    (b"[" * 100_000, "the line at byte 17 is nested too deeply"),
    (b'{"text": ' + b"1" * 5000 + b"}", "has a number with too many digits"),
], ids=["delimiter", "cut", "list", "absent", "number", "half", "bytes", "deep", "digits"])
def test_a_bad_line_is_told_by_its_place_or_skipped(tmp_path, bad, message):
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD + bad + b"\n" + GOOD)
    found, (told,) = read_skipping(f"jsonl:{path}")
    assert found == [["good"]] * 2
    assert message in told and str(path) in told
    with pytest.raises(UserError) as caught:
        read(f"jsonl:{path}")
    assert str(caught.value) == told


def test_an_endless_line_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(fields, "MAX_LINE_BYTES", 100)
    (tmp_path / "a.jsonl").write_bytes(GOOD + b'{"text": "' + b"x" * 1000 + b'"}\n' + GOOD)
    found, (message,) = read_skipping(f"jsonl:{tmp_path}/a.jsonl")
    assert found == [["good"]] * 2
    assert "the line at byte 17 has 1013 bytes, more than the 100" in message
