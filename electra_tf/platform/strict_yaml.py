"""YAML of sections with fields, the form of `--config`, without the surprises of YAML.

Values are returned as text. YAML 1.1's interpretation of `010`, `1:30`, `no` or `2026-01-01` does
not apply: the reader of a setting knows its type. Tags, nesting and duplicate keys are refused.
"""

from collections.abc import Iterator

import yaml

from electra_tf.platform.bounded import cannot_read, read_bytes
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

_MOST_BYTES = 64 << 10
"""All settings together take 4 KB."""
_NOTHING = ("", "~", "null", "Null", "NULL")
_PLAIN = tuple(f"tag:yaml.org,2002:{name}" for name in ("str", "seq", "map"))
"""The tags that `yaml.BaseLoader` gives to text, lists and mappings without a tag."""

Sections = dict[str, dict[str, str]]


def read_sections(path: Path, flag: str) -> Sections:
    """Returns section -> field -> text.

    Args:
        path: of the file.
        flag: that named it, for errors.

    Raises:
        UserError: it can't be read, isn't YAML, or holds something other than sections with fields.
    """
    place = f"{flag}={path}"
    try:
        root = yaml.compose(read_bytes(path, _MOST_BYTES).decode("utf-8-sig"), yaml.BaseLoader)
    except FileNotFoundError as error:
        raise UserError(f"{place} can't be read: {error.strerror}.") from error
    except OSError as error:
        raise cannot_read(path, error) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{place} is not valid YAML: {error}") from error
    except RecursionError:
        raise UserError(f"{place} must hold sections, each with fields; it is nested too "
                        "deeply.") from None
    if root is None or _is_nothing(root):
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise UserError(f"{place} must hold sections, each with fields. Received: {_kind(root)}")
    found: Sections = {}
    for section, fields in _pairs(place, "", root):
        if not isinstance(fields, yaml.MappingNode):
            raise UserError(f"{place}:{_line(fields)}: section {shown(section)} must hold fields. "
                            f"Received: {_kind(fields)}")
        found[section] = {}
        for field, value in _pairs(place, f"{section}.", fields):
            if not isinstance(value, yaml.ScalarNode) or _is_nothing(value):
                raise UserError(f"{place}:{_line(value)}: {shown(f'{section}.{field}')} must have "
                                f"one value. Received: {_kind(value)}")
            found[section][field] = value.value
    return found


def _pairs(place: str, prefix: str, mapping: yaml.MappingNode) -> Iterator[tuple[str, yaml.Node]]:
    """Yields the names and values of a mapping; `UserError` for a duplicate or a tag."""
    seen = set()
    for key, value in mapping.value:
        if not isinstance(key, yaml.ScalarNode):
            raise UserError(f"{place}:{_line(key)}: a name is expected. Received: {_kind(key)}")
        if key.value in seen:
            raise UserError(
                f"{place}:{_line(key)}: {shown(prefix + key.value)} stands there twice.")
        for node in (key, value):
            if node.tag not in _PLAIN:
                raise UserError(f"{place}:{_line(node)}: tags are not supported: "
                                f"{shown(node.tag)}.")
        seen.add(key.value)
        yield key.value, value


def _is_nothing(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style is None and node.value in _NOTHING


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return "nothing" if _is_nothing(node) else shown(node.value)
    return "a list" if isinstance(node, yaml.SequenceNode) else "fields"


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1
