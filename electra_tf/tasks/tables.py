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

from electra_tf.core import storage, strict_json
from electra_tf.core.errors import UserError, shown
from electra_tf.core.file_kinds import HEAD_BYTES, require_text
from electra_tf.core.storage import Path, read_error

MAX_FILE_BYTES, MAX_LINE_BYTES = 1 << 30, 64 * storage.MIB
"""Limits of a file, kept in memory, and of a line. Files of GLUE and SQuAD have up to 80 MB."""
MAX_SKIPPED_LINES = 10
"""Lines of a published benchmark that are skipped at most, or 1 %; in short files a fifth."""
QUOTED_CELL = r'"(?:[^"]|"")*+"'
_QUOTED_FILE = re.compile(rf'(?:(?:{QUOTED_CELL}|[^"\t\n]*+)(?:[\t\n]|$))*+')
LABEL_NAMES = ("label", "labels", "tags", "tag", "ner_tags", "ner", "class", "category", "target")
"""Usual names of the column of labels or tags in a header."""
_LABEL_NAME = re.compile(
    r".*(label|score|duplicate|similar|cosine|relatedness|judge?ment|paraphrase|entailment).*"
    r"|(is_?|ner_)?(class|category|target|tag|quality|gold|rating|relevance|match|sentiment)s?"
    r"|y|ner|sim|relation|is_?(relevant|same|positive)")
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

    def wrong(self, column: str, expected: str) -> UserError:
        """Returns an error about a value."""
        advice = "" if self.values[column] is not None else (
            ", a missing value (in pandas NaN or NA); drop such rows, with dropna(), or read the "
            "file with keep_default_na=False.")
        return self.error(
            f"{column!r} must be {expected}. Received: {shown(self.values[column])}{advice}")

    def value(self, column: str) -> Any:
        """Returns a column's value; `UserError` if it is missing."""
        if column not in self.values:
            names = ", ".join(name if name == name.strip() else repr(name) for name in self.values)
            raise self.error(f"no column {column!r}. There are: {names}. For your "
                             "own files, --text_columns, --label_column and --key_column select "
                             "columns by name, or all by number if there is no header.")
        return self.values[column]

    def text(self, column: str) -> str:
        """Returns a column's string; `UserError` if it is missing or not a string."""
        value = self.value(column)
        if not isinstance(value, str):
            raise self.wrong(column, "text")
        return value


def is_label_name(name: str) -> bool:
    """Returns True for the usual names of columns of labels or scores, in any case."""
    return bool(_LABEL_NAME.fullmatch(name.strip().lower()))


def read_rows(path: Path, *, columns: Sequence[str] | None = None, selected: Sequence[str] = (),
              published: bool = False, notes: list[str] | None = None) -> Iterator[TableRow]:
    """Returns the rows of `.tsv` (tabs), `.csv` (commas, semicolons or tabs), `.jsonl`, `.txt`.

    docs/how_to/own_data.md describes these files. `columns` are the columns' names if the first
    line isn't a header. Only a `.txt` needs them; its last column holds the rest of the line.
    `selected` may have numbers of columns; if all are, the file has no header. A `.csv` is read
    with quotes unless they would enclose rows, a `.tsv` if all its quotes enclose cells. A
    `published` benchmark is read without quotes, and a few rows of another width are skipped.
    `notes` receives what was decided. `UserError` names file and line of what can't be read.
    """
    notes = [] if notes is None else notes
    suffix = suffix_of(path)
    next(byte_lines(path), None)  # Names files of other kinds before their suffix is judged.
    if suffix in (".jsonl", ".json"):
        rows = json_rows(path)
    elif suffix in (".csv", ".tsv") or (suffix == ".txt" and columns):
        # What separates columns: text between tabs is often unquoted, and may have commas, too.
        head = [line for _, line in itertools.islice(read_lines(path), 20) if line] or [""]
        marks = ",;\t" if suffix == ".csv" and not all("\t" in line for line in head) else "\t"
        separator = next((mark for mark in marks if mark in head[0]), marks[0])
        if suffix == ".csv" and re.fullmatch('"?sep=.?"?', head[0]):
            raise UserError(f"{path}:1: {head[0]} is a line for Excel; remove it.")
        # Without a header, the separator is the mark that every line has equally often outside of
        # quotes.
        bare = [re.sub(QUOTED_CELL, "", line) for line in head]
        even = [mark for mark in marks if mark in bare[0]
                and len({line.count(mark) for line in bare}) == 1]
        if _are_numbers(selected) and len(even) > 1:
            raise UserError(f"{path}: every line has as many {even[0]!r} and as many {even[1]!r}, "
                            "and either may separate columns; add a line with their names at the "
                            "top, and select them by name.")
        if _are_numbers(selected) and even:
            separator = even[0]
        if suffix == ".csv" and separator != ",":
            notes.append(f"{path}: {'semicolons' if separator == ';' else 'tabs'} separate columns")

        # If quotes enclose cells, and so may enclose separators and line ends.
        is_quoted = suffix == ".csv" or (
            suffix == ".tsv" and not published and _has_quoted_cells(path))
        if is_quoted and _swallows_rows(path, separator, selected):
            notes.append(f"{path}: quotes do not enclose cells, so every line is a row")
            is_quoted = False
        elif is_quoted and suffix == ".tsv":
            notes.append(f"{path}: quotes enclose cells, as in .csv, and are removed")

        # Rows of cells, then rows with the names of columns.
        if is_quoted:
            cells = _quoted(path, separator)
        else:
            max_splits = len(columns) - 1 if suffix == ".txt" else -1
            cells = ((number, line.split(separator, max_splits))
                     for number, line in read_lines(path) if line or suffix != ".csv")
        rows = _named(path, cells, columns, selected, notes, by_tabs=separator == "\t",
                      published=published)
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
                            "convert it, for example with `iconv -f latin1 -t utf-8`.") from None


