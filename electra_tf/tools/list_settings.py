"""Prints every setting as the Markdown page docs/configuration.md.

    python -m electra_tf.tools.list_settings > docs/configuration.md
"""

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from absl import flags

from electra_tf import command_line
from electra_tf.config import descriptions, finetuning_flags, pretraining_flags
from electra_tf.config.finetuning import FinetuningConfig, finetuning_config
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
    for field in dataclasses.fields(kind):
        name = f"{section}.{field.name}"
        flag = f" (`--{short[name]}`)" if name in short else ""
        meaning = descriptions.meaning(sizes["small"], name)
        yield f"| `{name}`{flag} | {descriptions.default(sizes, name)} | {meaning} |"


if __name__ == "__main__":
    command_line.run(
        lambda: print(page(), end=""), summary=__doc__,
        groups={"All flags": [name for name in flags.FLAGS if name == "help"]})
