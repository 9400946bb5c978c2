"""Reads sentences of column files: one word per line with its tag, an empty line between sentences.

CoNLL-2000 (Tjong Kim Sang and Buchholz, 2000): word, part of speech, chunk. CoNLL-2003 (Tjong Kim
Sang and De Meulder, 2003): word, part of speech, chunk, entity, with "-DOCSTART-" lines between
documents. CoNLL-U (https://universaldependencies.org/format.html): ten columns, of which the
second is the word.
"""

import collections
import itertools
import re
from collections.abc import Sequence

from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
from electra_tf.tasks.tables import LABEL_NAMES, read_lines
from electra_tf.tasks.tag_schemes import span_parts
from electra_tf.tasks.task import TaggedExample

WORD_NAMES = ("text", "words", "word", "tokens", "token", "form")
TAG_NAMES = (*LABEL_NAMES, "pos", "upos")
"""Usual names of the columns of words and of tags in a header."""
CONLLU = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
MAX_TAGS = 50
"""A column with more different values than this, and than there are words, isn't one of tags."""
_Row = tuple[int, list[str]]
"""Line number and cells."""


def read_columns(path: Path, words: str = "text", tags: str = "label", *, tagged: bool = True,
                 notes: list[str] | None = None) -> list[TaggedExample]:
    """Returns the sentences of a file; `words` and `tags` are names or numbers of columns.

    By default words are in the first column and tags, as they are written, in the last. Tabs
    separate columns if every line has one, otherwise spaces and tabs. `notes` receives a line that
    says what was read and left out. `tagged=False` reads tags only from a column that is selected
    and exists. `UserError` for no sentences, uneven columns, and columns without words or tags.
    """
    lines = [(number, line.strip(" \t") if line.strip() else "")
             for number, line in read_lines(path)]
    by_tabs, rows = _split(lines)
    widths = collections.Counter(len(cells) for _, cells in rows
                                 if _is_word(cells) and cells[0][:1] != "#")
    width = max(widths, key=lambda size: widths[size], default=1)
    kept = _without_comments(rows, width)
    left_out = [(len(rows) - len(kept), "comment lines")]
    names: Sequence[str] = next((match[1].split() for _, line in lines if (
        match := re.match(r"# *global\.columns *=(.+)", line))), [])
    first = next((cells for _, cells in kept if _is_word(cells)), [])
    if {words, *([tags] if tagged else [])} <= {*first} or (
            {cell.lower() for cell in first} & {*WORD_NAMES} and first[-1].lower() in TAG_NAMES):
        names = first
        kept = [(number, cells) for number, cells in kept if cells is not first]
        left_out.append((1, "header"))
    if width == len(CONLLU):
        whole = [row for row in kept if not re.fullmatch(r"\d+[-.]\d+", row[1][0])]
        left_out.append((len(kept) - len(whole), "ranges and empty nodes"))
        kept, names = whole, names or CONLLU
    sentences = [list(part) for is_word, part in itertools.groupby(
        kept, lambda row: _is_word(row[1])) if is_word]
    if not sentences:
        raise UserError(f"{path} holds no sentences.")
    word = _index(path, "--text_columns", words, 0, width, names)
    tag = _index(path, "--label_column", tags, width - 1, width, names) if tagged or (
        tags in names or (tags.isdecimal() and int(tags) <= width)) else None
    for number, cells in itertools.chain.from_iterable(sentences):
        if len(cells) != width or (tagged and width < 2):
            expected = "at least 2" if len(cells) == width else str(width)
            raise UserError(f"{path}:{number}: {len(cells)} columns, but {expected} are expected. "
                            f"Received: {shown(' '.join(cells))}")
        if not (cells[word] and cells[tag or 0]):
            raise UserError(f"{path}:{number}: the word or its tag is empty.")
    if not all(name.isdecimal() or name in names
               for name in (words, *([] if tag is None else [tags]))):
        _require_words(path, sentences, word, tag)
    if notes is not None and (width > 1 or any(count for count, _ in left_out)):
        tagging = "" if tag is None else f", tags in column {tag + 1}"
        notes.append(f"{width} columns separated by {'tabs' if by_tabs else 'spaces'}, "
                     f"words in column {word + 1}{tagging}" + "".join(
                         f"; {count:,} {what} left out" for count, what in left_out if count))
    return [TaggedExample(key=str(rows[0][0]), words=tuple(cells[word] for _, cells in rows),
                          tags=None if tag is None else tuple(cells[tag] for _, cells in rows))
            for rows in sentences]


