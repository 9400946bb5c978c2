"""Reads a text field of the objects of JSON lines, or of the rows of Parquet files.

An object or a row is a document. Rows come in batches, so memory is bounded. Strings of Parquet
stay bytes; workers check that they are UTF-8.
"""

import json
import typing
from collections.abc import Iterator

from data_prep.documents import DocumentPart, decoded, key_of, stripped
from data_prep.sources.files import damaged_stretch
from data_prep.sources.plain_text import parts_of
from electra_tf.core.errors import UserError, one_line, shown

MAX_LINE_BYTES = 64 << 20  # Bytes of the longest line of JSON that is read.
_ROWS = 256  # Rows per batch.


def split_lines(field: str, file: typing.BinaryIO, path: str) -> Iterator[DocumentPart]:
    """Yields the lines of a file, without blank ones; equal texts in a field have one key."""
    offset = 0
    while line := file.readline(MAX_LINE_BYTES):
        start, offset = offset, offset + len(line)
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            # Skip the rest of a line that is too long.
            while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                offset += len(rest)
            offset += len(rest)
            yield damaged_stretch(path, f"{path}: the line at byte {start} has {offset - start} "
                                  f"bytes, more than the maximum of {MAX_LINE_BYTES}")
        elif line.strip(b" \t\r\n\xef\xbb\xbf"):
            yield DocumentPart(content=line, key=_text_key(field, line), path=path, offset=start)


def _text_key(field: str, line: bytes) -> int:
    try:
        return key_of(json.loads(line)[field].encode())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return key_of(line)  # `parse_object` describes the error.


def parse_object(field: str, part: DocumentPart) -> Iterator[str]:
    """Returns the lines of an object's text; `UserError` without a string in the field."""
    # The object, whose errors name the byte in the file.
    line = f"{part.path}: the line at byte {part.offset}"
    text = decoded(part)
    if not part.offset and text.lstrip("\ufeff \t").startswith("["):
        raise UserError(f"{line} begins a list; write an object per line, for example with "
                        "`jq -c '.[]'`.")
    try:
        record = json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        at = part.offset + len(text[:error.pos].encode())
        raise UserError(f"{line} is not JSON: {error.msg} at byte {at}; correct or remove the line."
                        ) from error
    except (RecursionError, ValueError) as error:  # Too many digits for Python.
        raise UserError(f"{line} is nested too deeply, or has a number with too many digits; "
                        "correct or remove the line.") from error
    # The text is the string of one field.
    if not isinstance(record, dict):
        raise UserError(f"{line} is not a JSON object; it is {shown(record)}.")
    if field not in record:
        raise UserError(f"{line} has no field {shown(field)}; it has {shown(sorted(record))}. "
                        "Name the field that holds the text after the pattern: #FIELD.")
    value = record[field]
    if not isinstance(value, str):
        raise UserError(f"{line}: the field {shown(field)} must be a string. Received: "
                        f"{shown(value)}")
    try:
        # An escape \ud800 to \udfff of JSON is half of a character, which UTF-8 cannot hold.
        value.encode()
    except UnicodeEncodeError as error:
        raise UserError(f"{line}: the field {shown(field)} has half of a character "
                        f"({shown(value[error.start])}); correct or remove the line.") from error
    return stripped(value)


def read_rows(column: str, file: typing.BinaryIO, path: str) -> Iterator[DocumentPart]:
    """Yields the rows that are not null, until damage.

    Raises `UserError` unless the file has one column of that name, and it holds strings.
    """
    import pyarrow
    import pyarrow.parquet
    from pyarrow import types

    # Rows are counted in the file, null ones too, so that messages find them.
    row = 0
    try:
        table = pyarrow.parquet.ParquetFile(file, page_checksum_verification=True)
        # Check that the column occurs once and holds strings, also dictionary-encoded ones.
        schema = table.schema_arrow
        if schema.names.count(column) != 1:
            raise UserError(f"{path} must have one column {shown(column)}; it has "
                            f"{shown(schema.names)}. Name the column that holds the text after the "
                            "pattern: #COLUMN.")
        kind = schema.field(column).type
        value_type = kind.value_type if types.is_dictionary(kind) else kind
        if not any(is_text(value_type) for is_text in (
                types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)):
            raise UserError(f"{path}: the column {shown(column)} must hold strings. Received: "
                            f"{kind}")
        for batch in table.iter_batches(_ROWS, columns=[column]):
            # Strings become bytes, because they may not be UTF-8.
            for value in batch.column(column).cast(pyarrow.large_binary()):
                if value.is_valid:
                    yield from parts_of(value.as_py(), f"{path}, row {row}")
                row += 1
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, EOFError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        yield damaged_stretch(path, f"{path} is not a complete Parquet file, from row {row} on "
                              f"({one_line(str(error), 200)})")
