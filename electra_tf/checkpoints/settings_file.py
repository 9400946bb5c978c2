"""`settings.json`, checked: every value of its type, no section with gaps, nothing unknown."""

from collections.abc import Mapping
from typing import Any

from electra_tf.config.overrides import flatten, override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.platform import strict_json
from electra_tf.platform.bounded import MIB
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
from electra_tf.text import normalization

Saved = dict[str, str | int | float | bool | list[str] | list[int] | None]
"""Settings by names with a dot, other facts by names without."""

_FACTS = {"dataset": str, "data": str, "finished_at": list, "vocabulary": str,
          "initial": (str, type(None)), **dict.fromkeys(normalization.FACTS, bool)}
"""Facts of a run beside its settings and its task."""
_NEEDED = (*normalization.NEEDED_FACTS, "model.vocab_size")
_MAY_CHANGE = frozenset({"training.num_trials"})
"""Settings that decide a result and are not kept: trials can be added."""
TASK = "task_"
"""Prefix of the facts of a task, whose meaning `tasks` knows."""
_MOST_BYTES = 4 * MIB
"""Settings take 3 KB; the names of 30,000 labels fit."""


def read(path: Path, known: Any = None) -> Saved:
    """Returns what a run's settings.json holds.

    Args:
        path: of the file.
        known: settings of the run's kind, against which its own are checked. If None, all settings
            of pre-training are checked, but of fine-tuning the model's alone.

    Raises:
        UserError: no such file; a damaged one: no JSON, or a value that is missing, unknown, of
            another type or out of range.
    """
    fix = "restore it or start a new --model_dir."
    saved = strict_json.read(path, Saved, most=_MOST_BYTES, fix=fix, absent=(
        f"{path} does not exist: no run was started in {path.parent}. Train first, or name "
        "another directory."))
    problem = _problem_of_facts(saved) or _problem_of_settings(saved, known)
    if problem:
        raise UserError(f"{path} is damaged: {problem}; {fix}")
    return saved


def _problem_of_facts(saved: Mapping[str, Any]) -> str:
    facts = {name: value for name, value in saved.items() if "." not in name}
    for name in facts:
        if name.startswith(TASK):
            continue
        if name not in _FACTS:
            return f"{shown(name)} is unknown"
        if not isinstance(facts[name], _FACTS[name]):
            return f"{name!r} can't be {shown(facts[name])}"
    ends = facts.get("finished_at", [0])
    if not ends or ends != sorted(set(ends)) or not isinstance(ends[0], int):
        return f"'finished_at' can't be {shown(ends)}"
    missing = [name for name in _NEEDED if name not in saved]
    if missing:
        return f"{missing[0]!r} is missing"
    try:
        normalization.Normalization.of_facts(saved)
    except ValueError as error:
        return str(error).rstrip(".")
    return ""


def _problem_of_settings(saved: Mapping[str, Any], known: Any) -> str:
    settings = {name: value for name, value in saved.items() if "." in name}
    if known is None and any(name.startswith(TASK) for name in saved):
        settings = {name: settings[name] for name in settings if name.startswith("model.")}
    default = known or PretrainingConfig()
    objective = {name: settings[name] for name in settings if name == "objective.name"}
    try:
        known = flatten(override(default, objective))
    except UserError as error:
        return str(error).rstrip(".")
    for name, value in settings.items():
        wanted = type(known.get(name))
        if name not in known or name.startswith("runtime."):
            return f"{shown(name)} is unknown"
        # No type is converted into another; 1 and 1.0 are both numbers of JSON.
        if type(value) is not wanted and not (wanted is float and type(value) is int):
            return f"{name} can't be {shown(value)}"
    sections = {name.partition(".")[0] for name in settings}
    gaps = [name for name in known if name.partition(".")[0] in sections
            and name not in settings and name not in _MAY_CHANGE]
    if gaps:
        return f"{gaps[0]!r} is missing"
    try:
        override(default, settings)
    except UserError as error:
        return str(error).rstrip(".")
    return ""