def _split(lines: Sequence[tuple[int, str]]) -> tuple[bool, list[_Row]]:
    """Returns the cells of all lines, and True if tabs separate them.

    They do if every line of a word has a tab, or if most have and spaces give uneven columns.
    """
    texts = [line for _, line in lines if line and not line.startswith(("#", "-DOCSTART-"))]
    tabs = sum("\t" in line for line in texts)
    uneven = len({len(re.split("[ \t]+", line)) for line in texts}) > 1
    by_tabs = bool(tabs) and (tabs == len(texts) or (uneven and 2 * tabs > len(texts)))
    return by_tabs, [(number, [cell.strip(" ") for cell in line.split("\t")] if by_tabs
                      else re.split("[ \t]+", line)) for number, line in lines]


def _is_word(cells: Sequence[str]) -> bool:
    return cells[0] not in ("", "-DOCSTART-")  # These separate sentences and documents.


def _without_comments(rows: Sequence[_Row], width: int) -> list[_Row]:
    """Returns the rows without comments, which begin with "#".

    A line with the file's number of columns is a comment only if it is before the first word of a
    sentence and no line without "#" has the same last cell.
    """
    ends = {cells[-1] for _, cells in rows if cells[0][:1] != "#"}
    kept: list[_Row] = []
    for number, cells in rows:
        begins = not kept or not _is_word(kept[-1][1])
        is_word = len(cells) == width and (
            width == 1 or not begins or cells[-1] in ends)
        if cells[0][:1] != "#" or is_word:
            kept.append((number, cells))
    return kept


def _index(path: Path, flag: str, name: str, default: int, width: int, names: Sequence[str]) -> int:
    """Returns the index of a column that a name or a number, from 1, selects."""
    if name in names:
        return names.index(name)
    if name.isdecimal() and 1 <= int(name) <= width:
        return int(name) - 1
    usual = {"text": WORD_NAMES, "words": WORD_NAMES, "label": TAG_NAMES, "tags": TAG_NAMES}.get(
        name, ())
    if usual or (name.isdecimal() and width == 1):
        lower = list(map(str.lower, names))
        return next((lower.index(known) for known in usual if known in lower), default)
    raise UserError(f"{path}: {flag}={name}: there are {width} columns, "
                    + (f"named {', '.join(names)}" if names else "without names")
                    + f"; {flag}={default + 1} selects one by its number.")


def _require_words(path: Path, sentences: Sequence[Sequence[_Row]], word: int,
                   tag: int | None) -> None:
    """Raises `UserError` if `word` can't be the column of words, or `tag` that of tags."""
    width = len(sentences[0][0][1])
    columns = [{cells[index] for rows in sentences for _, cells in rows} for index in range(width)]
    firsts = [[cells[0] for _, cells in rows] for rows in sentences]
    longest = max(map(len, firsts))
    words = columns[word]
    if width > 1 < longest and all(
            values in ([str(start + index) for index in range(len(values))] for start in (0, 1))
            for values in firsts):
        spans = next((index for index in range(2, width) if _has_spans(columns[index])), width - 1)
        wrong, problem = 0, "numbers the words"
        hint = 2, 4 if width == len(CONLLU) else spans + 1
    elif width > 3 and longest > 1 < len(firsts) and all(len({*values}) == 1 for values in firsts):
        wrong, problem, hint = 0, "has one value in every sentence", (4, width)
    elif tag is not None and (
            (_has_spans(words) and not _has_spans(columns[tag]))
            or len(columns[tag]) > max(MAX_TAGS, len(words))):
        wrong, problem, hint = word, "looks like tags", (tag + 1, word + 1)
    else:
        return
    raise UserError(f"{path}: column {wrong + 1} {problem}; select words and tags by number, for "
                    f"example --text_columns={hint[0]} --label_column={hint[1]}.")


def _has_spans(tags: set[str]) -> bool:
    return bool(span_parts(tags)[0])
