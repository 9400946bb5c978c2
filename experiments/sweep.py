"""A sweep: which variants of pre-training are compared, and by what. A YAML file holds one."""

import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from electra_tf.config import pretraining
from electra_tf.config.finetuning import finetuning_config
from electra_tf.config.model import ModelConfig
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.pretraining_flags import build_config
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.settings import require_one_of
from electra_tf.platform.strict_yaml import Sections, read_sections
from experiments import tasks
from experiments.budgets import Budget

DIRECTORY = Path(__file__).parent
_NEEDED = ("title", "source", "tasks")
_ABOUT = (*_NEEDED, "question", "note")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variant:
    """One line of the result."""

    name: str
    settings: Mapping[str, str]
    """Of run_pretraining.py, by `section.field`."""
    share: float = 1.0
    """Of the budget."""
    recipe: str = ""
    """"" for the budget's."""
    at: tuple[str, ...] = ()
    """Its values of the grid's axes."""
    of: str = ""
    """Its name without them."""

    def config(self, budget: Budget) -> PretrainingConfig:
        """Returns the settings of its runs; `UserError` for one it cannot have."""
        return build_config(budget.model_size, self.recipe or budget.recipe,
                            budget.settings | dict(self.settings))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """What one file holds."""

    name: str
    title: str
    source: str
    """Where the comparison comes from: section, table, figure of a paper."""
    question: str
    note: str
    tasks: tuple[str, ...]
    variants: tuple[Variant, ...]
    axes: tuple[str, ...]
    """What the grid varies: settings, or "share" of the budget."""
    finetuning: Mapping[str, str]
    """Settings of run_finetuning.py, by `section.field`."""


def names() -> list[str]:
    """Returns the sweeps that come with the project."""
    return sorted(path.stem for path in DIRECTORY.glob("*.yaml"))


def load(name: str) -> Sweep:
    """Reads a sweep: one of `names()`, or a YAML file of the same form.

    Section `sweep` says what is asked (title, question, source, note, and tasks with commas), `all`
    has settings of every variant, `grid` settings with lists of values of which every combination
    is tried, `finetuning` settings of the tasks. Every other section is a variant with its settings
    as `section.field: value`; `recipe` and `share` (of the budget) may stand there too.

    Raises:
        UserError: no such sweep; no variants; an unknown task or key; an empty grid.
    """
    path = Path(name) if name.endswith((".yaml", ".yml")) else DIRECTORY / f"{name}.yaml"
    if not path.exists():
        raise UserError(f"there is no sweep {shown(name)}; there are {', '.join(names())}, or name "
                        "a YAML file of your own.")
    sections = read_sections(path, "sweep")
    about = sections.pop("sweep", {})
    for key in (*about, *_NEEDED):
        if key not in _ABOUT or key not in about:
            raise UserError(f"{path}: section sweep "
                            f"{'needs' if key in _ABOUT else 'has the unknown key'} {shown(key)}; "
                            f"its keys are {', '.join(_ABOUT)}.")
    judged_by = _listed(about["tasks"])
    tasks.require_known(judged_by, str(path))
    grid = _grid(path, sections.pop("grid", None))
    finetuning = sections.pop("finetuning", {})
    return Sweep(
        name=path.stem, title=about["title"], source=about["source"],
        question=about.get("question", ""), note=about.get("note", ""), tasks=judged_by,
        axes=tuple(grid), variants=_variants(path, sections, grid), finetuning=finetuning)


def check(sweep: Sweep, budget: Budget) -> None:
    """Raises `UserError`, with the variant's name, for settings that can't be used."""
    for variant in sweep.variants:
        try:
            variant.config(budget)
        except UserError as error:
            raise UserError(f"variant {shown(variant.name)} of {sweep.name}: {error}") from error
    try:
        override(finetuning_config(ModelConfig()), sweep.finetuning)
    except UserError as error:
        raise UserError(f"section finetuning of {sweep.name}: {error}") from error


def _variants(path: Path, sections: Sections,
              grid: Mapping[str, Sequence[str]]) -> tuple[Variant, ...]:
    common = sections.pop("all", {})
    if not sections and not grid:
        raise UserError(f"{path}: no variants: add a section for each, or a grid.")
    found = []
    for name, own in (sections or {"": {}}).items():
        for values in itertools.product(*grid.values()):
            combined = common | own | dict(zip(grid, values, strict=True))
            words = [f"{key.rpartition('.')[2]} {value}"
                     for key, value in zip(grid, values, strict=True)]
            found.append(_variant(path, ", ".join(filter(None, [name, *words])), combined,
                                  at=values, of=name))
    return tuple(found)


def _variant(path: Path, name: str, keys: Mapping[str, str], *, at: tuple[str, ...],
             of: str) -> Variant:
    place, settings = f"{path}: variant {shown(name)}", dict(keys)
    recipe, share = settings.pop("recipe", ""), settings.pop("share", "1")
    for key in settings:
        if not re.fullmatch(r"\w+\.\w+", key):
            raise UserError(f"{place}: {shown(key)} is neither section.field nor recipe or share.")
    if recipe:
        require_one_of(pretraining.RECIPES, f"{place}: recipe", recipe)
    if not re.fullmatch(r"\d*\.?\d+", share) or not 0.0 < float(share) <= 100.0:
        raise UserError(f"{place}: share must be a number above 0, 1 for the whole budget.")
    return Variant(name=name, settings=settings, share=float(share), recipe=recipe, at=at, of=of)


def _grid(path: Path, section: Mapping[str, str] | None) -> dict[str, tuple[str, ...]]:
    grid = {key: _listed(values) for key, values in (section or {}).items()}
    if section is not None and not (grid and all(grid.values())):
        raise UserError(f"{path}: the grid is empty, or a setting in it: give every setting values "
                        "with commas between them, or leave it out.")
    return grid


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
