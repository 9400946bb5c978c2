"""Tables of text for a terminal."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

WIDTH = 100
_NAME_WIDTH = 36  # Columns of a fact's name.


def text_table(title: str, rows: Iterable[Sequence[str]], heading: Sequence[str] = (),
               notes: Iterable[str] = ()) -> str:
    """Returns rows of printable text as a table; only a heading's cells may exceed `WIDTH`.

    The first column names the row, the others, named by `heading`, hold numbers or words. Without a
    heading there are two columns, a name and words that are wrapped.
    """
    lines = [title]
    if heading:
        # Columns as wide as their widest cell: names at the left, numbers at the right.
        cells = [heading, *rows]
        widths = [max(map(columns, column)) for column in zip(*cells, strict=True)]
        for name, *numbers in cells:
            padded = [name + " " * (widths[0] - columns(name))]
            padded += [" " * (width - columns(number)) + number
                       for number, width in zip(numbers, widths[1:], strict=True)]
            lines.append(f"  {'  '.join(padded)}".rstrip())
    else:
        # Facts: a name in a fixed column, and words that continue below themselves.
        for name, value in rows:
            head = f"  {name}{' ' * max(2, _NAME_WIDTH - columns(name))}"
            lines += wrapped(value.split(" "), head, " " * (2 + _NAME_WIDTH))
    for note in notes:
        lines += wrapped(note.split(), "  ")
    return "\n".join(lines)


def percent(part: float, whole: float) -> str:
    """Returns a share in percent, with two or three significant digits.

    >>> percent(1, 3), percent(1, 1000), percent(1, 10**6), percent(0, 5), percent(0, 0)
    ('33.3 %', '0.10 %', '0.0001 %', '0 %', '-')
    """
    if not whole:
        return "-"
    share = 100 * part / whole
    if share in (0, 100):
        return f"{share:.0f} %"
    if not 1e-4 <= share <= 99.95:
        return "<0.0001 %" if share < 1 else ">99.9 %"
    return f"{share:.1f} %" if share >= 1 else f"{share:.2f} %" if share >= 0.01 else (
        f"{share:.1g} %")


def columns(text: str) -> int:
    r"""Returns how many columns of a terminal a text takes: a Chinese character 2, a color none.

    >>> columns("abc"), columns("漢字"), columns("e\u0301"), columns("\x1b[32mabc\x1b[0m")
    (3, 4, 1, 3)
    """
    return sum(0 if unicodedata.combining(char) else
               2 if unicodedata.east_asian_width(char) in "WF" else 1
               for char in re.sub(r"\x1b\[\d+m", "", text))


def wrapped(words: Sequence[str], first: str, others: str | None = None) -> Iterator[str]:
    """Yields lines of at most `WIDTH` columns; a longer word gets a line of its own.

    `first` begins the first line, `others` (by default the same) the other lines.
    """
    # Words join the line while its columns, not its characters, fit.
    start, line = first, []
    for word in words:
        if line and columns(start + " ".join([*line, word])) > WIDTH:
            yield (start + " ".join(line)).rstrip()
            start, line = first if others is None else others, []
        if line or word:  # No line begins with a space of the text.
            line.append(word)
    yield (start + " ".join(line)).rstrip()
