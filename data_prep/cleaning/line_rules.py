"""Normalizes single lines, and decides by rules which of them cleaning drops."""

import unicodedata

from data_prep.settings import CleaningSettings


def normalized(line: str, settings: CleaningSettings) -> str:
    """Returns a line in the Unicode form of the settings, stripped."""
    if settings.unicode == "none" or line.isascii():
        return line
    return unicodedata.normalize(settings.unicode.upper(), line).strip()


def reason_to_drop(line: str, settings: CleaningSettings) -> str:
    """Returns the reason to drop a normalized line, a name of `manifest.Counts`, or ""."""
    if settings.drop_letterless_lines and not any(map(str.isalpha, line)):
        return "letterless_lines"
    if len(line) < settings.min_line_characters or 0 < settings.max_line_characters < len(line):
        return "short_or_long_lines"
    return ""
