"""A run's directory: the settings it was started with, and one process at a time.

    settings.json    what decides the result; a run that resumes must agree with it
    vocab.txt        the vocabulary of its records
    checkpoints/     newest checkpoints
    metrics.jsonl    one line per interval
    tensorboard/     event files
    loss_curves.png
"""

import contextlib
import dataclasses
import fcntl
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from electra_tf.atomic_file import make_directory, write_atomically, write_error
from electra_tf.command_line import UserError
from electra_tf.config.overrides import flatten, override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.sizes import pretraining_config
from electra_tf.records.manifest import Manifest

SETTINGS_FILE = "settings.json"
DATASET = "dataset"


def identity(config: PretrainingConfig, manifest: Manifest) -> dict[str, Any]:
    """Returns everything that decides a run's result, as plain values by name."""
    settings = {name: value for name, value in flatten(config).items()
                if not name.startswith("runtime.")}
    return settings | {DATASET: manifest.fingerprint}


def claim(model_dir: Path, config: PretrainingConfig, manifest: Manifest) -> None:
    """Makes the directory belong to this run, or checks that it already does.

    Raises:
        UserError: it belongs to a run with other settings (all are named), or isn't writable.
    """
    wanted = identity(config, manifest)
    if not (model_dir / SETTINGS_FILE).exists():
        make_directory(model_dir / "checkpoints")
        text = json.dumps(wanted, indent=2) + "\n"
        write_atomically(model_dir / SETTINGS_FILE, text.encode())
        return
    refuse_differences(model_dir, read_identity(model_dir), wanted)


def read_identity(model_dir: Path) -> dict[str, Any]:
    """Returns what `claim` wrote; `UserError` if there is no run."""
    path = model_dir / SETTINGS_FILE
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} can't be read ({error.strerror}): no run was started in "
                        f"--model_dir={model_dir}. Train first, or name another.") from error
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}. Restore it or start a new --model_dir."
                        ) from error


def saved_config(model_dir: Path, config: PretrainingConfig,
                 given: Collection[str]) -> PretrainingConfig:
    """Returns the configuration of the run in a directory, with `config`'s runtime settings.

    Args:
        model_dir: of the run.
        config: from the command line.
        given: names of settings, or of whole sections, that the command line sets itself.

    Raises:
        UserError: there is no run, or a given setting has another value there.
    """
    saved = read_identity(model_dir)
    asked = {name: value for name, value in flatten(config).items()
             if (name in given or name.split(".")[0] in given) and name in saved
             and name != "model.vocab_size" and value not in ("auto", 0)}
    refuse_differences(model_dir, {name: saved[name] for name in asked}, asked)
    settings = {name: value for name, value in saved.items() if name != DATASET}
    return dataclasses.replace(
        override(pretraining_config("small"), settings), runtime=config.runtime)


def refuse_differences(model_dir: Path, saved: Mapping[str, Any],
                       wanted: Mapping[str, Any]) -> None:
    """Raises `UserError` that names every setting whose value isn't the saved one."""
    changed = [name for name in sorted(saved.keys() | wanted.keys())
               if saved.get(name) != wanted.get(name)]
    if changed:
        lines = "; ".join(
            f"{name}: {_shown(saved.get(name))} then, {_shown(wanted.get(name))} now"
            for name in changed)
        raise UserError(f"--model_dir={model_dir} holds a run with other settings ({lines}). Give "
                        "the same settings to continue it, or a new --model_dir.")


@contextlib.contextmanager
def only_process(model_dir: Path) -> Iterator[None]:
    """Holds the directory's lock; `UserError` if another live process trains in it."""
    try:
        lock = (model_dir / ".lock").open("w", encoding="utf-8")
    except OSError as error:
        raise write_error(model_dir, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"another process is training in --model_dir={model_dir}; wait for it "
                            "or name another directory.") from None
        yield


def _shown(value: Any) -> str:
    text = str(value)
    return f"{text[:12]}..." if len(text) > 24 else text
