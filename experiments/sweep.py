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

from electra_tf.config import pretraining
from electra_tf.config.finetuning import finetuning_config
from electra_tf.config.model import ModelConfig
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig, resolve
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.settings import require_one_of
from electra_tf.platform.strict_yaml import read_sections

DIRECTORY = Path(__file__).parent
_REQUIRED = ("title", "source", "tasks")
_KEYS = (*_REQUIRED, "question", "note")
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
    about: str
    """Description of hardware and time."""
    model_size: str
    recipe: str
    settings: dict[str, str]
    """Settings of every run, by `section.field`."""
    reference_steps: int
    """Training steps of ELECTRA. Their FLOPs are every run's budget: an objective that costs more
    per token reads fewer tokens."""
    seeds: int = 3
    threads: int
    """Cores of a run; as many runs as fit run concurrently. 0: all cores."""


BUDGETS = {budget.name: budget for budget in (
    Budget(name="tiny",
           about="2 layers of width 128; 3 to 5 minutes of one core with AVX-512 bfloat16 per "
                 "run",
           model_size="tiny", recipe="short", reference_steps=2000, threads=1,
           settings={"model.num_heads": "4", "model.max_position_embeddings": "512",
                     "training.train_batch_size": "16"}),
    Budget(name="cpu-day",
           about="4 layers of width 256; an hour of one core with AVX-512 bfloat16 per run",
           model_size="small", recipe="short", reference_steps=14_000, threads=1,
           settings={"model.num_layers": "4", "training.train_batch_size": "16"}),
    Budget(name="gpu-day", about="ELECTRA-Small; an hour or two of one GPU per run (not measured)",
           model_size="small", recipe="short", reference_steps=50_000, threads=0,
           settings={"training.train_batch_size": "128"}),
    Budget(name="paper", about="ELECTRA-Base, its 766,000 steps of 256 (ELECTRA, table 6)",
           model_size="base", recipe="paper", reference_steps=766_000, threads=0, settings={},
           seeds=1),
)}


def budget_of(name: str) -> Budget:
    """Returns the budget of a name; `UserError` if there is none."""
    require_one_of(BUDGETS, "--budget", name)
    return BUDGETS[name]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variant:
    """A variant: one row of the results."""

    name: str
    settings: Mapping[str, str]
    """Settings of run_pretraining.py, by `section.field`."""
    share: float = 1.0
    """Fraction of the budget's FLOPs."""
    recipe: str = ""
    """Name of the recipe; "" for the budget's."""

    def config(self, budget: Budget) -> PretrainingConfig:
        """Returns the settings of its runs; `UserError` for an invalid one."""
        return resolve(budget.model_size, self.recipe or budget.recipe,
                       budget.settings | dict(self.settings))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """A comparison of variants, from one YAML file."""

    name: str
    title: str
    source: str
    """Section, table or figure of a paper."""
    question: str
    note: str
    tasks: tuple[str, ...]
    variants: tuple[Variant, ...]
    finetuning: Mapping[str, str]
    """Settings of run_finetuning.py, by `section.field`."""


def names() -> list[str]:
    """Returns the sweeps that come with the project."""
    return sorted(path.stem for path in DIRECTORY.glob("*.yaml"))


def load(name: str) -> Sweep:
    """Reads a sweep, one of `names()` or a YAML file of the same form; `UserError` if wrong."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else DIRECTORY / f"{name}.yaml"
    if not path.exists():
        raise UserError(f"there is no sweep {shown(name)}; there are {', '.join(names())}, or name "
                        "a YAML file of your own.")
    sections = read_sections(path, "sweep")
    about = sections.pop("sweep", {})
    for key in (*about, *_REQUIRED):
        if key not in _KEYS or key not in about:
            problem = "needs" if key in _KEYS else "has the unknown key"
            raise UserError(f"{path}: section sweep {problem} {shown(key)}; its keys are "
                            f"{', '.join(_KEYS)}.")
    tasks = _listed(about["tasks"])
    require_known_tasks(tasks, f"{path}: a task")
    grid = {key: _listed(values) for key, values in sections.pop("grid", {}).items()}
    if not all(grid.values()):
        raise UserError(f"{path}: a setting of the grid needs values with commas between them.")
    finetuning, common = sections.pop("finetuning", {}), sections.pop("all", {})
    if not sections and not grid:
        raise UserError(f"{path}: no variants: add a section for each, or a grid.")
    variants = []
    for section, settings in (sections or {"": {}}).items():
        for values in itertools.product(*grid.values()):
            choice = dict(zip(grid, values, strict=True))
            words = [f"{key.rpartition('.')[2]} {value}" for key, value in choice.items()]
            name, own = ", ".join(filter(None, [section, *words])), common | settings | choice
            subject = f"{path}: variant {shown(name)}"
            recipe, share = own.pop("recipe", ""), own.pop("share", "1")
            for key in own:
                if not re.fullmatch(r"\w+\.\w+", key):
                    raise UserError(
                        f"{subject}: {shown(key)} is neither section.field nor recipe or share.")
            if recipe:
                require_one_of(pretraining.RECIPES, f"{subject}: recipe", recipe)
            if not re.fullmatch(r"\d*\.?\d+", share) or not 0.0 < float(share) <= 100.0:
                raise UserError(
                    f"{subject}: share must be a number above 0, 1 for the whole budget.")
            variants.append(Variant(name=name, settings=own, share=float(share), recipe=recipe))
    return Sweep(
        name=path.stem, title=about["title"], source=about["source"],
        question=about.get("question", ""), note=about.get("note", ""), tasks=tasks,
        variants=tuple(variants), finetuning=finetuning)


def require_known_tasks(tasks: Sequence[str], subject: str) -> None:
    """Raises `UserError` for an unknown task; `subject` begins the message."""
    for name in tasks:
        require_one_of(TASK_FOLDERS, subject, name)


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


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
