"""Writes docs/configuration.md from the declarations of the settings.

    python -m docs.generate_settings
"""

import dataclasses
import inspect
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from electra_tf.config.finetuning import FinetuningConfig, finetuning_config
from electra_tf.config.model import MODEL_SIZES
from electra_tf.config.objectives import OBJECTIVES
from electra_tf.config.overrides import defaults, override, setting_of
from electra_tf.config.pretraining import SIZES
from electra_tf.core.settings import Section, settings_of

SETTINGS_HEAD = """\
# Configuration

This page lists every setting of `run_pretraining.py` and `run_finetuning.py` with its default for
each model size and its bounds. Change a setting by its flag, by `--set section.field=value`, or in
a YAML file for `--config`:

```yaml
masking:
  rate: 0.2
optimizer:
  learning_rate: 1e-3
```

Flags take precedence over `--set`, `--set` over the file, the file over `--recipe`, and the recipe
over the size. `--recipe=short` [changes some defaults](explanation/short_runs.md). A misspelt name
or a value out of bounds is an error.

A run resumes only with the settings that it started with. The exceptions are `runtime`, which
changes results by rounding only, and `initialization`, which has no effect once there is a
checkpoint.

`python -m docs.generate_settings` writes this page.

# Pre-training
"""
FINETUNING_HEAD = """\
# Fine-tuning

Defaults are those of the general recipe. Some tasks differ: RTE and STS-B train for 10 epochs,
extractive QA for 2 on rows of 512 tokens, and sentence embeddings for 1 with a batch of 64. MRPC
and STS-B also train on swapped pairs. Warm-up is a tenth of the run. The encoder determines the
shapes of `model`; its dropout is 0.1. `initialization` (from scratch) and `runtime` are as above.
"""
_SHARED = ("model", "initialization", "runtime")
"""Sections of both programs, listed once."""


def settings_page() -> str:
    """Returns docs/configuration.md."""
    recipes = {size: finetuning_config(model) for size, model in MODEL_SIZES.items()}
    sections = [field.name for field in dataclasses.fields(FinetuningConfig)
                if field.name not in _SHARED]
    parts = [
        SETTINGS_HEAD,
        *_sections(SIZES, [field.name for field in dataclasses.fields(SIZES["small"])],
                   "pretraining"),
        FINETUNING_HEAD, *_sections(recipes, sections, "finetuning")]
    return "\n".join(parts).rstrip() + "\n"


def _sections(sizes: Mapping[str, Any], names: Sequence[str],
              program: str) -> Iterator[str]:
    for name in names:
        here = getattr(sizes["small"], name)
        yield f"## {name}\n"
        yield f"{_first_line(here)}\n"
        yield from _table(name, settings_of(type(here)), sizes, program)
        for other, there in OBJECTIVES.items() if name == "objective" else ():
            if other == here.name:
                continue
            fields = [field for field in settings_of(type(there)) if field != "name"]
            others = {size: override(config, {f"{name}.name": other})
                      for size, config in sizes.items()}
            yield f"With `{name}.name={other}` ({_first_line(there)[:-1]}) instead:\n"
            yield from _table(name, fields, others, program)


def _first_line(section: Section) -> str:
    return inspect.getdoc(section).splitlines()[0]


def _table(section: str, fields: Iterable[str], sizes: Mapping[str, Any],
           program: str) -> Iterator[str]:
    yield "| setting | default | meaning | allowed |"
    yield "|---|---|---|---|"
    for field in fields:
        setting = setting_of(sizes["small"], f"{section}.{field}")
        flag = f" (`--{field}`)" if program in setting.flag.programs else ""
        yield (f"| `{setting.name}`{flag} | {defaults(sizes, setting.name)} | {setting.meaning} "
               f"| {setting.allowed} |")
    yield ""


if __name__ == "__main__":
    page = pathlib.Path(__file__).with_name("configuration.md")
    page.write_text(settings_page(), encoding="utf-8")
