"""Reads rows of tab- or comma-separated values and JSON lines; errors name the line."""

import csv
import dataclasses
import gzip
import itertools
import pathlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from electra_tf.platform import storage, strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path, cannot_read

MOST_BYTES, LONGEST_LINE = 1 << 30, 64 * storage.MIB
"""Limits of a file, kept in memory, and of a line. Files of GLUE and SQuAD have up to 80 MB."""
_Cells = Iterator[tuple[int, list[str]]]
"""Line number and cells of each row."""


@dataclasses.dataclass(frozen=True)
class TableRow:
    """A row, with the line, from 1, where it begins."""

    path: Path
    line: int
    values: Mapping[str, Any]
    """Column -> value: a string, or any type in JSON lines."""

    def error(self, problem: str) -> UserError:
        """Returns an error about this row."""
        return UserError(f"{self.path}:{self.line}: {problem}")

    def value(self, column: str) -> Any:
        """Returns a column's value; `UserError` if it is missing."""
        if column not in self.values:
            raise self.error(f"no column {column!r}. There are: {', '.join(self.values)}. In "
                             "training on your own files, --text_columns, --label_column and "
                             "--key_column select columns.")
        return self.values[column]

    def text(self, column: str) -> str:
        """Returns a column's string; `UserError` if it is missing or not a string."""
        value = self.value(column)
        if not isinstance(value, str):
            raise self.error(f"{column!r} must be text. Received: {shown(value)}")
        return value


def read_rows(path: Path, *, columns: Sequence[str] | None = None) -> Iterator[TableRow]:
    """Returns the rows of `.tsv` (tabs, no quoting), `.csv` (RFC 4180), `.jsonl` or `.txt`.

    Files are UTF-8, with or without a byte-order mark, and compressed if ".gz" follows the suffix.
    `columns` are their names if the first line isn't a header. Only a `.txt` needs them; its last
    column holds the rest of the line. `UserError` names file and line of what can't be read.
    """
    suffix = suffix_of(path)
    if suffix == ".jsonl":
        rows = _json_lines(path)
    elif suffix == ".csv":
        rows = _named(path, _comma_separated(path), columns)
    elif suffix == ".tsv" or (suffix == ".txt" and columns):
        most = len(columns) - 1 if suffix == ".txt" else -1
        rows = _named(path, ((number, line.split("\t", most))
                             for number, line in read_lines(path)), columns)
    else:
        raise UserError(f"{path} must end in .tsv, .csv or .jsonl, which decides how it is read.")
    first = next(rows, None)
    if first is None:
        raise UserError(f"{path} holds no rows.")
    return itertools.chain([first], rows)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Yields number and text of each line, split at "\n" alone; decompresses ".gz"."""
    for number, line in byte_lines(path, longest=LONGEST_LINE, most=MOST_BYTES):
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if b"\0" in line:
            raise UserError(f"{path}:{number}: holds NUL characters, as no text in UTF-8 does; "
                            "convert the file, for example with `iconv -f utf-16 -t utf-8`.")
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}:{number}: not UTF-8 at byte {error.start + 1} of the line; "
                            "convert the file, for example with iconv.") from None


def suffix_of(path: Path) -> str:
    """Returns a file's suffix, without ".gz"."""
    return pathlib.PurePath(path.name.removesuffix(".gz")).suffix


def _named(path: Path, cells: _Cells, columns: Sequence[str] | None) -> Iterator[TableRow]:
    if columns is None:
        number, columns = next(cells, (1, []))
        repeated = {name for name in columns if columns.count(name) > 1}
        if repeated:
            raise UserError(f"{path}:{number}: the header names {min(repeated)!r} twice.")
    for number, values in cells:
        if len(values) != len(columns):
            raise UserError(f"{path}:{number}: {len(values)} columns, but "
                            f"{len(columns)} are expected ({', '.join(columns)}).")
        yield TableRow(path, number, dict(zip(columns, values, strict=True)))


def _comma_separated(path: Path) -> _Cells:
    # `csv.reader` needs line ends to read quoted cells of several lines.
    reader = csv.reader((f"{line}\n" for _, line in read_lines(path)), strict=True)
    begin = 1
    try:
        for values in reader:
            yield begin, values
            begin = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{path}:{begin}: {error}.") from None


def _json_lines(path: Path) -> Iterator[TableRow]:
    for number, line in read_lines(path):
        try:
            values = strict_json.parse(line)
        except strict_json.Unreadable as error:
            raise UserError(f"{path}:{number}: {error}.") from None
        if not isinstance(values, dict):
            raise UserError(f"{path}:{number}: a JSON object is expected, for example "
                            f'{{"text": "...", "label": "..."}}. Received: {shown(values)}')
        yield TableRow(path, number, values)


def byte_lines(path: Path, *, longest: int, most: int) -> Iterator[tuple[int, bytes]]:
    """Yields number, from 1, and content of each line, decompressed if the name ends in ".gz".

    `UserError` beyond `longest` bytes a line or `most` decompressed bytes, or for a damaged file.
    """
    size = 0
    try:
        with storage.open_regular(path) as raw, (
                gzip.open(raw) if path.suffix == ".gz" else raw) as file:
            for number in itertools.count(1):
                line = file.readline(longest + 1)
                size += len(line)
                if len(line) > longest or size > most:
                    limit = (f"a line of more than {longest:,}" if len(line) > longest
                             else f"more than {most:,}")
                    raise UserError(f"{path}:{number}: {limit} bytes decompressed, which no file "
                                    "of its kind has; name the right file.")
                if not line:
                    return
                yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: not gzip, or damaged: {error}; get the file again, or leave "
                        ".gz out of its name if it isn't compressed.") from error
    except OSError as error:
        raise cannot_read(path, error) from error
