"""Reads sentences of column files: one word per line with its tag, an empty line between sentences.

docs/reference/task_files.md describes the variants. CoNLL-2003 has "-DOCSTART-" lines between
documents, CoNLL-U (https://universaldependencies.org/format.html) ten columns.
"""

import collections
import itertools
import re
from collections.abc import Collection, Sequence

from electra_tf.core.errors import UserError, shown
from electra_tf.core.storage import Path
from electra_tf.tasks.tables import LABEL_NAMES, QUOTED_CELL, read_lines
from electra_tf.tasks.tag_schemes import span_parts
from electra_tf.tasks.task import TaggedExample

WORD_NAMES = ("text", "words", "word", "tokens", "token", "form")
TAG_NAMES = (*LABEL_NAMES, "pos", "upos")
"""Usual names of the columns of words and of tags in a header."""
CONLLU = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
MAX_TAGS = 50
"""A column with more different values than this, and than there are words, isn't one of tags."""
_Row = tuple[int, list[str]]
"""Line number and cells, which are empty between sentences and documents."""


def read_columns(path: Path, words: str = "text", tags: str = "label", keys: str = "", *,
                 tagged: bool = True, notes: list[str] | None = None) -> list[TaggedExample]:
    """Returns the sentences of a file; the first arguments are names or numbers of columns.

    By default words are in the first column and tags, as they are written, in the last, and the key
    of a sentence is its first line; otherwise it is the cell of `keys` in this line. `notes`
    receives a line on what was read and left out. `tagged=False` reads tags only from a column that
    is selected and exists. `UserError` for no sentences, uneven columns, and columns without words
    or tags.
    """
    # Rows of cells, and the names of columns, which a comment or a header gives.
    lines = [(number, line.rstrip(" \t") if line.strip() else "")
             for number, line in read_lines(path)]
    rows, width, separator = _split(lines)
    left_out = {"comment lines": len(lines) - len(rows)}
    rows, left_out["pairs of quotes around cells"] = _unquoted(rows)
    names: Sequence[str] = next((match[1].split() for _, line in lines if (
        match := re.match(r"# *global\.columns *=(.+)", line))), [])
    first = next((cells for _, cells in rows if cells), [])
    if {words, *([tags] if tagged else [])} <= {*first} or (
            {cell.lower() for cell in first} & {*WORD_NAMES} and first[-1].lower() in TAG_NAMES):
        names, left_out["header"] = first, 1
        rows = [row for row in rows if row[1] is not first]
    if width == len(CONLLU):
        names, num_rows = names or CONLLU, len(rows)
        rows = [(number, cells) for number, cells in rows
                if not (cells and re.fullmatch(r"\d+[-.]\d+", cells[0]))]
        left_out["ranges and empty nodes"] = num_rows - len(rows)

    # Sentences between empty lines, and the columns of words and tags, which all rows must have.
    sentences = [list(group) for is_sentence, group in itertools.groupby(
        rows, lambda row: bool(row[1])) if is_sentence]
    if not sentences:
        raise UserError(f"{path} holds no sentences.")
    word = _column_index(path, "--text_columns", words, 0, width, names)
    has_tags = tagged or tags in names or (tags.isdecimal() and int(tags) <= width)
    tag = _column_index(path, "--label_column", tags, width - 1, width, names) if has_tags else None
    key = _column_index(path, "--key_column", keys, 0, width, names) if keys else None
    for number, cells in itertools.chain.from_iterable(sentences):
        if len(cells) != width or (tagged and width < 2):
            expected = "at least 2" if len(cells) == width else str(width)
            raise UserError(f"{path}:{number}: {len(cells)} columns, but {expected} are expected. "
                            f"Received: {shown(' '.join(cells))}")
        if not (cells[word] and cells[word if tag is None else tag]):
            raise UserError(f"{path}:{number}: the word or its tag is empty; --text_columns and "
                            "--label_column select other columns by number.")

    # Without empty lines: a column that numbers the sentences.
    divider = None
    if len(sentences) == 1:
        sentences, divider = _divided(sentences[0], {*range(width)} - {word, tag}, names)
    if not all(name.isdecimal() or name in names
               for name in ((words, tags) if has_tags else (words,))):
        _require_words(path, sentences, word, tag)

    # What was read and left out.
    if notes is not None and (width > 1 or any(left_out.values())):
        notes.append("".join([
            f"{width} columns separated by {separator}, ",
            f"words in column {word + 1}", "" if tag is None else f", tags in column {tag + 1}",
            "" if divider is None else f", numbers of sentences in column {divider + 1}",
            *(f"; {count:,} {kind} left out" for kind, count in left_out.items() if count)]))
    return [TaggedExample(
        key=str(sentence[0][0] if key is None else sentence[0][1][key]),
        words=tuple(cells[word] for _, cells in sentence),
        tags=None if tag is None else tuple(cells[tag] for _, cells in sentence))
        for sentence in sentences]


