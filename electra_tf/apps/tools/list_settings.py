"""Prints every setting as the Markdown page docs/configuration.md.

    python -m electra_tf.apps.tools.list_settings > docs/configuration.md
"""

import dataclasses
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from absl import flags

from electra_tf.config import finetuning_flags, pretraining_flags
from electra_tf.config.finetuning import FinetuningConfig, finetuning_config
from electra_tf.config.overrides import SettingFlags, defaults, override, setting_of
from electra_tf.config.pretraining import SIZES
from electra_tf.platform import command_line
from electra_tf.platform.settings import Section, settings_of

HEAD = """\
# Configuration

Every setting of `run_pretraining.py`, then of `run_finetuning.py`, with its default for each model
size and its bounds. Set one by its flag, by `--set section.field=value`, or in a YAML file named by
`--config`:

```yaml
masking:
  rate: 0.2
optimizer:
  learning_rate: 1e-3
```

Flags win over `--set`, `--set` over the file, the file over the size. A misspelt name or a value
out of bounds is an error. All sections but `runtime` decide the result of a run: a run that resumes
must have the same values. The settings of `runtime` may change, and those of `initialization` too
once there is a checkpoint. `--recipe=short` changes some defaults:
[short runs](explanation/short_runs.md). Printed by `python -m electra_tf.apps.tools.list_settings`.

# Pre-training
"""
FINETUNING_HEAD = """\
# Fine-tuning

Defaults are the general recipe's. RTE and STS-B take 10 epochs; extractive QA takes 2 and rows of
512 tokens; MRPC and STS-B swap pairs; warm-up is a tenth of the run. The shapes of `model` are the
encoder's and its dropout is 0.1. `initialization` (from scratch) and `runtime` are as above.
"""
_SHARED = ("model", "initialization", "runtime")
"""Sections of both programs, listed once."""


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
              setting_flags: SettingFlags) -> Iterator[str]:
    short = {setting: name for name, setting in setting_flags.items()}
    for name in names:
        here = getattr(sizes["small"], name)
        yield f"## {name}\n"
        yield f"{_first_line(here)}\n"
        yield from _table(name, settings_of(type(here)), sizes, short)
        variants = {other: there for other, there in here.variants().items() if other != here.name}
        for other, there in variants.items():
            fields = [field for field in settings_of(type(there)) if field != "name"]
            others = {size: override(config, {f"{name}.name": other})
                      for size, config in sizes.items()}
            yield f"With `{name}.name={other}` ({_first_line(there)[:-1]}) instead:\n"
            yield from _table(name, fields, others, short)


def _first_line(section: Section) -> str:
    return inspect.getdoc(section).splitlines()[0]


def _table(section: str, fields: Iterable[str], sizes: Mapping[str, Any],
           short: Mapping[str, str]) -> Iterator[str]:
    yield "| setting | default | meaning | allowed |"
    yield "|---|---|---|---|"
    for field in fields:
        name = f"{section}.{field}"
        flag = f" (`--{short[name]}`)" if name in short else ""
        setting = setting_of(sizes["small"], name)
        yield (f"| `{name}`{flag} | {defaults(sizes, name)} | {setting.meaning} "
               f"| {setting.allowed} |")
    yield ""


def run() -> None:
    """Runs the command line."""
    command_line.run(
        lambda: print(page(), end=""), summary=__doc__,
        groups={"All flags": [name for name in flags.FLAGS if name == "help"]})


if __name__ == "__main__":
    run()
