"""A run's directory: names of files, settings, and the lock of the process that trains.

    settings.json    settings that affect the result, which a resumed run must have too
    vocab.txt        the vocabulary of its records
    checkpoints/     newest checkpoints
"""

import contextlib
import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

from annotated_types import Ge

from electra_tf.checkpoints import checkpoint_files
from electra_tf.config.overrides import flatten, override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.platform import atomic_file, strict_json
from electra_tf.platform.atomic_file import make_directory, write_json
from electra_tf.platform.errors import UserError, one_line
from electra_tf.platform.settings import require
from electra_tf.platform.storage import MIB, Path, remove_tree
from electra_tf.text import tokenization
from electra_tf.text.tokenization import Normalization

SETTINGS_FILE = "settings.json"
VOCABULARY_FILE = "vocab.txt"
CHECKPOINTS = "checkpoints"
RESULTS_FILE = "results.json"
EVALUATION_FILE = "eval_results.json"
MAX_RESULT_BYTES = 64 * MIB  # A trial of ten epochs takes 5 KB.
METRICS_FILE = "metrics.jsonl"
FINISHED = "finished_at"
"""Fact of a run that was extended: its earlier numbers of steps, in order."""
STEPS = "training.num_train_steps"
_WRITTEN = (CHECKPOINTS, METRICS_FILE, "tensorboard", "loss_curves.png", EVALUATION_FILE,
            RESULTS_FILE, "predictions", "submission", "learning_curve.png", VOCABULARY_FILE,
            VOCABULARY_FILE + tokenization.SUFFIX, SETTINGS_FILE)
TASK = "task_"
"""Prefix of a task's facts, which `tasks/task.py` defines."""
_MOST_SETTING_BYTES = 4 * MIB  # Settings take 3 KB; the names of 30,000 labels fit.
_PATTERN = re.compile(r"[][*?\\]")
_Saved = dict[str, str | int | float | bool | list[str] | list[int] | None]

Config = TypeVar("Config")
Identity = Mapping[str, Any]
"""Settings, whose names have a dot, and other facts that affect a run's result."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Facts(Normalization):
    """Facts in settings.json that are parsed; other facts are only compared."""

    __pydantic_config__ = strict_json.OPEN

    lower_case: bool = dataclasses.field()  # Without the defaults of `Normalization`.
    strip_accents: bool = dataclasses.field()
    finished_at: tuple[int, ...] = ()


def identity(config: Any, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns all that affects a run's result: settings except `runtime`'s, and facts."""
    settings = {name: value for name, value in flatten(config).items()
                if not name.startswith("runtime.")}
    return settings | dict(facts)


def settings_of(saved: Identity) -> dict[str, Any]:
    """Returns the settings of an `identity`, without the other facts."""
    return {name: value for name, value in saved.items() if "." in name}


def all_settings(model_dir: Path) -> dict[str, Any]:
    """Returns the settings of a pre-training run, with the steps of all its stages."""
    saved = settings_of(read_identity(model_dir))
    objective = override(PretrainingConfig(), saved).objective
    if objective.generator_steps(saved[STEPS]):
        saved[STEPS] += read_identity(objective.generator_dir(model_dir))[STEPS]
    return saved


def claim(model_dir: Path, wanted: Identity, *, initial_section: str = "") -> list[str]:
    """Writes settings.json for the run of an `identity`, or refuses the directory of another run.

    A directory without a checkpoint or results is free. A finished run can be extended: `wanted`
    then has its number of steps last in `FINISHED`. `initial_section` names a section of settings
    that have no effect once a checkpoint exists. Returns the differences in this section, as text.
    """
    if _PATTERN.search(str(model_dir)):
        raise UserError(f"--model_dir={model_dir} contains one of []*?\\, which TensorFlow takes "
                        "for a pattern of names; choose another name.")
    if not is_taken(model_dir):
        make_directory(model_dir / CHECKPOINTS)
        write_json(model_dir / SETTINGS_FILE, wanted)
        return []
    saved = read_identity(model_dir)
    settled = {name: value for name, value in wanted.items()
               if initial_section and name.startswith(f"{initial_section}.")}
    extended = {}
    if wanted.get(FINISHED, [])[len(saved.get(FINISHED, [])):] == [saved.get(STEPS)]:
        extended = {name: wanted[name] for name in (STEPS, FINISHED)}
    # Initial networks need not be named again.
    begun = {"initial": None} if initial_section and wanted.get("initial", "") is None else {}
    refuse_differences(model_dir, saved | settled | extended | begun, wanted)
    if extended:
        write_json(model_dir / SETTINGS_FILE, saved | extended)
    return _differences(saved, settled, settled)