def suffix_of(path: Path) -> str:
    """Returns a file's suffix, without ".gz"."""
    return pathlib.PurePath(path.name.removesuffix(".gz")).suffix


def _named(path: Path, cells: _Cells, columns: Sequence[str] | None, selected: Sequence[str],
           notes: list[str], *, by_tabs: bool, published: bool) -> Iterator[TableRow]:
    """Yields rows with the names of columns: those of the first line, or numbers from 1.

    By number, rows between tabs need the selected columns only; a comma may be one of the text.
    """
    # Names of columns, from the first line or by number.
    number, needed, header = 0, 0, None
    if columns is None:
        number, columns = next(cells, (1, []))
        # pandas numbers the columns of a table without names from 0, in a header.
        if _are_numbers(selected) and columns != [str(index) for index in range(len(columns))]:
            notes.append(f"{path}: columns are selected by number, so the first line is a row")
            needed = min(len(columns), max(map(int, selected))) * by_tabs
            chosen = [cell for index, cell in enumerate(columns, 1) if str(index) in selected]
            if {cell.lower() for cell in columns} & {*LABEL_NAMES, "text", "sentence"} or (
                    any(map(is_label_name, chosen)) and all(
                        re.fullmatch(r"\w{2,}", cell) for cell in chosen)):
                raise UserError(f"{path}:{number}: this line is a header, {', '.join(columns)}; "
                                "select columns by these names, or remove the line.")
            cells = itertools.chain([(number, columns)], cells)
            columns = [str(index) for index in range(1, len(columns) + 1)]
        else:
            header = columns
        columns = [name if name in selected else name.strip() for name in columns]
        repeated = {name for name in columns if name and columns.count(name) > 1}
        if repeated:
            raise UserError(f"{path}:{number}: the header names {min(repeated)!r} twice.")

    # Rows with these names. Those with more or fewer cells are refused, noted if columns are
    # numbers, or left out of a published file.
    uneven, num_headers = [], 0
    for number, values in cells:
        if values == header and len(values) > 1:  # As in files that were joined.
            num_headers += 1
            continue
        if len(values) != len(columns):
            uneven.append(number)
            if published:
                continue
            if not 0 < needed <= len(values):
                raise UserError(f"{path}:{number}: {len(values)} columns, but "
                                f"{needed or len(columns)} are expected ({', '.join(columns)}).")
        yield TableRow(path, number, dict(zip(columns, values, strict=False)) | {
            name: values[int(name) - 1] for name in selected if name.isdecimal()
            and name not in columns and 1 <= int(name) <= len(values)})
    if num_headers:
        notes.append(f"{path}: rows that repeat the header are left out: {num_headers:,}")
    if published and len(uneven) > max(min(MAX_SKIPPED_LINES, number // 5), number // 100):
        raise UserError(f"{path}: {len(uneven):,} of {number:,} lines don't have {len(columns)} "
                        f"columns, the first of them is line {uneven[0]}; get the file again.")
    if uneven:
        what = f"of {number:,} lines skipped, which" if published else "rows"
        read = "" if published else "; the selected columns are read"
        notes.append(f"{path}: {len(uneven):,} {what} do not have the {len(columns)} columns of "
                     f"the first line, such as line {uneven[0]}{read}")


def _are_numbers(selected: Sequence[str]) -> bool:
    return bool(selected) and all(map(str.isdecimal, selected))


def _swallows_rows(path: Path, separator: str, selected: Sequence[str]) -> bool:
    """Returns True if quotes can't enclose the cells of a table, because these would hold rows.

    The lines of such a cell all have the separators of a row. Commas must also be as many in all
    other lines, and not before a space. It is also true if quotes are not closed, and most lines
    have none.
    """
    # Commas separate columns only if every line has as many.
    header = next(read_lines(path), (1, ""))[1].count(separator)
    by_tabs = separator == "\t"
    if not by_tabs and any(line.count(separator) != header for _, line in read_lines(path) if line):
        return False
    # The lines of each row, as quotes would enclose its cells.
    needed = max(map(int, selected)) - 1 if _are_numbers(selected) else header
    lines = [line for _, line in read_lines(path)]
    begin, reader = 0, csv.reader((f"{line}\n" for line in lines), strict=True, delimiter=separator)
    try:
        for values in reader:
            counts = [line.count(separator) for line in lines[begin:reader.line_num]]
            has_rows = len(counts) > 1 or (by_tabs and len(values) <= needed)
            if has_rows and min(counts) >= needed and not any(
                    f"{separator} " in value for value in values):
                return True
            begin = reader.line_num
    except csv.Error:
        return 2 * sum('"' in line for line in lines) < len(lines)
    return False


def _has_quoted_cells(path: Path) -> bool:
    """Returns True if all quotes of tab-separated lines enclose cells, and not by chance.

    Some are doubled or around tabs or line ends, or there are quotes in every row.
    """
    if not any('"' in line for _, line in read_lines(path)):  # Most files need no memory.
        return False
    lines = [f"{line}\n" for _, line in read_lines(path)]
    text = "".join(lines)
    return bool(_QUOTED_FILE.fullmatch(text)) and (
        any(re.search(r'["\t\n]', cell[1:-1]) for cell in re.findall(QUOTED_CELL, text))
        or all('"' in line for line in lines[1:]))


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
        problem = str(error).replace("\t", r"\t")
        raise UserError(f"{path}:{begin}: {problem}: quotes within a quoted cell are doubled; in "
                        "a .tsv, quotes are text.") from None


def json_rows(path: Path) -> Iterator[TableRow]:
    """Yields the rows of JSON lines, or of one list or object; lines in a list are positions."""
    lines = ((number, line) for number, line in read_lines(path) if line.strip())
    first = next(lines, (1, "[]"))
    lines = itertools.chain([first], lines)
    is_list, is_whole = first[1].lstrip().startswith("["), first[1].strip() == "{"
    if is_list or is_whole:
        lines = iter([(1, "\n".join(line for _, line in lines))])
    for number, line in lines:
        try:
            values = strict_json.parse(line)
        except strict_json.Unreadable as error:
            advice = " Write an object per line, or one list." if is_list or is_whole else ""
            raise UserError(f"{path}:{number}: {error}.{advice}") from None
        for position, row in enumerate(values, start=1) if is_list else [(number, values)]:
            if not isinstance(row, dict):
                raise UserError(f"{path}:{position}: a JSON object is expected, for example "
                                f'{{"text": "...", "label": "..."}}. Received: {shown(row)}')
            yield TableRow(path, position, row)


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
                    require_text(path, line[:HEAD_BYTES])
                yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: not gzip, or damaged: {error}; get the file again, or leave "
                        ".gz out of its name if it isn't compressed.") from error
    except OSError as error:
        raise read_error(path, error) from error
