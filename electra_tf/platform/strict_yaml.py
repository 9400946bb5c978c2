"""YAML of sections with fields, the form of `--config`, without the surprises of YAML.

Values are returned as text, because YAML 1.1 interprets `010`, `1:30`, `no` and `2026-01-01`, while
a setting knows its own type. Tags, nesting and duplicate keys are refused.
"""

from collections.abc import Iterator

import yaml

from electra_tf.platform.bounded import read_bytes
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

_MOST_BYTES = 64 << 10
"""All settings together take 4 KB."""
_EMPTY = ("", "~", "null", "Null", "NULL")

Sections = dict[str, dict[str, str]]


def read_sections(path: Path, flag: str) -> Sections:
    """Returns section -> field -> text.

    Raises:
        UserError: the file, named by `flag`, can't be read, isn't YAML, or does not hold sections
            with fields.
    """
    place = f"{flag}={path}"
    try:
        root = yaml.compose(read_bytes(path, _MOST_BYTES).decode("utf-8-sig"), yaml.BaseLoader)
    except OSError as error:
        raise UserError(f"{place} can't be read: {error.strerror or error}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{place} is not valid YAML: {error}") from error
    except RecursionError:
        raise UserError(f"{place} must hold sections, each with fields; it is nested too "
                        "deeply.") from None
    if root is None:
        return {}
    return {section: dict(_pairs(place, f"{section}.", fields, "one value", yaml.ScalarNode))
            for section, fields in _pairs(place, "", root, "fields", yaml.MappingNode)}


def _pairs(place: str, prefix: str, mapping: yaml.Node, form: str, kind: type[yaml.Node]
           ) -> Iterator[tuple[str, str | yaml.Node]]:
    """Yields the names of a mapping, and its values of a kind: text, or the nodes of mappings."""
    if not isinstance(mapping, yaml.MappingNode):
        raise UserError(f"{place} must hold sections, each with fields. Received: "
                        f"{_shown(mapping)}")
    seen = set()
    for key, value in mapping.value:
        line = f"{place}:{key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode):
            raise UserError(f"{line}: a name is expected. Received: {_shown(key)}")
        name = shown(prefix + key.value)
        if key.value in seen:
            raise UserError(f"{line}: {name} stands there twice.")
        for node in (key, value):
            if node.tag not in [f"tag:yaml.org,2002:{plain}" for plain in ("str", "seq", "map")]:
                raise UserError(f"{line}: tags are not supported: {shown(node.tag)}.")
        if not isinstance(value, kind) or _shown(value) == "nothing":
            raise UserError(f"{line}: {name} must have {form}. Received: {_shown(value)}")
        seen.add(key.value)
        yield key.value, value.value if kind is yaml.ScalarNode else value


def _shown(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return "nothing" if node.style is None and node.value in _EMPTY else shown(node.value)
    return "a list" if isinstance(node, yaml.SequenceNode) else "fields"
