"""JSON lines and Parquet files: a text field of every object or row, and damage by its place."""

import gzip
import json
import re
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_prep.sources import fields
from data_prep.sources.registry import open_source
from electra_tf.core.errors import UserError
from tests.data_prep.reading import documents_of, read, read_skipping
from tests.support.refusals import refused

GOOD = b'{"text": "good"}\n'
TEXTS = [f"Text {number}.\n\nIts second line é." for number in range(2000)]
LINES = [[f"Text {number}.", "Its second line é."] for number in range(2000)]


def test_a_line_of_json_is_a_document(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(
        '\ufeff{"text": "One.\\n\\nTwo \u2028é."}\r\n\n  \n{"text": ""}\n{"text": "3."}'.encode()))
    assert read(f"jsonl:{tmp_path}/a.jsonl.gz") == [["One.", "Two \u2028é."], [], ["3."]]


@pytest.mark.parametrize(("row", "field", "lines"), [
    ({"text": None}, "text", []),
    ({"text": ["One.", "Two.\nThree."]}, "text", ["One.", "Two.", "Three."]),
    ({"text": []}, "text", []), ({"translation": {"en": "One."}}, "translation.en", ["One."]),
    ({"a.b": "One.", "a": {"b": "Two."}}, "a.b", ["One."]),
    ({"a": {"b": {"c": ["One."]}}}, "a.b.c", ["One."])],
    ids=["null", "list", "no strings", "inner", "dot in a name", "deep list"])
def test_texts_may_be_missing_lists_or_inner_fields(tmp_path, row, field, lines):
    """A null of Parquet is no document; one of JSON lines is an empty document."""
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row))
    assert read(f"jsonl:{tmp_path}/a.jsonl#{field}") == [lines, lines]
    pq.write_table(pa.Table.from_pylist([row, row]), tmp_path / "a.parquet")
    if "a.b" not in row:  # Its name is that of an inner field, too.
        assert read(f"parquet:{tmp_path}/a.parquet#{field}") == [lines, lines] * bool(lines)


@pytest.mark.parametrize(("content", "advice"), [
    ('[{"text": "good"},\n {"text": "good"}]', "write rows.jsonl with `python"),
    ('{\n "text": "good"\n}\n', "write rows.jsonl with"), ('{"text": 1}\n', "a string or a list"),
    ('{"text": {"a": "good"}}\n', "an inner field text.FIELD"), ('{"a": "b"}\n', "--on_error=skip"),
    ('{"text": ["good", 2]}\n', "a string or a list"), ('"good"\n', "Write objects")])
def test_other_json_is_refused_with_advice(tmp_path, content, advice):
    (tmp_path / "a.jsonl").write_text(content)
    with refused(advice) as error:
        read(f"jsonl:{tmp_path}/a.jsonl")
    if content.startswith("["):
        command = re.search("`python (.*)`", str(error.value))[1]
        subprocess.run(f"{sys.executable} {command}", shell=True, check=True, cwd=tmp_path)
        assert read(f"jsonl:{tmp_path}/rows.jsonl") == [["good"], ["good"]]


def test_copies_of_a_text_with_other_ids_are_in_one_split(tmp_path):
    (tmp_path / "a.txt").write_text("Café.\n")
    (tmp_path / "a.jsonl").write_text(
        '{"id": 1, "text": "Café."}\n{"id": 2, "text": ["Caf\\u00e9."]}\n{"text": 3}\n{\n')
    plain, first, second, *damaged = [
        part.key for name in ("a.txt", "jsonl:a.jsonl")
        for part in open_source(name.replace("a.", f"{tmp_path}/a.")).documents()]
    assert plain == first == second
    assert len({plain, *damaged}) == 3