def is_taken(model_dir: Path) -> bool:
    """Returns True if a directory has a run's settings, and a checkpoint or results of it."""
    return (model_dir / SETTINGS_FILE).exists() and (
        (model_dir / RESULTS_FILE).exists() or checkpoint_files.was_used(model_dir / CHECKPOINTS))


def restart(model_dir: Path) -> None:
    """Removes the files of a run; `UserError` if another process trains in its directory."""
    if not (model_dir / SETTINGS_FILE).exists():
        return
    with only_process(model_dir):
        for name in _WRITTEN:
            path = model_dir / name
            remove_tree(path) if path.is_dir() else path.unlink(missing_ok=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Results:
    __pydantic_config__ = strict_json.OPEN
    checkpoint: Annotated[int, Ge(1)] | None = None


def checkpoint_of_results(model_dir: Path) -> int | None:
    """Returns the number of the checkpoint that results.json names; None if it names none."""
    path = model_dir / RESULTS_FILE
    if not path.exists():
        return None
    return strict_json.read(path, _Results, max_bytes=MAX_RESULT_BYTES, fix=(
        "put it back from a copy, or begin again with --restart.")).checkpoint


def read_identity(model_dir: Path, known: Any = None) -> dict[str, Any]:
    """Returns what `claim` wrote; `UserError` if there is no run, or its settings are damaged.

    The settings are checked against `known`. If it is None, all settings of pre-training are
    checked, but of fine-tuning the model's alone.
    """
    path, fix = model_dir / SETTINGS_FILE, "restore it or start a new --model_dir."
    saved = strict_json.read(path, _Saved, max_bytes=_MOST_SETTING_BYTES, fix=fix, absent=(
        f"{path} does not exist: no run was started in {model_dir}. Train first, or name "
        "another directory."))
    strict_json.read(path, _Facts, max_bytes=_MOST_SETTING_BYTES, fix=fix)
    settings = settings_of(saved)
    if known is None and any(name.startswith(TASK) for name in saved):
        settings = {name: value for name, value in settings.items() if name.startswith("model.")}
    sections = {"model", *(name.partition(".")[0] for name in settings)}
    try:
        for name, value in flatten(override(known or PretrainingConfig(), settings)).items():
            if name.partition(".")[0] not in sections or name == "training.num_trials":
                continue  # Trials can be added.
            given = settings.get(name)
            # No type is converted into another; 1 and 1.0 are both numbers of JSON.
            same = given == value and isinstance(given, bool) == isinstance(value, bool)
            require(same, name, f"of type {type(value).__name__}", given)
    except UserError as error:
        raise UserError(f"{path} is damaged: {str(error).rstrip('.')}; {fix}") from error
    return saved


def saved_config(model_dir: Path, config: Config, given: Collection[str]) -> Config:
    """Returns the configuration of the run in a directory, with `config`'s runtime settings.

    `given` are settings, or whole sections, that must have the run's values.
    """
    saved = read_identity(model_dir)
    asked = {name: value for name, value in flatten(config).items()
             if (name in given or name.split(".")[0] in given) and name in saved
             and name != "model.vocab_size" and value not in ("auto", 0)}
    refuse_differences(model_dir, {name: saved[name] for name in asked}, asked)
    return override(config, settings_of(saved))


def refuse_differences(model_dir: Path, saved: Identity, wanted: Identity) -> None:
    """Raises `UserError` that names every setting whose value isn't the saved one."""
    changed = _differences(saved, wanted, saved.keys() | wanted.keys())
    if changed:
        raise UserError(f"--model_dir={model_dir} holds a run with other settings "
                        f"({'; '.join(changed)}). To continue it, leave out these settings, "
                        "--model_size and --recipe, or give its values. Otherwise name a new "
                        "--model_dir.")


def _differences(saved: Identity, wanted: Identity, names: Iterable[str]) -> list[str]:
    """Returns the settings whose values differ, each with both values, as text."""
    none = "no such setting"
    return [f"{name}: {_shown(name, saved.get(name, none))} then, "
            f"{_shown(name, wanted.get(name, none))} now"
            for name in sorted(names) if saved.get(name) != wanted.get(name)]


@contextlib.contextmanager
def only_process(model_dir: Path) -> Iterator[None]:
    """Holds the directory's lock; `UserError` if another live process trains in it.

    Removes the temporary files of a process that was killed while it saved a checkpoint.
    """
    with atomic_file.lock_directory(
            model_dir, f"another process is training in --model_dir={model_dir}; wait for it or "
            "name another directory."):
        for left in (model_dir / CHECKPOINTS).glob("ckpt-*_temp"):
            remove_tree(left)
        yield


def _shown(name: str, value: Any) -> str:
    """Returns a value in one line; a checksum without its end."""
    text = one_line(str(value))
    return f"{text[:12]}..." if len(text) > 24 and "." not in name else text
