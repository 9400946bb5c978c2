"""Parquet and Arrow files, of which one column is text: a row is a document.

Rows come in batches, so the memory stays flat. Their strings are handed out as bytes, so that
workers find out what isn't UTF-8.
"""

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

from data_prep.documents import DocumentPart, parse_plain_text
from data_prep.sources.compression import cannot_read
from data_prep.sources.files import FileSource, Meter, damaged_stretch, matching_files
from data_prep.sources.plain_text import parts_of
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

TEXT_COLUMN = "text"
_ROWS = 256
"""Of a Parquet file, read at once."""


def columns(pattern: str, column: str) -> FileSource:
    """Returns the source that is a column of Parquet or Arrow (IPC, Feather) files.

    Raises:
        UserError: no file matches.
    """
    return FileSource(matching_files(pattern), Table(f"parquet#{column}", column),
                      parse_plain_text)


@dataclasses.dataclass(frozen=True)
class Table:
    """How documents lie in a file of columns; its first bytes tell which kind it is."""

    name: str
    column: str

    def documents(self, path: Path, meter: Meter) -> Iterator[DocumentPart]:
        """See `Format`."""
        with path.open("rb") as file:
            reader = _READERS.get(file.read(4), _stream_batches)
            file.seek(0)
            try:
                yield from reader(file, str(path), self.column, meter)
            except _damage() as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise cannot_read(path, error) from error
                yield damaged_stretch(str(path), f"{path}: {_words(error)}")
            finally:
                meter.stored_bytes = int


def _damage() -> tuple[type[Exception], ...]:
    """Returns what pyarrow raises of a damaged file."""
    import pyarrow

    return (pyarrow.ArrowException, OSError, UnicodeDecodeError, EOFError)


def _words(error: Exception) -> str:
    return f"it is corrupt or cut short ({' '.join(str(error).split())[:200]})"


def _parquet_batches(file: typing.BinaryIO, path: str, column: str, meter: Meter
                     ) -> Iterator[DocumentPart]:
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(file, page_checksum_verification=True)
    _require_text(table.schema_arrow, column, path)
    sizes = [table.metadata.row_group(group).total_byte_size for group in range(
        table.metadata.num_row_groups)]
    stored = file.seek(0, 2)
    row = 0
    for group in range(len(sizes)):
        part = stored * sum(sizes[:group]) // max(1, sum(sizes))
        meter.stored_bytes = lambda part=part: part
        rows = table.metadata.row_group(group).num_rows
        read = 0
        try:
            for batch in table.iter_batches(_ROWS, row_groups=[group], columns=[column]):
                yield from _rows(batch.column(0), path, row + read)
                read += batch.num_rows
        except _damage() as error:
            yield damaged_stretch(path, f"{path}: row group {group}, rows {row + read} to "
                                  f"{row + rows - 1}: {_words(error)}")
        row += rows
    meter.stored_bytes = lambda: stored


def _ipc_batches(file: typing.BinaryIO, path: str, column: str, meter: Meter
                 ) -> Iterator[DocumentPart]:
    import pyarrow

    table = pyarrow.ipc.open_file(file)
    _require_text(table.schema, column, path)
    stored = file.seek(0, 2)
    row = 0
    for number in range(table.num_record_batches):
        part = stored * number // table.num_record_batches
        meter.stored_bytes = lambda part=part: part
        try:
            batch = table.get_batch(number)
            yield from _rows(batch.column(column), path, row)
            row += batch.num_rows
        except _damage() as error:
            yield damaged_stretch(path, f"{path}: record batch {number}, from row {row} on: "
                                  f"{_words(error)}")
    meter.stored_bytes = lambda: stored


def _stream_batches(file: typing.BinaryIO, path: str, column: str, meter: Meter
                    ) -> Iterator[DocumentPart]:
    """Reads the form that Hugging Face's `datasets` keeps on disk."""
    import pyarrow

    meter.stored_bytes = file.tell
    try:
        table = pyarrow.ipc.open_stream(file)
    except _damage() as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        yield damaged_stretch(path, f"{path} is no whole Parquet or Arrow file "
                              f"({' '.join(str(error).split())[:200]})")
        return
    _require_text(table.schema, column, path)
    row = batches = 0
    try:
        for batch in table:
            yield from _rows(batch.column(column), path, row)
            row += batch.num_rows
            batches += 1
    except _damage() as error:
        yield damaged_stretch(path, f"{path}: record batch {batches}, from row {row} on: "
                              f"{_words(error)}")


_READERS = {b"PAR1": _parquet_batches, b"ARRO": _ipc_batches}


def _require_text(schema: Any, column: str, path: str) -> None:
    from pyarrow import types

    if column not in schema.names:
        raise UserError(f"{path} has no column {shown(column)}; it has {shown(schema.names)}. "
                        "Name the column that holds the text behind the pattern: #COLUMN.")
    if schema.names.count(column) > 1:
        raise UserError(f"{path} has several columns {shown(column)}; give each a name of its own.")
    kind = schema.field(column).type
    value = kind.value_type if types.is_dictionary(kind) else kind
    if not any(is_text(value) for is_text in (
            types.is_string, types.is_large_string, types.is_string_view, types.is_binary,
            types.is_large_binary)):
        raise UserError(f"{path}: the column {shown(column)} must hold strings. Received: {kind}")


def _rows(array: Any, path: str, first: int) -> Iterator[DocumentPart]:
    """Yields the strings of a batch that aren't null, as bytes; they may not be UTF-8."""
    import pyarrow
    from pyarrow import types

    array.validate()  # Offsets beyond the data would be read otherwise.
    if types.is_dictionary(array.type):
        array.validate(full=True)
        array = array.dictionary_decode()
    if types.is_string_view(array.type):
        array = array.cast(pyarrow.large_string())
    large = types.is_large_string(array.type) or types.is_large_binary(array.type)
    array = array.view(pyarrow.large_binary() if large else pyarrow.binary())
    array.validate(full=True)
    for row, value in enumerate(array, first):
        if value.is_valid:
            yield from parts_of(value.as_py(), f"{path}, row {row}")
