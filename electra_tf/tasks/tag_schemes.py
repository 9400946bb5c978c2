"""Detects the scheme in which tags mark spans, and rewrites tags as IOB2.

A tag joins the type of its span and a letter for the position in the span: `B-PER`, `B_PER`, or
`PER-B`. Ramshaw and Marcus (1995) define IOB1; Tjong Kim Sang and Veenstra (1999) IOB2, IOE1 and
IOE2; Ratinov and Roth (2009) BILOU, which other tools write as IOBES, BMES or BMEWO.
"""

import re
from collections.abc import Collection, Mapping, Sequence

OUTSIDE = ("O", "")
"""Letter and type of a word outside all spans."""
_FORMS = {"": re.compile(r"(?P<letter>[BIESULMW])[-_](?P<type>.+)", re.IGNORECASE),
          ", the letter last": re.compile(r"(?P<type>.+)[-_](?P<letter>[BIESULMW])", re.IGNORECASE)}
_LETTERS = {"IOB": "BI", "IOE": "IE", "IOBES": "BIES", "BILOU": "BILU", "BMES": "BMES",
            "BMEWO": "BMEW"}
"""Scheme -> letters of its spans."""
_FIRST, _LAST = "BSUW", "ESULW"
"""Letters of the first and the last word of a span."""
_CHOICES = {(True, True): "SUWBEI", (True, False): "BI", (False, True): "ELI", (False, False): "MI"}
"""(first of its span, last of its span) -> letters of such a word; a scheme uses its first one."""
Parts = Mapping[str, tuple[str, str]]
"""Tag -> its letter, in upper case, and the type of its span, "" if it has none."""


def span_parts(tags: Collection[str]) -> tuple[Parts, str, list[str]]:
    """Returns parts, the form of the tags, and tags without parts; no parts for tags without spans.

    Tags mark spans if half of them or more, "O" apart, have a letter and a type, and one is "O" or
    begins a span. The others, such as a mistyped "0", have no parts.

    >>> span_parts({"PER-B", "PER-I", "O", "0"})[1:], span_parts({"NOUN", "VERB"})[0]
    ((', the letter last', ['0']), {})
    """
    inside = sorted(set(tags) - {"O", "o"})
    outside = {tag: OUTSIDE for tag in set(tags) - {*inside}}
    if set(inside) & {"B", "I"} and set(inside) <= set("BIESULMW"):
        return outside | {tag: (tag, "") for tag in inside}, ", without types", []
    for form, pattern in _FORMS.items():
        parts = {tag: (match["letter"].upper(), match["type"]) for tag in inside
                 if (match := pattern.fullmatch(tag))}
        letters = {letter for letter, _ in parts.values()}
        if parts and 2 * len(parts) >= len(inside) and (outside or letters & {"B", "I"}):
            return outside | parts, form, [tag for tag in inside if tag not in parts]
    return {}, "", []


def as_iob2(tags: Sequence[str], parts: Parts) -> tuple[str, ...]:
    """Returns the tags of a sentence in IOB2, unchanged without `parts`.

    A word begins a span if its letter says so, if the word before it ends one, or if the types
    differ. In every scheme this gives the spans of valid tags. Others are read as conlleval does.

    >>> tags = ["I-PER", "I-PER", "O", "I-LOC", "B-LOC"]
    >>> as_iob2(tags, span_parts(set(tags))[0])
    ('B-PER', 'I-PER', 'O', 'B-LOC', 'B-LOC')
    """
    written, before = [], OUTSIDE
    for tag in tags if parts else ():
        letter, kind = parts.get(tag, OUTSIDE)
        begins = letter in _FIRST or before[0] in "O" + _LAST or kind != before[1]
        written.append("O" if letter == "O" else ("B" if begins else "I") + (kind and f"-{kind}"))
        before = letter, kind
    return tuple(written or tags)


def as_known(tags: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Returns the tags of a sentence, given in IOB2, in the scheme of known tags, or their types.

    A known type without "B-" shows IOB1, in which "B-" only separates spans of one type.

    >>> as_known(["B-PER", "B-PER", "I-PER"], {"PER_U", "PER_B", "PER_L"})
    ('PER_U', 'PER_B', 'PER_L')
    """
    # The letters of the known scheme, and if it is IOB1.
    parts, form, _ = span_parts(known)
    if not parts:
        return tuple(tag[2:] if tag[2:] in known else tag for tag in tags)
    labels = {OUTSIDE: "O"} | {part: tag for tag, part in parts.items()}
    letters = {"I"} | {letter for letter, _ in labels}
    is_iob1 = letters <= set("BIO") and any(
        letter == "I" and ("B", kind) not in labels for letter, kind in labels)
    letters |= {"B"} if is_iob1 else set()
    # Each letter by the word's place in its span: a span ends unless "I-" of its type follows.
    written = []
    for before, tag, after in zip(["O", *tags], tags, [*tags[1:], "O"], strict=False):
        letter, _, kind = tag.partition("-")
        if letter != "O":
            begins = letter == "B" and (not is_iob1 or before in (tag, f"I{tag[1:]}"))
            choices = _CHOICES[begins, after != f"I{tag[1:]}"]
            letter = next(choice for choice in choices if choice in letters)
        written.append(labels.get((letter, kind)) or (
            f"{kind}-{letter}" if form.endswith("last") else f"{letter}-{kind}"))
    return tuple(written)


def scheme_name(parts: Parts, form: str) -> str:
    """Returns the name of the scheme of tags that have these parts; IOB1 and IOB2 are "IOB"."""
    letters = {letter for letter, _ in parts.values()} - {"O"}
    mixture = f"a mixture of schemes with {'-, '.join(sorted(letters))}-"
    return next((name for name, known in _LETTERS.items() if letters <= set(known)), mixture) + form
