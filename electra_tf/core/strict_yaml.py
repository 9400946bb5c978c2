"""Strict YAML of sections with fields, the form of `--config`.

Values are returned as text: YAML 1.1 converts `010`, `1:30`, `no` and `2026-01-01`, but a setting
declares its type. Nesting and duplicate keys are refused.
"""

import yaml

from electra_tf.core.errors import UserError, shown
from electra_tf.core.settings import require
from electra_tf.core.storage import Path, read_bytes

_MAX_BYTES = 64 << 10  # All settings together take 4 KB.


class _Loader(yaml.BaseLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        mapping = {}
        for key, value in node.value:
            name = self.construct_object(key)
            if not isinstance(name, str) or name in mapping:
                raise yaml.constructor.ConstructorError(problem_mark=key.start_mark, problem=(
                    f"{shown(name)} occurs twice, or is not a name"))
            mapping[name] = self.construct_object(value)
        return mapping


def read_sections(path: Path, flag: str) -> dict[str, dict[str, str]]:
    """Returns section -> field -> text of the file of a flag, or raises `UserError`."""
    name = f"{flag}={path}"
    try:
        root = _Loader(read_bytes(path, _MAX_BYTES).decode("utf-8-sig")).get_single_data() or {}
    except OSError as error:
        raise UserError(f"{name} can't be read: {error.strerror or error}.") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{name} is not valid YAML: {error}") from error
    # Two levels, and texts below them.
    require(isinstance(root, dict), name, "sections, each with fields", root)
    for section, fields in root.items():
        require(isinstance(fields, dict), f"{name}: {shown(section)}", "fields", fields)
        for field, value in fields.items():
            require(isinstance(value, str), f"{name}: {shown(f'{section}.{field}')}", "one value",
                    value)
    return root
