"""Prints every setting of pre-training as the Markdown page docs/configuration.md.

    python -m electra_tf.tools.list_settings > docs/configuration.md
"""

import ast
import dataclasses
import enum
import inspect
import textwrap
import typing
from collections.abc import Iterator

from absl import flags

from electra_tf import command_line
from electra_tf.config.flags import HARDWARE, REPORTING, TRAINING
from electra_tf.config.overrides import flatten
from electra_tf.config.sizes import SIZES

HEAD = """\
# Configuration

Every setting of `run_pretraining.py`, with its default for each model size. Set one by its flag, by
`--set section.field=value`, or in a YAML file named by `--config`:

```yaml
masking:
  rate: 0.2
optimizer:
  learning_rate: 1e-3
```

Flags win over `--set`, `--set` over the file, the file over the size. A misspelt name or a value
out of range is an error. All sections but `runtime` decide what a run computes: a run that resumes
must have the same values, while those of `runtime` may change. Written by
`python -m electra_tf.tools.list_settings`.
"""


def page() -> str:
    """Returns the whole page."""
    config = SIZES["small"]
    parts = [HEAD]
    for section in dataclasses.fields(config):
        value = getattr(config, section.name)
        summary = inspect.getdoc(type(value)).splitlines()[0]
        parts += [f"## {section.name}\n", f"{summary}\n", *_table(section.name, type(value)), ""]
    return "\n".join(parts).rstrip() + "\n"


def _table(section: str, kind: type) -> Iterator[str]:
    yield "| setting | default | meaning |"
    yield "|---|---|---|"
    short = {flag.setting: flag.name for flag in TRAINING + HARDWARE + REPORTING}
    meanings = _field_docstrings(kind)
    for field in dataclasses.fields(kind):
        name = f"{section}.{field.name}"
        flag = f" (`--{short[name]}`)" if name in short else ""
        meaning = meanings.get(field.name, "") + _choices(kind, field.name)
        yield f"| `{name}`{flag} | {_defaults(name)} | {meaning.strip()} |"


def _defaults(name: str) -> str:
    """The default, or each size's where they differ."""
    values = {size: flatten(config)[name] for size, config in SIZES.items()}
    if len(set(values.values())) == 1:
        return _shown(values["small"])
    return ", ".join(f"{size} {_shown(value)}" for size, value in values.items())


def _shown(value: object) -> str:
    if isinstance(value, float) and not isinstance(value, bool):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _choices(kind: type, field: str) -> str:
    hint = typing.get_type_hints(kind)[field]
    if not issubclass(hint, enum.Enum):
        return ""
    return " One of " + ", ".join(f"`{member.value}`" for member in hint) + "."


def _field_docstrings(kind: type) -> dict[str, str]:
    """Returns field -> the string that follows it in the class, on one line."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body
    found = {}
    for field, text in zip(body, body[1:], strict=False):
        if (isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)):
            found[field.target.id] = " ".join(text.value.value.split())
    return found


if __name__ == "__main__":
    command_line.run(
        lambda: print(page(), end=""), summary=__doc__,
        groups={"All flags": [name for name in flags.FLAGS if name == "help"]})
