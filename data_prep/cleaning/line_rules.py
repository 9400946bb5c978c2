"""Normalizes single lines, and decides by rules which of them cleaning drops.

The rules for boilerplate are few and strict: they drop a line only if all of it is of a known kind.
docs/how_to/cleaning.md describes them; boilerplate.yaml has the words.
"""

import pathlib
import re
import unicodedata

from data_prep.settings import CleaningSettings
from electra_tf.core import strict_yaml

_KNOWN = strict_yaml.read_sections(pathlib.Path(__file__).with_name("boilerplate.yaml"), "rules")
_BUTTONS, _NETWORKS = (frozenset(_KNOWN["words"][name].split()) for name in ("buttons", "networks"))
_LINKS, _NOTICES = (
    frozenset(text.strip() for texts in _KNOWN[name].values() for text in texts.split("|"))
    for name in ("links", "notices"))
_PATTERNS = re.compile("|".join(_KNOWN["patterns"].values()))
_COPYRIGHT = re.compile(r"(copyright\b\s*)?(©|\(c\)|copyright)\s*(\d{4}\b.*|.*\b\d{4})\W*")
_MAX_NOTICE_CHARACTERS = 400  # Characters; a longer line about cookies or rights is prose.
_MAX_ITEM_WORDS = 4
_SEPARATOR = re.compile(r"\s[|»›>•·→]\s")
_BETWEEN_BUTTONS = re.compile(r"[\s,|/•·&]+")
_MAX_BUTTONS = 20
_SENTENCE_END = re.compile(r"[.!?。！？।؟:;,]")
_URL = re.compile(r"<?(https?://|www\.)\S+>?")
_FRAME = "«»‹›<>[](){}|•·→←↑↓▲▼►◄*-–—_.:…! "


def normalized(line: str, settings: CleaningSettings) -> str:
    """Returns a line in the Unicode form of the settings, stripped."""
    form = settings.unicode
    if form == "none" or line.isascii():
        return line
    return unicodedata.normalize(form.upper(), line).strip()


def reason_to_drop(line: str, settings: CleaningSettings) -> str:
    """Returns the reason to drop a normalized line, a name of `manifest.Counts`, or ""."""
    if settings.drop_letterless_lines and not any(map(str.isalpha, line)):
        return "letterless_lines"
    if settings.drop_boilerplate and is_boilerplate(line):
        return "boilerplate_lines"
    if len(line) < settings.min_line_characters or 0 < settings.max_line_characters < len(line):
        return "short_or_long_lines"
    return ""


def is_boilerplate(line: str) -> bool:
    """Returns True if all of a line is boilerplate of web sites.

    >>> is_boilerplate("© 2021 Example Ltd. All rights reserved.")
    True
    >>> is_boilerplate("Home | About us | Contact")
    True
    >>> is_boilerplate("He asked her to share the link on Facebook.")
    False
    """
    if len(line) > _MAX_NOTICE_CHARACTERS:
        return False
    lowered = line.lower()
    bare = lowered.strip(_FRAME)
    if (bare in _LINKS or _URL.fullmatch(lowered) or _COPYRIGHT.fullmatch(lowered)
            or any(notice in lowered for notice in _NOTICES)
            or (("cookie" in lowered or "script" in lowered) and _PATTERNS.search(lowered))):
        return True
    words = _BETWEEN_BUTTONS.split(bare, _MAX_BUTTONS)
    if (1 < len(words) <= _MAX_BUTTONS and _BUTTONS.issuperset(words)
            and not _NETWORKS.isdisjoint(words)):  # Buttons that share a page.
        return True
    items = _SEPARATOR.split(line)  # A menu has three or more short items.
    return (not _SENTENCE_END.search(line) and len(items) > 2
            and all(0 < len(item.split()) <= _MAX_ITEM_WORDS for item in items))
