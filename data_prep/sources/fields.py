"""Reads a text field of the objects of JSON lines, or of the rows of Parquet files.

An object or a row is a document, a list of strings its lines, and "a.b" an inner field. Rows come
in batches, so memory is bounded. Strings of Parquet stay bytes; workers check that they are UTF-8.
"""

import json
import typing
from collections.abc import Iterator

from data_prep.documents import DocumentPart, decoded, key_of, stripped
from data_prep.sources.files import damaged_stretch
from data_prep.sources.plain_text import parts_of
from electra_tf.core.errors import UserError, one_line, shown
from electra_tf.core.file_kinds import TO_JSON_LINES, require_text

MAX_LINE_BYTES = 64 << 20  # Bytes of the longest line of JSON that is read.
_ROWS = 256  # Rows per batch.


def require_json_lines(path: str, head: bytes) -> None:
    """Raises `UserError` for a file that is not text, or whose objects extend over lines."""
    require_text(path, head)
    first, _, _ = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
    if first.startswith(b"[") or first.strip() == b"{":
        raise UserError(
            f"{path} is JSON without a line for each object; write rows.jsonl with `python -c "
            f"\"import pandas; pandas.read_json{TO_JSON_LINES.replace('FILE', path)}, and name it.")


def _value(record: dict[str, typing.Any], field: str) -> typing.Any:
    """Returns the value of a field, with the strings of a list as lines, and "" for null.

    Raises `KeyError` or `TypeError` if the field is missing.
    """
    outer, _, inner = field.partition(".")
    if field not in record and inner:
        return _value(record[outer], inner)
    value = record[field]
    if value is None or isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "\n".join(value or [])
    return value


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
        return key_of(_value(json.loads(line), field).encode())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return key_of(line)  # `parse_object` describes the error.


def parse_object(field: str, part: DocumentPart) -> Iterator[str]:
    """Returns the lines of an object's text; `UserError` without a string in the field."""
    # The object, whose errors name the byte in the file.
    line = f"{part.path}: the line at byte {part.offset}"
    text = decoded(part)
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
        raise UserError(f"{line} is not a JSON object; it is {shown(record)}. Write objects.")
    try:
        value = _value(record, field)
    except (KeyError, TypeError) as error:
        raise UserError(f"{line} has no field {shown(field)}; it has {shown(sorted(record))}. "
                        "Name the field that holds the text after the pattern, #FIELD, or skip "
                        "such lines with --on_error=skip.") from error
    if not isinstance(value, str):
        raise UserError(f"{line}: the field {shown(field)} must be a string or a list of strings. "
                        f"Received: {shown(value)}; name an inner field {field}.FIELD.")
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
        # Check that the column occurs once and holds strings, also dictionary-encoded ones, or
        # lists of strings. A struct's fields are columns named "a.b".
        schema = _flattened(table.schema_arrow.empty_table(), column).schema
        if schema.names.count(column) != 1:
            raise UserError(f"{path} must have one column {shown(column)}; it has "
                            f"{shown(schema.names)}. Name the column that holds the text after the "
                            "pattern: #COLUMN.")
        kind, target = schema.field(column).type, pyarrow.large_binary()
        is_list = types.is_list(kind) or types.is_large_list(kind)
        value_type = kind.value_type if is_list or types.is_dictionary(kind) else kind
        if not any(is_text(value_type) for is_text in (
                types.is_string, types.is_large_string, types.is_binary, types.is_large_binary,
                types.is_string_view, types.is_binary_view, types.is_null)):
            raise UserError(f"{path}: the column {shown(column)} must hold strings or lists of "
                            f"strings. Received: {kind}; name an inner field {column}.FIELD.")
        for batch in table.iter_batches(_ROWS, columns=[column]):
            # Strings become bytes, because they may not be UTF-8.
            rows = _flattened(pyarrow.Table.from_batches([batch]), column).column(column)
            for value in rows.cast(pyarrow.large_list(target) if is_list else target):
                if value.is_valid:
                    text = b"\n".join(filter(None, value.as_py())) if is_list else value.as_py()
                    yield from parts_of(text, f"{path}, row {row}")
                row += 1
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, EOFError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        yield damaged_stretch(path, f"{path} is not a complete Parquet file, from row {row} on "
                              f"({one_line(str(error), 200)})")


def _flattened(table: typing.Any, column: str) -> typing.Any:
    """Returns a `pyarrow.Table` with columns for the fields of structs, as deep as `column`."""
    for _ in range(column.count(".")):
        table = table.flatten()
    return table
