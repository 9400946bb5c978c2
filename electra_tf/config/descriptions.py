"""What settings mean and what they are unless set, from the classes that hold them."""

import ast
import dataclasses
import enum
import functools
import inspect
import textwrap
import typing
from collections.abc import Mapping
from typing import Any

from electra_tf.config.objectives import OBJECTIVES
from electra_tf.config.overrides import flatten


def meaning(config: Any, setting: str) -> str:
    """Returns the docstring of a setting, with its choices.

    Args:
        config: of the kind that has the setting.
        setting: "section.field".
    """
    section, field = setting.split(".")
    kind = type(getattr(config, section))
    choices = (f" One of {', '.join(f'`{name}`' for name in OBJECTIVES)}."
               if setting == "objective.name" else _choices(kind, field))
    return (field_docstrings(kind).get(field, "") + choices).strip()


def default(sizes: Mapping[str, Any], setting: str) -> str:
    """Returns the default of a setting, or each size's where they differ.

    Args:
        sizes: name of a model size -> its configuration.
        setting: "section.field".
    """
    values = {size: flatten(config)[setting] for size, config in sizes.items()}
    if len(set(values.values())) == 1:
        return _shown(next(iter(values.values())))
    return ", ".join(f"{size} {_shown(value)}" for size, value in values.items())


@functools.cache
def field_docstrings(kind: type) -> Mapping[str, str]:
    """Returns field -> the string that follows it in the class, on one line."""
    found = {}
    if dataclasses.is_dataclass(kind.__base__):
        found = dict(field_docstrings(kind.__base__))
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body
    for field, text in zip(body, body[1:], strict=False):
        if (isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)):
            found[field.target.id] = " ".join(text.value.value.split())
    return found


def _choices(kind: type, field: str) -> str:
    hint = typing.get_type_hints(kind)[field]
    if not issubclass(hint, enum.Enum):
        return ""
    return " One of " + ", ".join(f"`{member.value}`" for member in hint) + "."


def _shown(value: object) -> str:
    if isinstance(value, float) and not isinstance(value, bool):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
