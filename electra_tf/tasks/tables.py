"""Reads rows of tab- or comma-separated values and JSON lines; errors name the line."""

import csv
import dataclasses
import gzip
import itertools
import pathlib
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from electra_tf.platform import storage, strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.file_kinds import HEAD, require_text
from electra_tf.platform.storage import Path, read_error

MAX_FILE_BYTES, MAX_LINE_BYTES = 1 << 30, 64 * storage.MIB
"""Limits of a file, kept in memory, and of a line. Files of GLUE and SQuAD have up to 80 MB."""
MAX_SKIPPED_LINES = 10
"""Lines of a published benchmark that are skipped at most, or 1 %; in short files a fifth."""
_QUOTED = r'"(?:[^"]|"")*+"'
_QUOTED_FILE = re.compile(rf'(?:(?:{_QUOTED}|[^"\t\n]*+)(?:[\t\n]|$))*+')
LABEL_NAMES = ("label", "labels", "tags", "tag", "ner_tags", "ner", "class", "category", "target")
"""Usual names of the column of labels or tags in a header."""
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
            raise self.error(f"no column {column!r}. There are: {', '.join(self.values)}. For your "
                             "own files, --text_columns, --label_column and --key_column select "
                             "columns by name, or all by number if there is no header.")
        return self.values[column]

    def text(self, column: str) -> str:
        """Returns a column's string; `UserError` if it is missing or not a string."""
        value = self.value(column)
        if not isinstance(value, str):
            raise self.error(f"{column!r} must be text. Received: {shown(value)}")
        return value


def read_rows(path: Path, *, columns: Sequence[str] | None = None, selected: Sequence[str] = (),
              published: bool = False, notes: list[str] | None = None) -> Iterator[TableRow]:
    """Returns the rows of `.tsv` (tabs), `.csv` (RFC 4180; commas or semicolons), `.jsonl`, `.txt`.

    Files are UTF-8, with or without a byte-order mark, and compressed if ".gz" follows the suffix.
    `columns` are their names if the first line isn't a header. Only a `.txt` needs them; its last
    column holds the rest of the line. `selected` may have numbers of columns; if all are, the
    file has no header. A `.tsv` is read with quotes if all its quotes enclose cells, some of them
    doubled or around line ends, or cells of every row. A `published` benchmark is read without
    quotes, and a few rows of another width are skipped. `notes` receives what was decided.
    `UserError` names file and line of what can't be read.
    """
    notes = [] if notes is None else notes
    suffix = suffix_of(path)
    if suffix == ".jsonl":
        rows = json_lines(path)
    elif suffix in (".csv", ".tsv") or (suffix == ".txt" and columns):
        if suffix == ".csv":
            _, header = next(read_lines(path), (1, ""))
            separator = next((mark for mark in ",;\t" if mark in header), ",")
            if separator != ",":
                notes.append(
                    f"{path}: {'semicolons' if separator == ';' else 'tabs'} separate columns")
            cells = _quoted(path, separator)
        elif suffix == ".tsv" and not published and _has_quoted_cells(path):
            notes.append(f"{path}: quotes enclose cells, as in .csv, and are removed")
            cells = _quoted(path, "\t")
        else:
            max_splits = len(columns) - 1 if suffix == ".txt" else -1
            cells = ((number, line.split("\t", max_splits)) for number, line in read_lines(path))
        if published:
            cells = _without_broken_lines(path, cells, notes)
        rows = _named(path, cells, columns, selected, notes)
    else:
        raise UserError(f"{path} must end in .tsv, .csv or .jsonl, which decides how it is read.")
    first = next(rows, None)
    if first is None:
        raise UserError(f"{path} holds no rows.")
    return itertools.chain([first], rows)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Yields number and text of each line, split at "\n" alone; decompresses ".gz"."""
    for number, content in byte_lines(path):
        line = content.removesuffix(b"\n").removesuffix(b"\r")
        if b"\0" in line:
            raise UserError(f"{path}:{number}: NUL characters, so the file is not text in UTF-8; "
                            "convert the file, for example with `iconv -f utf-16 -t utf-8`.")
        if number == 1 and b"\r" in line and not content.endswith(b"\n"):
            raise UserError(f"{path}: CR alone ends its lines; convert it with tr '\\r' '\\n'.")
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}:{number}: not UTF-8 at byte {error.start + 1} of the line; "
                            "convert the file, for example with iconv.") from None


def suffix_of(path: Path) -> str:
    """Returns a file's suffix, without ".gz"."""
    return pathlib.PurePath(path.name.removesuffix(".gz")).suffix