def _split(lines: Sequence[tuple[int, str]]) -> tuple[list[_Row], int, str]:
    """Returns rows without comments, their usual number of cells, and what separates these."""
    by_tabs = _tabs_separate([line.lstrip(" \t") for _, line in lines])
    for indent in (" \t", " "):  # Leading tabs are empty cells if lines are uneven without these.
        rows = [(number, _cells(line.lstrip(indent), by_tabs)) for number, line in lines]
        widths = collections.Counter(
            len(cells) for _, cells in rows if cells and cells[0][:1] != "#")
        if not by_tabs or len(widths) < 2:
            break
    width = max(widths, key=widths.get, default=1)
    return _without_comments(rows, width), width, "tabs" if by_tabs else "spaces"


def _unquoted(rows: Sequence[_Row]) -> tuple[list[_Row], int]:
    """Returns rows without the quotes that enclose cells, as in .csv, and the number of such cells.

    All quotes must enclose cells, some of them doubled or around every cell.
    """
    cells = [cell for _, row in rows for cell in row]
    quoted = [cell for cell in cells if '"' in cell]
    if not all(re.fullmatch(QUOTED_CELL, cell) for cell in quoted) or not (
            len(quoted) == len(cells) or any('"' in cell[1:-1] for cell in quoted)):
        return [*rows], 0
    return [(number, [cell[1:-1].replace('""', '"') if '"' in cell else cell for cell in row])
            for number, row in rows], len(quoted)


def _divided(rows: Sequence[_Row], columns: Collection[int],
             names: Sequence[str] = ()) -> tuple[list[list[_Row]], int | None]:
    """Returns sentences and the only column that numbers them, or one sentence and None.

    Numbers such as "Sentence: 1" increase, or their column's name begins with "sent". Sentences
    have two words on average or more; an empty cell repeats the one above.
    """
    named = [column for column in columns if names and re.match("sent(?!im)", names[column], re.I)]
    found = []
    for column in named or columns:
        filled = itertools.accumulate([cells[column] for _, cells in rows], lambda above, cell:
                                      cell or above)
        groups = [(value, [row for _, row in group]) for value, group in itertools.groupby(
            zip(filled, rows, strict=True), lambda pair: pair[0])]
        ids = {value for value, _ in groups}
        numbers = [int(digits) for value, _ in groups for digits in re.findall(r"\d+$", value)]
        if 1 < len(ids) == len(groups) <= len(rows) / 2 and (
                named or numbers == sorted({*numbers}) and len(numbers) == len(ids)):
            found.append(([group for _, group in groups], column))
    return found[0] if len(found) == 1 else ([[*rows]], None)


