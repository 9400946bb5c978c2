"""A survey and its examples as text for a terminal of 100 columns, and as a page."""

import pathlib
from collections.abc import Sequence

from electra_tf.apps.inspection import report
from electra_tf.apps.inspection.examples import MaskedExample, Piece
from electra_tf.apps.inspection.survey import Survey
from electra_tf.reporting import pages
from electra_tf.reporting.tables import table_text, wrapped
from electra_tf.text.vocabulary import CONTINUATION, MASK, SPECIAL_TOKENS

_TEMPLATE = pathlib.Path(__file__).with_name("page.html")
_LEGEND = """\
Examples, and what masking does to them
  «word»  hidden: the generator reads [MASK] and has to find the word
  {word}  to be found as well, but it reads the word itself
  (a→b)   to be found as well, but it reads b, drawn at random"""


def text(found: Survey, examples: Sequence[MaskedExample]) -> str:
    """Returns tables, examples with their first draw of masks, and remarks."""
    parts = [*map(table_text, report.tables(found)), *([_LEGEND] if examples else ())]
    parts += [_example(example, number) for number, example in enumerate(examples, start=1)]
    remarks = [line for remark in report.remarks(found)
               for line in wrapped(remark.split(), "  - ", "    ")]
    parts.append("\n".join(["What to look at", *remarks]) if remarks else "Nothing unusual.")
    return "\n\n".join(parts)


def page(found: Survey, examples: Sequence[MaskedExample], title: str) -> str:
    """Returns the same as a page that loads nothing and needs no script, with all draws."""
    draws = len(examples[0].pieces[0].read) if examples else 0
    return pages.render(
        _TEMPLATE, title=report.safe(title), remarks=report.remarks(found), examples=examples,
        found=report.tables(found), draws=range(1, draws + 1), shown=_shown,
        special=SPECIAL_TOKENS)


def _example(example: MaskedExample, number: int) -> str:
    selected = sum(piece.read[0] is not None for piece in example.pieces)
    lines = [f"{number}. {example.title}, {selected} to be found"]
    for segment, name in enumerate("AB"):
        words = ["".join(map(_marked, word)) for word in example.words
                 if word[0].segment == segment]
        if words:
            lines += wrapped(words, f"  {name}  ", "     ")
    return "\n".join(lines)


def _marked(piece: Piece) -> str:
    token, read = _shown(piece.token), piece.read[0]
    if read is None:
        return token
    if read == MASK:
        return f"«{token}»"
    return f"{{{token}}}" if read == piece.token else f"({token}→{_shown(read)})"


def _shown(token: str) -> str:
    """Returns a token without the mark of continuation, as it is safe to print."""
    return report.safe(token.removeprefix(CONTINUATION) or token)
