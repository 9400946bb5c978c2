"""Normalizes single lines, and decides by rules which of them cleaning drops.

The rules for boilerplate are few and strict: they drop a line only if all of it is of a known kind.
docs/how_to/cleaning.md describes them; boilerplate.yaml has the words.
"""

import dataclasses
import pathlib
import re
import unicodedata

from data_prep.cleaning.settings import CleaningSettings
from electra_tf.platform import strict_yaml

_KNOWN = strict_yaml.read_sections(pathlib.Path(__file__).with_name("boilerplate.yaml"), "rules")
_BUTTONS, _NETWORKS = (frozenset(_KNOWN["words"][name].split()) for name in ("buttons", "networks"))
_LINKS, _NOTICES = (
    frozenset(text.strip() for texts in _KNOWN[name].values() for text in texts.split("|"))
    for name in ("links", "notices"))
_PATTERNS = re.compile("|".join(_KNOWN["patterns"].values()))
_COPYRIGHT = re.compile(r"(copyright\b\s*)?(©|\(c\)|copyright)\s*(\d{4}\b.*|.*\b\d{4})\W*")
_LONGEST_NOTICE = 400
"""Characters; a longer line about cookies or rights is prose."""
_MOST_ITEM_WORDS = 4
_SEPARATOR = re.compile(r"\s[|»›>•·→]\s")
_BETWEEN_BUTTONS = re.compile(r"[\s,|/•·&]+")
_MOST_BUTTONS = 20
_SENTENCE_END = re.compile(r"[.!?。！？।؟:;,]")
_URL = re.compile(r"<?(https?://|www\.)\S+>?")
_FRAME = "«»‹›<>[](){}|•·→←↑↓▲▼►◄*-–—_.:…! "


@dataclasses.dataclass(frozen=True)
class LineRules:
    """The filters that examine single lines."""

    settings: CleaningSettings

    def normalized(self, line: str) -> str:
        """Returns a line in the Unicode form of the settings, stripped."""
        form = self.settings.unicode
        if form == "none" or line.isascii():
            return line
        return unicodedata.normalize(form.upper(), line).strip()

    def reason(self, line: str) -> str:
        """Returns the reason to drop a normalized line, a name of `manifest.Counts`, or ""."""
        settings = self.settings
        if settings.drop_letterless_lines and not any(map(str.isalpha, line)):
            return "letterless_lines"
        if settings.drop_boilerplate and is_boilerplate(line):
            return "boilerplate_lines"
        if (len(line) < settings.min_line_characters
                or 0 < settings.max_line_characters < len(line)):
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
    if len(line) > _LONGEST_NOTICE:
        return False
    lowered = line.lower()
    bare = lowered.strip(_FRAME)
    return (bare in _LINKS or bool(_URL.fullmatch(lowered) or _COPYRIGHT.fullmatch(lowered))
            or any(notice in lowered for notice in _NOTICES)
            or bool(("cookie" in lowered or "script" in lowered) and _PATTERNS.search(lowered))
            or _is_buttons(bare) or _is_menu(line))


def _is_buttons(bare: str) -> bool:
    """Returns True for a row of buttons that share a page, without other words."""
    words = _BETWEEN_BUTTONS.split(bare, _MOST_BUTTONS)
    return (1 < len(words) <= _MOST_BUTTONS and _BUTTONS.issuperset(words)
            and not _NETWORKS.isdisjoint(words))


def _is_menu(line: str) -> bool:
    """Returns True for three or more short items with separators, without a sentence."""
    if _SENTENCE_END.search(line):
        return False
    items = _SEPARATOR.split(line)
    return len(items) > 2 and all(0 < len(item.split()) <= _MOST_ITEM_WORDS for item in items)