def _named(path: Path, cells: _Cells, columns: Sequence[str] | None,
           selected: Sequence[str], notes: list[str]) -> Iterator[TableRow]:
    if columns is None:
        number, columns = next(cells, (1, []))
        # pandas numbers the columns of a table without names from 0, in a header.
        if selected and all(map(str.isdecimal, selected)) and columns != [
                str(index) for index in range(len(columns))]:
            notes.append(f"{path}: columns are selected by number, so the first line is a row")
            if {cell.lower() for cell in columns} & {*LABEL_NAMES, "text", "sentence"}:
                raise UserError(f"{path}:{number}: this line is a header, {', '.join(columns)}; "
                                "select columns by these names, or remove the line.")
            cells = itertools.chain([(number, columns)], cells)
            columns = [str(index) for index in range(1, len(columns) + 1)]
        repeated = {name for name in columns if columns.count(name) > 1}
        if repeated:
            raise UserError(f"{path}:{number}: the header names {min(repeated)!r} twice.")
    for number, values in cells:
        if len(values) != len(columns):
            raise UserError(f"{path}:{number}: {len(values)} columns, but "
                            f"{len(columns)} are expected ({', '.join(columns)}).")
        yield TableRow(path, number, dict(zip(columns, values, strict=True)) | {
            name: values[int(name) - 1] for name in selected if name.isdecimal()
            and name not in columns and 1 <= int(name) <= len(values)})


def _has_quoted_cells(path: Path) -> bool:
    """Returns True if all quotes of tab-separated lines enclose cells, and not by chance."""
    if not any('"' in line for _, line in read_lines(path)):  # Most files need no memory.
        return False
    lines = [f"{line}\n" for _, line in read_lines(path)]
    text = "".join(lines)
    return bool(_QUOTED_FILE.fullmatch(text)) and (
        any(re.search(r'["\t\n]', cell[1:-1]) for cell in re.findall(_QUOTED, text))
        or all('"' in line for line in lines[1:]))


def _without_broken_lines(path: Path, cells: _Cells, notes: list[str]) -> _Cells:
    """Yields rows of the first one's width; `UserError` if more than a few have another."""
    number, first = next(cells, (1, []))
    yield number, first
    skipped = []
    for number, values in cells:
        if len(values) == len(first):
            yield number, values
        else:
            skipped.append(number)
    if len(skipped) > max(min(MAX_SKIPPED_LINES, number // 5), number // 100):
        raise UserError(f"{path}: {len(skipped):,} of {number:,} lines don't have {len(first)} "
                        f"columns, the first of them is line {skipped[0]}; get the file again.")
    if skipped:
        notes.append(f"{path}: {len(skipped):,} of {number:,} lines skipped, which don't have "
                     f"{len(first)} columns; the first is line {skipped[0]}")


def _quoted(path: Path, separator: str) -> _Cells:
    # `csv.reader` needs line ends to read quoted cells of several lines.
    reader = csv.reader((f"{line}\n" for _, line in read_lines(path)), strict=True,
                        delimiter=separator)
    begin = 1
    try:
        for values in reader:
            if values:  # Readers of .csv skip empty lines.
                yield begin, values
            begin = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{path}:{begin}: {error}.") from None


def json_lines(path: Path) -> Iterator[TableRow]:
    """Yields the objects of JSON lines."""
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            values = strict_json.parse(line)
        except strict_json.Unreadable as error:
            raise UserError(f"{path}:{number}: {error}.") from None
        if not isinstance(values, dict):
            raise UserError(f"{path}:{number}: a JSON object is expected, for example "
                            f'{{"text": "...", "label": "..."}}. Received: {shown(values)}')
        yield TableRow(path, number, values)


def byte_lines(path: Path, *, max_line_bytes: int = MAX_LINE_BYTES,
               max_bytes: int = MAX_FILE_BYTES) -> Iterator[tuple[int, bytes]]:
    """Yields number, from 1, and content of each line, decompressed if the name ends in ".gz".

    `UserError` for longer lines or more bytes, both decompressed, or for a damaged file.
    """
    size = 0
    try:
        with storage.open_regular(path) as raw, (
                gzip.open(raw) if path.suffix == ".gz" else raw) as file:
            for number in itertools.count(1):
                line = file.readline(max_line_bytes + 1)
                size += len(line)
                if len(line) > max_line_bytes or size > max_bytes:
                    limit = (f"a line of more than {max_line_bytes:,}"
                             if len(line) > max_line_bytes else f"more than {max_bytes:,}")
                    raise UserError(f"{path}:{number}: {limit} bytes decompressed, more "
                                    "than a file of its kind has; name the right file.")
                if not line:
                    return
                if number == 1:
                    require_text(path, line[:HEAD])
                yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: not gzip, or damaged: {error}; get the file again, or leave "
                        ".gz out of its name if it isn't compressed.") from error
    except OSError as error:
        raise read_error(path, error) from error
