"""Prints every setting as the Markdown page docs/configuration.md.

    python -m electra_tf.apps.tools.list_settings > docs/configuration.md
"""

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from absl import flags

from electra_tf.config import descriptions, finetuning_flags, pretraining_flags
from electra_tf.config.finetuning import FinetuningConfig, finetuning_config
from electra_tf.config.objectives import OBJECTIVES, ObjectiveConfig
from electra_tf.config.overrides import override
from electra_tf.config.setting_flags import SettingFlag
from electra_tf.config.sizes import SIZES
from electra_tf.platform import command_line

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
Written by `python -m electra_tf.apps.tools.list_settings`.

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
    recipes = {size: finetuning_config(config.model) for size, config in SIZES.items()}
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
        yield f"{_first_line(kind)}\n"
        fields = [field.name for field in dataclasses.fields(kind)]
        yield from _table(name, fields, sizes, setting_flags)
        yield ""
        yield from _variants(name, sizes, setting_flags)


def _variants(section: str, sizes: Mapping[str, Any],
              setting_flags: Sequence[SettingFlag]) -> Iterator[str]:
    """Lists what a section has under its other names."""
    there = getattr(sizes["small"], section)
    if not isinstance(there, ObjectiveConfig):
        return
    for name in (name for name in OBJECTIVES if name != there.name):
        others = {size: override(config, {f"{section}.name": name})
                  for size, config in sizes.items()}
        kind = type(getattr(others["small"], section))
        yield f"With `{section}.name={name}` ({_first_line(kind)[:-1]}) instead:\n"
        yield from _table(section, [field.name for field in dataclasses.fields(kind)
                                    if field.name != "name"], others, setting_flags)
        yield ""


def _first_line(kind: type) -> str:
    return inspect.getdoc(kind).splitlines()[0]


def _table(section: str, fields: Sequence[str], sizes: Mapping[str, Any],
           setting_flags: Sequence[SettingFlag]) -> Iterator[str]:
    yield "| setting | default | meaning |"
    yield "|---|---|---|"
    short = {flag.setting: flag.name for flag in setting_flags}
    for field in fields:
        name = f"{section}.{field}"
        flag = f" (`--{short[name]}`)" if name in short else ""
        meaning = descriptions.meaning(sizes["small"], name)
        yield f"| `{name}`{flag} | {descriptions.default(sizes, name)} | {meaning} |"


if __name__ == "__main__":
    command_line.run(
        lambda: print(page(), end=""), summary=__doc__,
        groups={"All flags": [name for name in flags.FLAGS if name == "help"]})
