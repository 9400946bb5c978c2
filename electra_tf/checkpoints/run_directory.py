"""A run's directory: names of files, settings, and the lock of the process that trains.

    settings.json    settings that affect the result, which a resumed run must have too
    vocab.txt        the vocabulary of its records
    word_vectors.npy vectors with which word embeddings began, if they were not random
    checkpoints/     newest checkpoints
"""

import contextlib
import dataclasses
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any

from annotated_types import Ge

from electra_tf.checkpoints import checkpoint_files
from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.overrides import flatten, override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core import atomic_file, storage, strict_json
from electra_tf.core.atomic_file import make_directory, write_json
from electra_tf.core.errors import UserError, one_line
from electra_tf.core.settings import require
from electra_tf.core.storage import MIB, Path, remove_tree
from electra_tf.text import normalization
from electra_tf.text.normalization import VOCABULARY_FACT, Normalization, TextSettings
from electra_tf.text.vocabulary import VOCABULARY_FILE, Vocabulary

SETTINGS_FILE = "settings.json"
CHECKPOINTS = "checkpoints"
RESULTS_FILE = "results.json"
EVALUATION_FILE = "eval_results.json"
MAX_RESULT_BYTES = 64 * MIB  # A trial of ten epochs takes 5 KB.
METRICS_FILE = "metrics.jsonl"
TRACKERS_FILE = "trackers.json"
WORD_VECTORS_FILE = "word_vectors.npy"
FINISHED = "finished_at"  # Fact of a run that was extended: its earlier numbers of steps, in order.
STABLE = "stable_until"
"""Fact of a run whose `DECAY` was 0 up to this number of steps, the last in `FINISHED` then."""
DECAY = "optimizer.decay_fraction"
FIRST_STAGE = "the generator of stage 1"
"""Beginning of `initial` in the settings of the second of two stages."""
STEPS = "training.num_train_steps"
_WRITTEN = (CHECKPOINTS, METRICS_FILE, TRACKERS_FILE, "tensorboard", "loss_curves.png",
            EVALUATION_FILE, RESULTS_FILE, "predictions", "submission", "learning_curve.png",
            VOCABULARY_FILE, VOCABULARY_FILE + normalization.SUFFIX, WORD_VECTORS_FILE,
            SETTINGS_FILE)
_TASK = "task_"  # Prefix of a task's facts, which `tasks/task.py` defines.
_MAX_SETTING_BYTES = 4 * MIB  # Settings take 3 KB; the names of 30,000 labels fit.
_Saved = dict[str, str | int | float | bool | list[str] | list[int] | None]

RunConfig = Mapping[str, Any]
"""Settings, whose names have a dot, and other facts that affect a run's result."""


class _Facts(strict_json.OpenObject, Normalization):
    """Facts in settings.json that are parsed; other facts are only compared."""

    lower_case: bool = dataclasses.field()  # Without the defaults of `Normalization`.
    strip_accents: bool = dataclasses.field()
    finished_at: tuple[int, ...] = ()
    stable_until: int = 0


