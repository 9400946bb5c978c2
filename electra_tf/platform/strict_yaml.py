"""YAML of sections with fields, the form of `--config`: nothing of YAML that can surprise.

Values come back as the text that stands there. What YAML 1.1 makes of `010`, `1:30`, `no` or
`2026-01-01` is of no interest: whoever knows a setting's type reads it. Anchors and aliases ("a
billion laughs"), tags, nesting and a key that stands there twice are refused.
"""

from collections.abc import Iterator
from typing import Any

import yaml

from electra_tf.platform.bounded import cannot_read, read_bytes
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

_MOST_BYTES = 64 << 10
"""All settings there are take 4 KB."""
_NOTHING = ("", "~", "null", "Null", "NULL")

Sections = dict[str, dict[str, str]]


def read_sections(path: Path, flag: str) -> Sections:
    """Returns section -> field -> text.

    Args:
        path: of the file.
        flag: that named it, for errors.

    Raises:
        UserError: it can't be read, is no YAML, or holds something else than sections with fields.
    """
    place = f"{flag}={path}"
    try:
        text = read_bytes(path, _MOST_BYTES).decode("utf-8-sig")
        events = _events(place, text)
        found = _sections(place, events)
        next(events, None)  # A second document is refused there.
        return found
    except FileNotFoundError as error:
        raise UserError(f"{place} can't be read: {error.strerror}.") from error
    except OSError as error:
        raise cannot_read(path, error) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{place} is not valid YAML: {error}") from error


def _events(place: str, text: str) -> Iterator[Any]:
    """Yields the parser's events, without those of stream and document."""
    documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise UserError(f"{place}:{_line(event)}: anchors (&) and aliases (*) aren't read; "
                            "write every value out.")
        if getattr(event, "tag", None):
            raise UserError(f"{place}:{_line(event)}: tags aren't read: {shown(event.tag)}.")
        documents += isinstance(event, yaml.DocumentStartEvent)
        if documents > 1:
            raise UserError(f"{place}:{_line(event)}: a second document; write one.")
        if isinstance(event, yaml.NodeEvent | yaml.MappingEndEvent | yaml.SequenceEndEvent):
            yield event


def _sections(place: str, events: Iterator[Any]) -> Sections:
    first = next(events, None)
    if first is None or (isinstance(first, yaml.ScalarEvent) and _is_nothing(first)):
        return {}
    if not isinstance(first, yaml.MappingStartEvent):
        raise UserError(f"{place} must hold sections, each with fields. Received: {_kind(first)}")
    found: Sections = {}
    for section in _keys(place, events):
        if section in found:
            raise UserError(f"{place}: section {shown(section)} stands there twice.")
        event = next(events)
        if not isinstance(event, yaml.MappingStartEvent):
            raise UserError(f"{place}:{_line(event)}: section {shown(section)} must hold fields. "
                            f"Received: {_kind(event)}")
        found[section] = _fields(place, section, events)
    return found


def _fields(place: str, section: str, events: Iterator[Any]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for field in _keys(place, events):
        if field in fields:
            raise UserError(f"{place}: {shown(f'{section}.{field}')} stands there twice.")
        event = next(events)
        if not isinstance(event, yaml.ScalarEvent) or _is_nothing(event):
            raise UserError(f"{place}:{_line(event)}: {shown(f'{section}.{field}')} must have one "
                            f"value. Received: {_kind(event)}")
        fields[field] = event.value
    return fields


def _keys(place: str, events: Iterator[Any]) -> Iterator[str]:
    """Yields the keys of a mapping up to its end; its values are for the caller to take."""
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        if not isinstance(event, yaml.ScalarEvent):
            raise UserError(f"{place}:{_line(event)}: a name is expected. Received: {_kind(event)}")
        yield event.value


def _is_nothing(event: Any) -> bool:
    return event.style is None and event.value in _NOTHING


def _kind(event: Any) -> str:
    if isinstance(event, yaml.ScalarEvent):
        return "nothing" if _is_nothing(event) else shown(event.value)
    return "a list" if isinstance(event, yaml.SequenceStartEvent) else "fields"


def _line(event: Any) -> int:
    return event.start_mark.line + 1
