"""A survey as one page that loads nothing and needs no script."""

import html
import pathlib
from collections.abc import Sequence

from electra_tf.apps.inspection.examples import MaskedExample
from electra_tf.apps.inspection.survey import Survey
from electra_tf.apps.inspection.tables import SPLIT_NAMES, Table, remarks, safe, tables
from electra_tf.text.vocabulary import CONTINUATION, MASK, SPECIAL_TOKENS, UNK

_PAGE = pathlib.Path(__file__).with_name("page.html").read_text(encoding="utf-8")
_SEGMENTS = ("first", "second")
_DRAW_STYLE = """
  body:has(#draw-{0}:checked) {{
    .hidden-{0} {{ background: var(--accent); color: var(--on-accent); }}
    .hidden-{0} .stored {{ font-size: .75rem; text-decoration: line-through; }}
    .read-{0} {{ display: inline; }}
    .kept-{0} {{ outline: 2px dashed var(--accent); }}
  }}"""


def of(found: Survey, examples: Sequence[MaskedExample], title: str) -> str:
    """Returns the page.

    Args:
        found: what is shown as tables.
        examples: what is shown as text, all with as many draws.
        title: of the page.
    """
    draws = len(examples[0].read) if examples else 0
    body = [_remarks(remarks(found)), *map(_table, tables(found)), _examples(examples, draws)]
    parts = {"title": _text(title), "body": "\n".join(body),
             "draws": "".join(map(_DRAW_STYLE.format, range(1, draws + 1)))}
    # In one go: what is put in may hold the names of other parts.
    pieces = _PAGE.replace("}}", "{{").split("{{")
    return "".join(parts[piece] if index % 2 else piece for index, piece in enumerate(pieces))


def _remarks(lines: Sequence[str]) -> str:
    if not lines:
        return '<section class="card"><h2>Nothing unusual</h2></section>'
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f'<section class="card remarks"><h2>What to look at</h2><ul>{items}</ul></section>'


def _table(table: Table) -> str:
    notes = "".join(f'<p class="soft small">{_text(note)}</p>' for note in table.notes)
    content = _numbers(table) if table.heading else _facts(table)
    return f'<section class="card"><h2>{_text(table.title)}</h2>{content}{notes}</section>'


def _facts(table: Table) -> str:
    rows = "".join(
        f'<tr><th scope="row"{" class=part" if name.startswith(" ") else ""}>{_text(name)}</th>'
        f"<td>{_text(value)}</td></tr>" for name, value in table.rows)
    return f'<table class="facts"><tbody>{rows}</tbody></table>'


def _numbers(table: Table) -> str:
    bars = [f'<td class="bar"><span class="fill" style="width:{100 * bar:.1f}%"></span></td>'
            for bar in table.bars] or [""] * len(table.rows)
    head = "".join(f'<th scope="col">{_text(cell)}</th>' for cell in table.heading)
    rows = "".join(
        f'<tr><th scope="row">{_text(row[0])}</th>'
        f"{''.join(f'<td>{_text(cell)}</td>' for cell in row[1:])}{bar}</tr>"
        for row, bar in zip(table.rows, bars, strict=True))
    blank = '<td class="bar"></td>' if table.bars else ""
    return (f'<div class="scroll numbers" tabindex="0" role="region" '
            f'aria-label="{_text(table.title)}"><table><thead><tr>{head}{blank}</tr></thead>'
            f"<tbody>{rows}</tbody></table></div>")


def _examples(examples: Sequence[MaskedExample], draws: int) -> str:
    if not examples:
        return ""
    choices = "".join(
        f'<label><input type="radio" name="draw" id="draw-{draw}"'
        f'{" checked" if draw == 1 else ""}>{f"epoch {draw}" if draw else "as stored"}</label>'
        for draw in range(draws + 1))
    key = (
        '<dl class="key small"><dt class="piece first">first segment</dt><dd>from [CLS] to the '
        "[SEP] between the two; pieces of one word stand close together</dd>"
        '<dt class="piece second">second segment</dt><dd>to the last [SEP]</dd>'
        f'<dt class="piece hidden">{MASK} <span class="was">word</span></dt><dd>to be found: the '
        f"generator reads what isn't crossed out, {MASK} or another word</dd>"
        '<dt class="piece kept">word</dt><dd>to be found, too, but the generator reads the word '
        "itself</dd></dl>")
    return (
        '<section class="card"><h2>Examples, and what masking does to them</h2>'
        f"<fieldset><legend class=\"soft small\">Masks are drawn anew in every epoch:</legend>"
        f"{choices}</fieldset>{key}{''.join(map(_example, examples))}</section>")


def _example(example: MaskedExample) -> str:
    lengths = [int((example.segments == segment).sum()) for segment in (0, 1)]
    title = (f"{SPLIT_NAMES[example.split]}, {example.place.shard.name}, example "
             f"{example.place.number:,}: {len(example.tokens)} tokens "
             f"({f'{lengths[0]} + {lengths[1]}' if lengths[1] else 'one segment'})")
    words = [f'<span class="word" dir="auto">{"".join(_piece(example, place) for place in word)}'
             "</span>" for word in _words(example)]
    return f'<h3>{_text(title)}</h3><p class="text">{" ".join(words)}</p>'


def _words(example: MaskedExample) -> list[list[int]]:
    """Returns the positions of every word's pieces."""
    words: list[list[int]] = []
    for place, token in enumerate(example.tokens):
        if words and token.startswith(CONTINUATION) and token != CONTINUATION and (
                example.segments[place] == example.segments[place - 1]):
            words[-1].append(place)
        else:
            words.append([place])
    return words


def _piece(example: MaskedExample, place: int) -> str:
    token = example.tokens[place]
    classes = ["piece", _SEGMENTS[example.segments[place]]]
    if token in SPECIAL_TOKENS:
        classes.append("unknown" if token == UNK else "special")
    read = []
    for draw, selected in enumerate(example.selected[:, place], start=1):
        if not selected:
            continue
        instead = example.read[draw - 1][place]
        classes.append(f"{'kept' if instead == token else 'hidden'}-{draw}")
        if instead != token:
            read.append(f'<span class="read read-{draw}">{_text(_bare(instead))}&nbsp;</span>')
    stored = _text(_bare(token))
    inside = f'{"".join(read)}<span class="stored">{stored}</span>' if read else stored
    return f'<span class="{" ".join(classes)}">{inside}</span>'


def _bare(token: str) -> str:
    return token.removeprefix(CONTINUATION) or token


def _text(text: str) -> str:
    return html.escape(safe(text))
