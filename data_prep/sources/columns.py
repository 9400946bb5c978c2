"""Parquet and Arrow files, of which one column is text: a row is a document.

Rows come in batches, so the memory stays flat. Their strings are handed out as bytes; workers check
that they are UTF-8.
"""

import dataclasses
import typing
from collections.abc import Callable, Iterator
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
    """Returns the source of a text column of Parquet or Arrow (IPC, Feather) files."""
    return FileSource(matching_files(pattern), Table(f"parquet#{column}", column),
                      parse_plain_text)


class _Group(typing.NamedTuple):
    """Rows that can be read although others of the file are damaged."""

    name: str
    stored: Callable[[], int]
    """Returns how many bytes of the file have been read, about."""
    rows: int
    """0 if only reading them tells."""
    batches: Callable[[str], Iterator[Any]]
    """Returns its rows, with the column of that name at least."""


@dataclasses.dataclass(frozen=True)
class Table:
    """The format of files with columns: Parquet, Arrow file or stream, told by the first bytes."""

    name: str
    column: str

    def documents(self, path: Path, meter: Meter) -> Iterator[DocumentPart]:
        """See `Format`."""
        with path.open("rb") as file:
            groups = {b"PAR1": _parquet, b"ARRO": _arrow_file}.get(file.read(4), _arrow_stream)
            file.seek(0)
            try:
                yield from self._rows_of(groups(file), str(path), meter)
            except _damage() as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise cannot_read(path, error) from error
                yield damaged_stretch(
                    str(path), f"{path} is no whole Parquet or Arrow file ({_words(error)})")
            finally:
                meter.stored_bytes = int

    def _rows_of(self, groups: Iterator[Any], path: str, meter: Meter) -> Iterator[DocumentPart]:
        column = _require_text(next(groups), self.column, path)
        row = 0
        for group in groups:
            meter.stored_bytes = group.stored
            begin = row
            try:
                for batch in group.batches(column):
                    yield from _rows(batch.column(column), path, row)
                    row += batch.num_rows
            except _damage() as error:
                yield damaged_stretch(path, f"{path}: {group.name}, from row {row} on: it is "
                                      f"corrupt or cut short ({_words(error)})")
            row = max(row, begin + group.rows)


def _damage() -> tuple[type[Exception], ...]:
    """Returns what pyarrow raises of a damaged file."""
    import pyarrow

    return (pyarrow.ArrowException, OSError, UnicodeDecodeError, EOFError)


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _parquet(file: typing.BinaryIO) -> Iterator[Any]:
    """Yields the schema, then the groups, as the next two functions do."""
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(file, page_checksum_verification=True)
    yield table.schema_arrow
    groups = [table.metadata.row_group(number) for number in range(table.num_row_groups)]
    stored, before = file.seek(0, 2), 0
    whole = max(1, sum(group.total_byte_size for group in groups))
    for number, group in enumerate(groups):
        yield _Group(
            f"row group {number}", lambda read=stored * before // whole: read, group.num_rows,
            lambda column, number=number: table.iter_batches(
                _ROWS, row_groups=[number], columns=[column]))
        before += group.total_byte_size


def _arrow_file(file: typing.BinaryIO) -> Iterator[Any]:
    import pyarrow

    table = pyarrow.ipc.open_file(file)
    yield table.schema
    stored, count = file.seek(0, 2), table.num_record_batches
    for number in range(count):
        yield _Group(f"record batch {number}", lambda read=stored * number // count: read, 0,
                     lambda _, number=number: iter([table.get_batch(number)]))


def _arrow_stream(file: typing.BinaryIO) -> Iterator[Any]:
    """Reads the form that Hugging Face's `datasets` keeps on disk; damage ends the file."""
    import pyarrow

    table = pyarrow.ipc.open_stream(file)
    yield table.schema
    yield _Group("record batches", file.tell, 0, lambda _: iter(table))


def _require_text(schema: Any, column: str, path: str) -> str:
    """Returns the name of the column, which holds strings."""
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
    return column


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
