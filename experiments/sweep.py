"""A sweep: which variants of pre-training are compared, and by what. A YAML file holds one."""

import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from electra_tf.config import recipes
from electra_tf.config.finetuning import finetuning_config
from electra_tf.config.model import ModelConfig
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.pretraining_flags import build_config
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.strict_yaml import Sections, read_sections
from experiments import tasks
from experiments.budgets import Budget

DIRECTORY = Path(__file__).parent
_ABOUT = {"title", "question", "source", "tasks", "note"}
_NEEDED = ("title", "source", "tasks")
_SWEEP, _ALL, _GRID, _FINETUNING = "sweep", "all", "grid", "finetuning"
_SHARE, _RECIPE = "share", "recipe"
"""Keys that are no settings: the part of the budget, and the recipe of a variant."""
_MOST_VARIANTS = 200


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
        """Returns the settings of its runs, as run_pretraining.py makes them.

        Raises:
            UserError: a setting that there isn't, or that another objective has.
        """
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
    about = sections.pop(_SWEEP, {})
    for key in about:
        if key not in _ABOUT:
            raise UserError(f"{path}: unknown key {shown(key)} in section sweep; there are "
                            f"{', '.join(sorted(_ABOUT))}.")
    for key in _NEEDED:
        if key not in about:
            raise UserError(f"{path}: section sweep needs {key}.")
    judged_by = _listed(about["tasks"])
    tasks.require_known(judged_by, str(path))
    grid = _grid(path, sections.pop(_GRID, None))
    finetuning = sections.pop(_FINETUNING, {})
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
    common = sections.pop(_ALL, {})
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
    if len(found) > _MOST_VARIANTS:
        raise UserError(f"{path}: {len(found)} variants; at most {_MOST_VARIANTS}.")
    return tuple(found)


def _variant(path: Path, name: str, keys: Mapping[str, str], *, at: tuple[str, ...],
             of: str) -> Variant:
    place = f"{path}: variant {shown(name)}"
    for key in keys:
        if key not in (_SHARE, _RECIPE) and not re.fullmatch(r"\w+\.\w+", key):
            raise UserError(f"{place}: {shown(key)} is neither section.field nor recipe or share.")
    recipe = keys.get(_RECIPE, "")
    if recipe and recipe not in recipes.RECIPES:
        raise UserError(f"{place}: recipe must be one of {', '.join(recipes.RECIPES)}.")
    try:
        share = float(keys.get(_SHARE, "1"))
    except ValueError:
        share = 0.0
    if not 0.0 < share <= 100.0:
        raise UserError(f"{place}: share must be a number above 0, 1 for the whole budget.")
    settings = {key: value for key, value in keys.items() if key not in (_SHARE, _RECIPE)}
    return Variant(name=name, settings=settings, share=share, recipe=recipe, at=at, of=of)


def _grid(path: Path, section: Mapping[str, str] | None) -> dict[str, tuple[str, ...]]:
    if section is None:
        return {}
    grid = {key: _listed(values) for key, values in section.items()}
    empty = [key for key, values in grid.items() if not values]
    if not grid or empty:
        raise UserError(f"{path}: the grid is empty{f' in {empty[0]}' if empty else ''}: give "
                        "every setting values with commas between them, or leave it out.")
    return grid


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
