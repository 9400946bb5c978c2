"""A survey as plain text for a terminal of 100 columns."""

import unicodedata
from collections.abc import Iterator, Sequence

from electra_tf.apps.inspection.examples import MaskedExample
from electra_tf.apps.inspection.tables import SPLIT_NAMES, Table, safe
from electra_tf.text.vocabulary import CONTINUATION, MASK

WIDTH = 100
_NAME = 36
"""Columns of what a fact is about."""
_BAR = 24
LEGEND = ("«word»  hidden: the generator reads [MASK] and has to find the word",
          "{word}  to be found as well, but it reads the word itself",
          "(a→b)   to be found as well, but it reads b, drawn at random")


def columns(text: str) -> int:
    """Returns the columns that a terminal gives a text; Chinese characters take two.

    >>> columns("abc"), columns("漢字"), columns("e\u0301")
    (3, 4, 1)
    """
    return sum(0 if unicodedata.combining(char) else
               2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def table_text(table: Table) -> str:
    """Returns a table with its title above and its notes below."""
    lines = _columned(table) if table.heading else _facts(table)
    notes = [line for note in table.notes for line in wrapped(note.split(), "  ")]
    return "\n".join([table.title, *lines, *notes])


def example_text(example: MaskedExample, number: int) -> str:
    """Returns an example with its first draw of masks, each segment by itself."""
    lengths = [int((example.segments == segment).sum()) for segment in (0, 1)]
    of = f"{lengths[0]} + {lengths[1]}" if lengths[1] else "one segment"
    lines = [f"{number}. {SPLIT_NAMES[example.split]}, {example.place.shard.name}, example "
             f"{example.place.number:,}: {len(example.tokens)} tokens ({of}), "
             f"{example.selected[0].sum()} to be found"]
    for segment, name in enumerate("AB"):
        if lengths[segment]:
            lines += wrapped(_words(example, segment), f"  {name}  ", "     ")
    return "\n".join(lines)


def examples_text(examples: Sequence[MaskedExample]) -> str:
    """Returns all examples under a legend; "" if there are none."""
    if not examples:
        return ""
    legend = ["Examples, and what masking does to them", *(f"  {line}" for line in LEGEND)]
    return "\n\n".join(["\n".join(legend), *(
        example_text(example, number) for number, example in enumerate(examples, start=1))])


def remarks_text(remarks: Sequence[str]) -> str:
    """Returns what is unusual, a paragraph each."""
    if not remarks:
        return "Nothing unusual."
    return "\n".join(["What to look at", *(
        line for remark in remarks for line in wrapped(remark.split(), "  - ", "    "))])


def wrapped(words: Sequence[str], first: str, others: str | None = None) -> Iterator[str]:
    """Yields lines of at most `WIDTH` columns, the first one beginning with `first`."""
    line, used = first, len(first)
    others = first if others is None else others
    empty = True
    for word in words:
        size = columns(word)
        if not empty and used + 1 + size > WIDTH:
            yield line.rstrip()
            line, used, empty = others, len(others), True
        line, used, empty = (line + word, used + size, not word) if empty else (
            f"{line} {word}", used + 1 + size, False)
    yield line.rstrip()


def _columned(table: Table) -> Iterator[str]:
    cells = [table.heading, *table.rows]
    widths = [max(columns(row[index]) for row in cells) for index in range(len(table.heading))]
    for number, row in enumerate(cells):
        line = f"  {row[0]}{' ' * (widths[0] - columns(row[0]))}" + "".join(
            f"  {' ' * (width - columns(cell))}{cell}"
            for cell, width in zip(row[1:], widths[1:], strict=True))
        bar = "█" * round(_BAR * table.bars[number - 1]) if table.bars and number else ""
        yield f"{line}  {bar}".rstrip()


def _facts(table: Table) -> Iterator[str]:
    for name, value in table.rows:
        head = f"  {name}{' ' * max(2, _NAME - columns(name))}"
        for line in wrapped(value.split(" "), head, " " * (2 + _NAME)):
            yield line.replace("\u00a0", " ")


def _words(example: MaskedExample, segment: int) -> list[str]:
    """Returns the words of a segment, their pieces joined, with marks of the first draw."""
    words: list[str] = []
    for place, token in enumerate(example.tokens):
        if example.segments[place] != segment:
            continue
        marked = _marked(token, example.read[0][place], bool(example.selected[0][place]))
        if words and _continues(token):
            words[-1] += marked
        else:
            words.append(marked)
    return words


def _marked(token: str, read: str, selected: bool) -> str:
    bare = safe(_bare(token))
    if not selected:
        return bare
    if read == MASK:
        return f"«{bare}»"
    return f"{{{bare}}}" if read == token else f"({bare}→{safe(_bare(read))})"


def _continues(token: str) -> bool:
    return token.startswith(CONTINUATION) and token != CONTINUATION


def _bare(token: str) -> str:
    return token.removeprefix(CONTINUATION) if _continues(token) else token
