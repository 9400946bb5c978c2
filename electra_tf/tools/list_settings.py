"""Prints every setting as the Markdown page docs/configuration.md.

    python -m electra_tf.tools.list_settings > docs/configuration.md
"""

import ast
import dataclasses
import enum
import inspect
import textwrap
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from absl import flags

from electra_tf import command_line
from electra_tf.config import finetuning_flags, pretraining_flags
from electra_tf.config.finetuning import FinetuningConfig, finetuning_config
from electra_tf.config.overrides import flatten
from electra_tf.config.setting_flags import SettingFlag
from electra_tf.config.sizes import SIZES

HEAD = """\
# Configuration

Every setting of `run_pretraining.py`, then of `run_finetuning.py`, with its default for each model
size. Set one by its flag, by `--set section.field=value`, or in a YAML file named by `--config`:

```yaml
masking:
  rate: 0.2
optimizer:
  learning_rate: 1e-3
```

Flags win over `--set`, `--set` over the file, the file over the size. A misspelt name or a value
out of range is an error. All sections but `runtime` decide what a run computes: a run that resumes
must have the same values, while those of `runtime` may change, and those of `initialization` too
once there is a checkpoint. `--recipe=short` changes the defaults of some: [recipes.md](recipes.md).
Written by `python -m electra_tf.tools.list_settings`.

# Pre-training
"""
FINETUNING_HEAD = """\
# Fine-tuning

Defaults are the general recipe's; RTE and STS-B take 10 epochs, questions 2 and rows of 512 tokens,
MRPC and STS-B swap pairs, and warm-up is a tenth of the run. The encoder brings the shapes of
`model`, its dropout is 0.1; `initialization` (from scratch) and `runtime` are as above.
"""
_SHARED = ("model", "initialization", "runtime")
"""Sections of both, described once."""


def page() -> str:
    """Returns the whole page."""
    recipes = {size: finetuning_config("", config.model) for size, config in SIZES.items()}
    sections = [field.name for field in dataclasses.fields(FinetuningConfig)
                if field.name not in _SHARED]
    parts = [
        HEAD, *_sections(SIZES, [field.name for field in dataclasses.fields(SIZES["small"])],
                         pretraining_flags.SETTINGS),
        FINETUNING_HEAD, *_sections(recipes, sections, finetuning_flags.SETTINGS)]
    return "\n".join(parts).rstrip() + "\n"


def _sections(sizes: Mapping[str, Any], names: Sequence[str],
              setting_flags: Sequence[SettingFlag]) -> Iterator[str]:
    for name in names:
        kind = type(getattr(sizes["small"], name))
        yield f"## {name}\n"
        yield f"{inspect.getdoc(kind).splitlines()[0]}\n"
        yield from _table(name, kind, sizes, setting_flags)
        yield ""


def _table(section: str, kind: type, sizes: Mapping[str, Any],
           setting_flags: Sequence[SettingFlag]) -> Iterator[str]:
    yield "| setting | default | meaning |"
    yield "|---|---|---|"
    short = {flag.setting: flag.name for flag in setting_flags}
    meanings = _field_docstrings(kind)
    for field in dataclasses.fields(kind):
        name = f"{section}.{field.name}"
        flag = f" (`--{short[name]}`)" if name in short else ""
        meaning = meanings.get(field.name, "") + _choices(kind, field.name)
        yield f"| `{name}`{flag} | {_defaults(name, sizes)} | {meaning.strip()} |"


def _defaults(name: str, sizes: Mapping[str, Any]) -> str:
    """The default, or each size's where they differ."""
    values = {size: flatten(config)[name] for size, config in sizes.items()}
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
    found = {}
    if dataclasses.is_dataclass(kind.__base__):
        found = _field_docstrings(kind.__base__)
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body
    for field, text in zip(body, body[1:], strict=False):
        if (isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)):
            found[field.target.id] = " ".join(text.value.value.split())
    return found


if __name__ == "__main__":
    command_line.run(
        lambda: print(page(), end=""), summary=__doc__,
        groups={"All flags": [name for name in flags.FLAGS if name == "help"]})