def _tabs_separate(lines: Sequence[str]) -> bool:
    """Returns True if every line of a word has a tab, or most have and spaces are uneven."""
    texts = [line for line in lines if line and not line.startswith(("#", "-DOCSTART-"))]
    num_tabbed = sum("\t" in line for line in texts)
    uneven = len({len(_cells(line, by_tabs=False)) for line in texts}) > 1
    return num_tabbed > 0 and (num_tabbed == len(texts) or (uneven and 2 * num_tabbed > len(texts)))


def _cells(line: str, by_tabs: bool) -> list[str]:
    if by_tabs:
        cells = [cell.strip(" ") for cell in line.split("\t")]
    else:
        cells = re.split("[ \t]+", line)
    return [] if not any(cells) or cells[0] == "-DOCSTART-" else cells


def _without_comments(rows: Sequence[_Row], width: int) -> list[_Row]:
    """Returns the rows without comments, which begin with "#".

    A line with the file's number of columns is a comment only if it is before the first word of a
    sentence and no line without "#" has the same last cell.
    """
    last_cells = {cells[-1] for _, cells in rows if cells and cells[0][:1] != "#"}
    kept: list[_Row] = []
    for number, cells in rows:
        in_sentence = bool(kept and kept[-1][1])
        if not cells or cells[0][:1] != "#" or (len(cells) == width and (
                width == 1 or in_sentence or cells[-1] in last_cells)):
            kept.append((number, cells))
    return kept


def _column_index(path: Path, flag: str, name: str, default: int, width: int,
                  names: Sequence[str]) -> int:
    """Returns the index of a column that a name or a number, from 1, selects."""
    if name in names:
        return names.index(name)
    if name.isdecimal() and 1 <= int(name) <= width:
        return int(name) - 1
    usual = {"text": WORD_NAMES, "words": WORD_NAMES, "label": TAG_NAMES, "tags": TAG_NAMES}.get(
        name, ())
    if usual or (name.isdecimal() and width == 1):
        lower = [name.lower() for name in names]
        return next((lower.index(known) for known in usual if known in lower), default)
    raise UserError(f"{path}: {flag}={name}: there are {width} columns, "
                    + (f"named {', '.join(names)}" if names else "without names")
                    + f"; {flag}={default + 1} selects one by its number.")


def _require_words(path: Path, sentences: Sequence[Sequence[_Row]], word: int,
                   tag: int | None) -> None:
    """Raises `UserError` if `word` can't be the column of words, or `tag` that of tags."""
    # The values of every column, and the first cells of every sentence.
    width = len(sentences[0][0][1])
    columns = [{cells[index] for sentence in sentences for _, cells in sentence}
               for index in range(width)]
    first_cells = [[cells[0] for _, cells in sentence] for sentence in sentences]
    has_long_sentence = max(map(len, first_cells)) > 1
    has_spans = [bool(span_parts(values)[0]) for values in columns]

    # A column of numbers of words or of sentences, or the tags are in another column.
    if width > 1 and has_long_sentence and all(
            values in ([str(start + index) for index in range(len(values))] for start in (0, 1))
            for values in first_cells):
        tags = 3 if width == len(CONLLU) else next(
            (index for index in range(2, width) if has_spans[index]), width - 1)
        wrong, problem, better = 0, "numbers the words", (1, tags)
    elif word == 0 and width > 2 and len(sentences) == 1 and _divided(sentences[0], [0])[1] == 0:
        wrong, problem, better = 0, "numbers the sentences", (1, width - 1)
    elif tag is not None and ((has_spans[word] and not has_spans[tag])
                              or len(columns[tag]) > max(MAX_TAGS, len(columns[word]))):
        tags = next((index for index in range(width) if has_spans[index]), word)
        wrong, problem, better = (word, "looks like tags", (tag, word)) if tags == word else (
            tag, "does not look like tags", (word, tags))
    else:
        return
    raise UserError(f"{path}: column {wrong + 1} {problem}; select words and tags by number, for "
                    f"example --text_columns={better[0] + 1} --label_column={better[1] + 1}.")
