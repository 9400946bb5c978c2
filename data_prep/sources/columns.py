"""Parquet files, of which one column is text: a row is a document.

Rows come in batches, so the memory stays flat. Their strings are handed out as bytes; workers check
that they are UTF-8.
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
"""Rows that are read at once."""


def columns(pattern: str, column: str) -> FileSource:
    """Returns the source of a text column of Parquet files."""
    return FileSource(matching_files(pattern), Table(f"parquet#{column}", column),
                      parse_plain_text)


@dataclasses.dataclass(frozen=True)
class Table:
    """The format of Parquet files."""

    name: str
    column: str

    def documents(self, path: Path, meter: Meter) -> Iterator[DocumentPart]:
        """See `Format`."""
        with path.open("rb") as file:
            try:
                yield from self._rows(file, str(path), meter)
            except _damage() as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise cannot_read(path, error) from error
                yield damaged_stretch(str(path), f"{path} is no whole Parquet file "
                                      f"({_words(error)})")
            finally:
                meter.stored_bytes = int

    def _rows(self, file: typing.BinaryIO, path: str, meter: Meter) -> Iterator[DocumentPart]:
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.parquet.ParquetFile(file, page_checksum_verification=True)
        _require_text(table.schema_arrow, self.column, path)
        stored, rows = file.seek(0, 2), max(1, table.metadata.num_rows)
        row = 0
        meter.stored_bytes = lambda: stored * row // rows
        for number in range(table.num_row_groups):
            end = row + table.metadata.row_group(number).num_rows
            try:
                for batch in table.iter_batches(_ROWS, row_groups=[number], columns=[self.column]):
                    # As bytes, for they may not be UTF-8.
                    for value in batch.column(self.column).cast(pyarrow.large_binary()):
                        if value.is_valid:
                            yield from parts_of(value.as_py(), f"{path}, row {row}")
                        row += 1
            except _damage() as error:
                yield damaged_stretch(path, f"{path}: row group {number}, from row {row} on: it is "
                                      f"corrupt or cut short ({_words(error)})")
            row = end


def _damage() -> tuple[type[Exception], ...]:
    """Returns what pyarrow raises of a damaged file."""
    import pyarrow

    return (pyarrow.ArrowException, OSError, UnicodeDecodeError, EOFError)


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _require_text(schema: Any, column: str, path: str) -> None:
    """Raises `UserError` unless a schema has one column of that name, and it holds strings."""
    from pyarrow import types

    if schema.names.count(column) != 1:
        raise UserError(f"{path} must have one column {shown(column)}; it has "
                        f"{shown(schema.names)}. Name the column that holds the text behind the "
                        "pattern: #COLUMN.")
    kind = schema.field(column).type
    value = kind.value_type if types.is_dictionary(kind) else kind
    if not any(is_text(value) for is_text in (types.is_string, types.is_large_string,
                                              types.is_binary, types.is_large_binary)):
        raise UserError(f"{path}: the column {shown(column)} must hold strings. Received: {kind}")