def identity(config: Any, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns all that affects a run's result: settings except `runtime`'s, and facts."""
    return {name: value for name, value in flatten(config).items()
            if not name.startswith("runtime.")} | dict(facts)


def settings_of(saved: RunConfig) -> dict[str, Any]:
    """Returns the settings of an `identity`, without the other facts."""
    return {name: value for name, value in saved.items() if "." in name}


def text_settings(model_dir: Path) -> TextSettings:
    """Returns a run's vocabulary and normalization; `UserError` if vocab.txt was changed."""
    # The run's settings hold the checksum of its vocabulary.
    saved = read_identity(model_dir)
    vocabulary = Vocabulary.load(model_dir / VOCABULARY_FILE)
    digest = saved.get(VOCABULARY_FACT)
    if vocabulary.sha256 != digest:
        raise UserError(f"{vocabulary.source} isn't the vocabulary that the run was trained with "
                        f"(SHA-256 {vocabulary.sha256[:12]}..., not {str(digest)[:12]}...): its "
                        "tokens would get other ids. Restore the file.")
    return TextSettings(vocabulary=vocabulary, normalization=Normalization.from_dict(saved))


def open_run_dir(model_dir: Path, identity: RunConfig, *, replaced: Collection[str] = (),
                 ignored: Collection[str] = ()) -> list[str]:
    """Writes settings.json for the run of an `identity`, or refuses the directory of another run.

    A directory without a checkpoint or results is free. A finished run can be extended: `identity`
    then has its number of steps last in `FINISHED`. Settings in `replaced` get the new values.
    Those in `ignored`, which have no effect once a checkpoint exists, keep the saved ones. Returns
    the differences in `ignored`, as text.
    """
    if set(str(model_dir)) & set("[]*?\\"):
        raise UserError(f"--model_dir={model_dir} contains one of []*?\\, which TensorFlow reads "
                        "as a pattern of names; choose another name.")
    storage.utf8_path(str(model_dir))  # Before training.

    # A new run.
    if not has_run(model_dir):
        make_directory(model_dir / CHECKPOINTS)
        write_json(model_dir / SETTINGS_FILE, identity)
        return []

    # A run that continues. Its number of steps may grow by an extension, and its initial networks
    # need not be named again.
    saved = read_identity(model_dir)
    new_values = {name: identity[name] for name in replaced}
    if identity.get(FINISHED, [])[len(saved.get(FINISHED, [])):] == [saved.get(STEPS)]:
        new_values |= {name: identity[name] for name in (STEPS, FINISHED)}
        if identity.get(STABLE) == saved.get(STEPS):  # Its decay begins in the extension.
            new_values |= {name: identity[name] for name in (DECAY, STABLE)}
    unnamed = ["initial"] if identity.get("initial", "") is None else []
    accepted = {name: identity[name] for name in (*ignored, *unnamed)}
    refuse_differences(model_dir, saved | accepted | new_values, identity)
    if new_values:
        write_json(model_dir / SETTINGS_FILE, saved | new_values)
    return _differences(saved, identity, ignored)


def has_run(model_dir: Path) -> bool:
    """Returns True if a directory has a run's settings, and a checkpoint or results of it."""
    return (model_dir / SETTINGS_FILE).exists() and (
        (model_dir / RESULTS_FILE).exists() or checkpoint_files.was_used(model_dir / CHECKPOINTS))


def confirm_restart(model_dirs: Iterable[Path], *, ask: bool) -> None:
    """Prints which runs `restart` deletes; `UserError` if it can `ask` and the user refuses."""
    runs = [model_dir for model_dir in model_dirs if has_run(model_dir)]
    for model_dir in runs:
        print(f"restart  deletes {model_dir}", flush=True)
    if runs and ask and sys.stdin and sys.stdin.isatty() and sys.stderr.isatty():
        print("Delete and begin again? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise UserError("nothing was deleted. Leave --restart out to continue the run, or "
                            "name another --model_dir.")


def restart(model_dir: Path) -> None:
    """Removes the files of a run; `UserError` if another process trains in its directory."""
    if not (model_dir / SETTINGS_FILE).exists():
        return
    with only_process(model_dir):
        for name in _WRITTEN:
            path = model_dir / name
            remove_tree(path) if path.is_dir() else path.unlink(missing_ok=True)


class _Results(strict_json.OpenObject):
    checkpoint: Annotated[int, Ge(1)] | None = None


def checkpoint_of_results(model_dir: Path) -> int | None:
    """Returns the number of the checkpoint that results.json names; None if it names none."""
    path = model_dir / RESULTS_FILE
    if not path.exists():
        return None
    return strict_json.read(path, _Results, max_bytes=MAX_RESULT_BYTES, fix=(
        "restore it from a copy, or begin again with --restart.")).checkpoint


def read_identity(model_dir: Path) -> dict[str, Any]:
    """Returns what `open_run_dir` wrote; `UserError` without a run or for damaged settings."""
    # The file's values and the facts that are parsed; advice where there is no file.
    path, fix = model_dir / SETTINGS_FILE, "restore it or start a new --model_dir."
    is_hugging_face = (model_dir / "config.json").exists() or str(model_dir).startswith("hf://")
    advice = (f"{model_dir} is in Hugging Face's format. Convert it, and name the run: python -m "
              f"electra_tf.apps.tools.convert_checkpoint --from={model_dir} "
              f"--to={model_dir.name}_run --to_format=run" if is_hugging_face else
              f"no run was started in {model_dir}. Train first, or name another directory.")
    saved = strict_json.read(path, _Saved, max_bytes=_MAX_SETTING_BYTES, fix=fix,
                             absent=f"{path} does not exist: {advice}")
    strict_json.read(path, _Facts, max_bytes=_MAX_SETTING_BYTES, fix=fix)

    # Every setting has a value that the configuration accepts, of its own type.
    settings = settings_of(saved)
    is_finetuned = any(name.startswith(_TASK) for name in saved)
    defaults = FinetuningConfig() if is_finetuned else PretrainingConfig()
    sections = {"model", *(name.partition(".")[0] for name in settings)}
    try:
        config = override(defaults, settings)
        values = {name: value for name, value in flatten(config).items()
                  if name.partition(".")[0] in sections and name != "training.num_trials"}
        for name, value in values.items():
            received = settings.get(name, value)
            # No type is converted into another; 1 and 1.0 are both numbers of JSON.
            equal = received == value and isinstance(received, bool) == isinstance(value, bool)
            require(equal, name, f"of type {type(value).__name__}", received)
    except UserError as error:
        raise UserError(f"{path} is damaged, or of another version of this program: "
                        f"{str(error).rstrip('.')}; {fix}") from error

    # No setting is missing: a default of today may not be that of the run.
    if missing := sorted(values.keys() - saved.keys()):
        raise UserError(f"{path} lacks {', '.join(missing)}: the run was written by another "
                        "version of this program. Train again in a new --model_dir, or use the "
                        "version that began the run.")
    return saved


def refuse_differences(model_dir: Path, saved: RunConfig, identity: RunConfig) -> None:
    """Raises `UserError` that names every setting whose value isn't the saved one."""
    changed = _differences(saved, identity, saved.keys() | identity.keys())
    if changed:
        raise UserError(f"--model_dir={model_dir} holds a run with other settings or data "
                        f"({'; '.join(changed)}). To continue that run, give its values and files, "
                        "or leave out these settings, --model_size and --recipe. To train anew, "
                        "name a new --model_dir, or delete the run with --restart.")


def _differences(saved: RunConfig, identity: RunConfig, names: Iterable[str]) -> list[str]:
    """Returns the settings whose values differ, each with both values, as text."""
    def text(name: str, settings: RunConfig) -> str:
        value = one_line(str(settings.get(name, "no such setting")), 120)
        is_checksum = len(value) > 24 and "." not in name and " " not in value
        return f"{value[:12]}..." if is_checksum else value

    return [f"{name}: {text(name, saved)} in the run, {text(name, identity)} now"
            for name in sorted(names) if saved.get(name) != identity.get(name)]


@contextlib.contextmanager
def only_process(model_dir: Path) -> Iterator[None]:
    """Holds the lock of a run, or raises `UserError`; removes what killed processes left."""
    with atomic_file.lock_directory(
            model_dir, f"another process is training in --model_dir={model_dir}; wait for it or "
            "name another directory."):
        # What TensorFlow's writer, and writers of single files, left when they were killed.
        for unfinished in (model_dir / CHECKPOINTS).glob("ckpt-*_temp"):
            remove_tree(unfinished)
        for name in ("", *_WRITTEN):
            atomic_file.remove_unfinished(model_dir / name)
        yield
