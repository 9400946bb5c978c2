"""Reads a text column of Parquet files: a row is a document.

Rows come in batches, so memory is bounded. Strings stay bytes; workers check that they are UTF-8.
"""

import functools
import typing
from collections.abc import Iterator

from data_prep.documents import DocumentPart, parse_plain_text
from data_prep.sources.files import FileSource, damaged_stretch, matching_files
from data_prep.sources.plain_text import parts_of
from electra_tf.platform.errors import UserError, one_line, shown

_ROWS = 256
"""Rows per batch."""


def columns(pattern: str, column: str) -> FileSource:
    """Returns the source of a text column of Parquet files."""
    return FileSource(matching_files(pattern), f"parquet#{column}",
                      functools.partial(read_rows, column), parse_plain_text, None)


def read_rows(column: str, file: typing.BinaryIO, path: str) -> Iterator[DocumentPart]:
    """Yields the rows that are not null, until damage; `UserError` without the text column."""
    import pyarrow
    import pyarrow.parquet

    row = 0
    try:
        parquet = pyarrow.parquet.ParquetFile(file, page_checksum_verification=True)
        _require_text(parquet.schema_arrow, column, path)
        for batch in parquet.iter_batches(_ROWS, columns=[column]):
            # Strings become bytes, because they may not be UTF-8.
            for value in batch.column(column).cast(pyarrow.large_binary()):
                if value.is_valid:
                    yield from parts_of(value.as_py(), f"{path}, row {row}")
                row += 1
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, EOFError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        yield damaged_stretch(path, f"{path} is no whole Parquet file, from row {row} on "
                              f"({one_line(str(error), 200)})")


def _require_text(schema: typing.Any, column: str, path: str) -> None:
    """Raises `UserError` unless a schema has one column of that name, and it holds strings."""
    from pyarrow import types

    if schema.names.count(column) != 1:
        raise UserError(f"{path} must have one column {shown(column)}; it has "
                        f"{shown(schema.names)}. Name the column that holds the text after the "
                        "pattern: #COLUMN.")
    kind = schema.field(column).type
    value = kind.value_type if types.is_dictionary(kind) else kind
    if not any(is_text(value) for is_text in (types.is_string, types.is_large_string,
                                              types.is_binary, types.is_large_binary)):
        raise UserError(f"{path}: the column {shown(column)} must hold strings. Received: {kind}")