@pytest.mark.parametrize(("bad", "message"), [
    (b'{"text": "a" "b"}', "the line at byte 17 is not JSON: Expecting ',' delimiter at byte 30;"),
    (b"[1]", "the line at byte 17 is not a JSON object; it is [1]."),
    (b'{"body": "a"}', "has no field 'text'; it has ['body']. Name the field"),
    (b'{"text": "\\ud800"}', "the field 'text' has half of a character"),
    (b'{"text": "\xe9"}', "is not UTF-8: bad byte 0xe9 at offset 27; convert the file"),
    (b"[" * 100_000, "the line at byte 17 is nested too deeply"),
], ids=["delimiter", "list", "absent", "half", "bytes", "deep"])
def test_a_bad_line_is_named_by_its_offset_or_skipped(tmp_path, bad, message):
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD + bad + b"\n" + GOOD)
    documents, (skipped,) = read_skipping(f"jsonl:{path}")
    assert documents == [["good"]] * 2
    assert message in skipped and str(path) in skipped
    with pytest.raises(UserError) as error:
        read(f"jsonl:{path}")
    assert str(error.value) == skipped


def test_an_endless_line_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(fields, "MAX_LINE_BYTES", 100)
    (tmp_path / "a.jsonl").write_bytes(GOOD + b'{"text": "' + b"x" * 1000 + b'"}\n' + GOOD)
    documents, (message,) = read_skipping(f"jsonl:{tmp_path}/a.jsonl")
    assert documents == [["good"]] * 2
    assert "the line at byte 17 has 1013 bytes, more than the maximum of 100" in message


def write_parquet(path, texts, name="text", **options):
    column = texts if isinstance(texts, pa.Array) else pa.array(texts)
    pq.write_table(pa.table({"id": list(range(len(column))), name: column}), path,
                   row_group_size=500, **options)


@pytest.mark.parametrize("kind", [
    pa.large_string(), pa.binary(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ids=str)
def test_a_row_of_parquet_is_a_document_for_each_type_of_string(tmp_path, kind):
    texts = pa.array(TEXTS)
    write_parquet(tmp_path / "a.data", texts.dictionary_encode()
                  if pa.types.is_dictionary(kind) else texts.cast(kind))
    assert pq.read_schema(tmp_path / "a.data").field("text").type == kind
    source = open_source(f"parquet:{tmp_path}/a.data")
    assert documents_of(source) == LINES
    assert 0 < source.position() <= source.size


def test_a_column_has_a_name_and_nulls_are_no_documents(tmp_path):
    write_parquet(tmp_path / "a.parquet", ["One.", None, "", "Two."], name="body")
    assert read(f"parquet:{tmp_path}/*.parquet#body") == [["One."], ["Two."]]
    with pytest.raises(UserError, match=r"must have one column 'text'; it has \['id', 'body'\]"):
        read(f"parquet:{tmp_path}/*.parquet")
    with refused("the column 'id' must hold strings or lists of strings. Received: int64"):
        read(f"parquet:{tmp_path}/*.parquet#id")


def test_a_row_that_is_not_utf8_is_named_and_skipped(tmp_path):
    write_parquet(tmp_path / "a.parquet", [b"One.", b"Caf\xe9.", b"Two."])
    documents, (message,) = read_skipping(f"parquet:{tmp_path}/a.parquet")
    assert documents == [["One."], ["Two."]]
    assert "a.parquet, row 1 is not UTF-8: bad byte 0xe9 at offset 3" in message


def test_a_damaged_page_ends_its_file(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(path, TEXTS, write_page_checksum=True)
    column = pq.ParquetFile(path).metadata.row_group(1).column(1)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size // 2] ^= 255
    content[(column.dictionary_page_offset or column.data_page_offset) + 60] ^= 255
    path.write_bytes(content)
    documents, (message,) = read_skipping(f"parquet:{path}")
    assert documents == LINES[:256]  # A batch.
    assert "a.parquet is not a complete Parquet file, from row 256 on (" in message


@pytest.mark.parametrize("content", [b"", b"PAR1" * 9, "cut"])
def test_a_file_that_is_not_parquet_is_named(tmp_path, content):
    if content == "cut":
        write_parquet(tmp_path / "a.data", TEXTS)
        content = (tmp_path / "a.data").read_bytes()[:-100]
    (tmp_path / "a.data").write_bytes(content)
    (tmp_path / "b.txt").write_text("x")
    documents, messages = read_skipping(f"parquet:{tmp_path}/*")
    assert not documents
    assert messages and all(f"{tmp_path}/" in message for message in messages)
