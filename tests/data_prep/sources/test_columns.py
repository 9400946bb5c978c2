"""Parquet files: rows are documents, damage is told by row group."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_prep.sources.registry import open_source
from electra_tf.platform.errors import UserError
from tests.data_prep.reading import documents_of, read, read_skipping

TEXTS = [f"Text {number}.\n\nIts second line é." for number in range(2000)]
LINES = [[f"Text {number}.", "Its second line é."] for number in range(2000)]


def table(texts=TEXTS, kind=None, name="text"):
    return pa.table({"id": list(range(len(texts))), name: pa.array(texts, kind or pa.string())})


def write_parquet(made, path):
    pq.write_table(made, path, row_group_size=500)


@pytest.mark.parametrize("kind", [
    pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_a_row_is_a_document_whatever_its_type(tmp_path, kind):
    made = table(TEXTS).set_column(1, "text", pa.array(TEXTS).dictionary_encode()
                                   if pa.types.is_dictionary(kind) else pa.array(TEXTS).cast(kind))
    write_parquet(made, tmp_path / "a.data")
    assert pq.read_schema(tmp_path / "a.data").field("text").type == kind
    source = open_source(f"parquet:{tmp_path}/a.data")
    assert documents_of(source) == LINES
    assert 0 < source.position() <= source.size


def test_the_column_has_a_name_and_nulls_are_no_documents(tmp_path):
    write_parquet(table(["One.", None, "", "Two."], name="body"), tmp_path / "a.parquet")
    assert read(f"parquet:{tmp_path}/*.parquet#body") == [["One."], ["Two."]]


@pytest.mark.parametrize(("made", "message"), [
    (table(name="body"), r"must have one column 'text'; it has \['id', 'body'\]. Name the column"),
    (pa.table({"text": [1]}), "the column 'text' must hold strings. Received: int64"),
])
def test_another_column_is_refused(tmp_path, made, message):
    write_parquet(made, tmp_path / "a.data")
    with pytest.raises(UserError, match=message):
        read(f"parquet:{tmp_path}/a.data")


def test_a_row_that_is_not_utf8_is_told_and_skipped(tmp_path):
    write_parquet(table([b"One.", b"Caf\xe9.", b"Two."], pa.binary()), tmp_path / "a.parquet")
    found, (message,) = read_skipping(f"parquet:{tmp_path}/a.parquet")
    assert found == [["One."], ["Two."]]
    assert "a.parquet, row 1 is not UTF-8: bad byte 0xe9 at offset 3" in message


def test_a_broken_page_ends_its_file(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(table(), path, row_group_size=500, write_page_checksum=True)
    column = pq.ParquetFile(path).metadata.row_group(1).column(1)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size // 2] ^= 255
    content[(column.dictionary_page_offset or column.data_page_offset) + 60] ^= 255
    path.write_bytes(content)
    found, (message,) = read_skipping(f"parquet:{path}")
    assert found == LINES[:256]  # A batch.
    assert "a.parquet is no whole Parquet file, from row 256 on (" in message
    with pytest.raises(UserError, match="from row 256 on"):
        read(f"parquet:{path}")


@pytest.mark.parametrize("content", [b"", b"text", b"PAR1", b"PAR1" * 9, "cut"])
def test_what_is_no_table_is_told(tmp_path, content):
    if content == "cut":
        write_parquet(table(), tmp_path / "a.data")
        content = (tmp_path / "a.data").read_bytes()[:-100]
    (tmp_path / "a.data").write_bytes(content)
    (tmp_path / "b.txt").write_text("x")
    found, messages = read_skipping(f"parquet:{tmp_path}/*")
    assert not found
    assert messages and all(f"{tmp_path}/" in message for message in messages)
