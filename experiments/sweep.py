"""Reads a sweep: the variants of pre-training, their budget, and the tasks that score them.

A sweep is a YAML file. Section `sweep` describes it (title, question, source, note, and tasks with
commas), `all` has settings of every variant, and `finetuning` those of the tasks. `grid` has lists
of values, and every combination is a variant. Every other section is a variant with its settings
as `section.field: value`; it may also have `recipe` and `share` (of the budget).
"""

import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from electra_tf.config.finetuning import finetuning_config
from electra_tf.config.model import ModelConfig
from electra_tf.config.overrides import override, read_sections
from electra_tf.config.pretraining import PretrainingConfig, resolve
from electra_tf.core.errors import UserError, shown
from electra_tf.core.settings import require_one_of

DIRECTORY = Path(__file__).parent
_REQUIRED, _OPTIONAL = ("title", "source", "tasks"), ("question", "note")
_GLUE = ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte", "wnli")
TASK_FOLDERS = {
    "chunk": "conll2000", "ner": "conll2003", **dict.fromkeys(_GLUE, "glue"), "squad": "squad",
    "squad2": "squad", "blimp": "blimp",
    **dict.fromkeys(("searchqa", "triviaqa", "newsqa", "naturalqs"), "mrqa")}
"""Tasks of run_finetuning.py that may score encoders -> their folder below --tasks_dir."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Budget:
    """The compute that every run of a sweep gets, and the network that it is spent on."""

    name: str
    about: str  # Hardware and time.
    model_size: str
    recipe: str = "short"
    settings: dict[str, str]  # Settings of every run, by `section.field`.
    reference_steps: int  # Training steps of ELECTRA, whose FLOPs are every run's budget.
    seeds: int = 3
    threads: int = 0  # Cores of a run; as many runs as fit run at the same time. 0: all cores.


BUDGETS = {budget.name: budget for budget in (
    Budget(name="tiny", model_size="tiny", reference_steps=2000, threads=1, settings={
        "model.num_heads": "4", "model.max_position_embeddings": "512",
        "training.train_batch_size": "16"}, about=(
            "2 layers of width 128; 3 to 5 minutes of one core with AVX-512 bfloat16 per run")),
    Budget(name="cpu-day", model_size="small", reference_steps=14_000, threads=1, settings={
        "model.num_layers": "4", "training.train_batch_size": "16"}, about=(
            "4 layers of width 256; an hour of one core with AVX-512 bfloat16 per run")),
    Budget(name="gpu-day", model_size="small", reference_steps=50_000, settings={
        "training.train_batch_size": "128"}, about=(
            "ELECTRA-Small; an hour or two of one GPU per run (not measured)")),
    Budget(name="paper", model_size="base", recipe="paper", reference_steps=766_000, settings={},
           seeds=1, about="ELECTRA-Base, its 766,000 steps of 256 (ELECTRA, table 6)"))}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variant:
    """A variant: one row of the results."""

    name: str
    settings: Mapping[str, str]  # Settings of run_pretraining.py, by `section.field`.
    share: float = 1.0  # Fraction of the budget's FLOPs.
    recipe: str = ""  # Name of the recipe; "" for the budget's.

    def config(self, budget: Budget) -> PretrainingConfig:
        """Returns the settings of its runs; `UserError` for an invalid one."""
        return resolve(budget.model_size, self.recipe or budget.recipe,
                       budget.settings | dict(self.settings))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """A comparison of variants, from one YAML file."""

    name: str
    title: str
    source: str  # Section, table or figure of a paper.
    question: str = ""
    note: str = ""
    tasks: Sequence[str]
    variants: Sequence[Variant]
    finetuning: Mapping[str, str]  # Settings of run_finetuning.py, by `section.field`.


def names() -> list[str]:
    """Returns the sweeps that come with the project."""
    return sorted(path.stem for path in DIRECTORY.glob("*.yaml"))


def load(name: str) -> Sweep:
    """Reads a sweep, one of `names()` or a YAML file of the same form; `UserError` if wrong."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else DIRECTORY / f"{name}.yaml"
    if not path.exists():
        raise UserError(f"there is no sweep {shown(name)}; there are {', '.join(names())}, or name "
                        "a YAML file of your own.")
    # The description.
    sections = read_sections(path, "sweep")
    about = sections.pop("sweep", {})
    missing, unknown = set(_REQUIRED) - {*about}, {*about} - {*_REQUIRED, *_OPTIONAL}
    if missing or unknown:
        raise UserError(f"{path}: section sweep needs {', '.join(_REQUIRED)}, and may have "
                        f"{', '.join(_OPTIONAL)}. Received: {shown(', '.join(about))}")
    tasks = _listed(about.pop("tasks"))
    for task in tasks:
        require_one_of(TASK_FOLDERS, f"{path}: a task", task)
    # Every section is a variant, or several with the combinations of the grid.
    grid = {key: _listed(values) for key, values in sections.pop("grid", {}).items()}
    finetuning, common = sections.pop("finetuning", {}), sections.pop("all", {})
    variants = [_variant(path, section, dict(zip(grid, values, strict=True)), common | settings)
                for section, settings in (sections or ({"": {}} if grid else {})).items()
                for values in itertools.product(*grid.values())]
    if not variants:
        raise UserError(f"{path}: no variants: add a section for each, or a grid of values with "
                        "commas between them.")
    return Sweep(name=path.stem, **about, tasks=tasks, variants=variants, finetuning=finetuning)


def _variant(path: Path, section: str, choice: Mapping[str, str],
             settings: dict[str, str]) -> Variant:
    """Returns the variant of a section and of one choice of the grid."""
    # The name: that of the section, and the chosen values.
    words = [f"{key.rpartition('.')[2]} {value}" for key, value in choice.items()]
    name, settings = ", ".join(filter(None, [section, *words])), settings | choice
    recipe, share = settings.pop("recipe", ""), settings.pop("share", "1")
    if not re.fullmatch(r"\d*\.?\d+", share) or not 0.0 < float(share) <= 100.0:
        raise UserError(f"{path}: variant {shown(name)}: share must be a number above 0, 1 for the "
                        "whole budget.")
    return Variant(name=name, settings=settings, share=float(share), recipe=recipe)


def check(sweep: Sweep, budget: Budget) -> None:
    """Raises `UserError`, with the variant's name, for settings that can't be used."""
    part = f"section finetuning of {sweep.name}"
    try:
        override(finetuning_config(ModelConfig()), sweep.finetuning)
        for variant in sweep.variants:
            part = f"variant {shown(variant.name)} of {sweep.name}"
            variant.config(budget)
    except UserError as error:
        raise UserError(f"{part}: {error}") from error


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
