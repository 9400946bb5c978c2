"""YAML of sections with fields, the form of `--config`, without the surprises of YAML.

Values are returned as text, because YAML 1.1 interprets `010`, `1:30`, `no` and `2026-01-01`, while
a setting knows its own type. Nesting and duplicate keys are refused.
"""

from typing import Any

import yaml

from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path, read_bytes

_MOST_BYTES = 64 << 10
"""All settings together take 4 KB."""

Sections = dict[str, dict[str, str]]


class _Loader(yaml.BaseLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        found = {}
        for key, value in node.value:
            name = self.construct_object(key)
            if not isinstance(name, str) or name in found:
                raise yaml.constructor.ConstructorError(problem_mark=key.start_mark, problem=(
                    f"{shown(name)} stands there twice, or is no name"))
            found[name] = self.construct_object(value)
        return found


def read_sections(path: Path, flag: str) -> Sections:
    """Returns section -> field -> text of a file, which errors name by its flag.

    Raises:
        UserError: it can't be read, isn't YAML, or does not hold sections with fields.
    """
    place = f"{flag}={path}"
    try:
        root = _Loader(read_bytes(path, _MOST_BYTES).decode("utf-8-sig")).get_single_data() or {}
    except OSError as error:
        raise UserError(f"{place} can't be read: {error.strerror or error}.") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{place} is not valid YAML: {error}") from error
    _require(isinstance(root, dict), f"{place} must hold sections, each with fields", root)
    for section, fields in root.items():
        _require(isinstance(fields, dict), f"{place}: {shown(section)} must have fields", fields)
        for name, value in fields.items():
            _require(isinstance(value, str),
                     f"{place}: {shown(f'{section}.{name}')} must have one value", value)
    return root


def _require(condition: bool, rule: str, received: Any) -> None:
    if not condition:
        raise UserError(f"{rule}. Received: {shown(received)}")
