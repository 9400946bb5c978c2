"""Loads tasks by name, with all their examples."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks import files, glue, question_files, tfds_source
from electra_tf.tasks.examples import Example, Kind
from electra_tf.tasks.files import Files, Paths
from electra_tf.tasks.kinds.registry import KINDS
from electra_tf.tasks.task import Task, TaskSpec

CONLL = {"chunk": ("train.txt", "test.txt"), "ner": ("train.txt", "valid.txt", "test.txt")}
"""Task -> files to train on and to score. CoNLL-2000 has no development file: its test file is
scored."""
NAMES = (*glue.TASKS, *question_files.BENCHMARKS, *CONLL, *Kind)
"""All names that `load` takes."""


def resolved(asked: Sequence[str]) -> tuple[str, ...]:
    """Returns the tasks that `--task` names; `UserError` if it can't be so."""
    known = [name for one in asked for name in (glue.TASKS if one == glue.ALL else [one])]
    if not known or not set(known) <= set(NAMES):
        raise UserError(f"--task must be one of {glue.ALL}, {', '.join(NAMES)}. "
                        f"Received: {', '.join(asked)!r}")
    if len(set(known)) < len(known):
        raise UserError(f"--task names a task twice. Received: {', '.join(asked)!r}")
    if len(known) > 1 and not set(known) <= set(glue.TASKS):
        raise UserError("only GLUE's tasks can share a run; give one --task at a time. Received: "
                        f"{', '.join(asked)!r}")
    return tuple(known)


def load(name: str, data_dir: Path | None, own: Files, *, from_tfds: bool = False) -> Task:
    """Reads a task, one of `NAMES`; `UserError` if a file is missing or unreadable.

    `data_dir` holds a benchmark's files, or those of TensorFlow Datasets (default if None). `own`
    has files that replace SQuAD's or MRQA's, or the user's own.
    """
    resolved([name])
    given = [f"--{split}" for split in ("train", "dev", "test") if getattr(own, split)]
    if from_tfds and given:
        raise UserError(f"{given[0]} names a file; leave it out with --data_source=tfds.")
    if from_tfds:
        splits = tfds_source.read(name, data_dir)
        return Task(spec=_spec(name, splits), **splits)
    if name in set(Kind):
        _required(own.train, "train", name)
        return KINDS[Kind(name)].own_task(name, own)
    if name in question_files.BENCHMARKS:
        train, dev = (getattr(own, split) or question_files.find(
            name, _required(data_dir, "data_dir", name), split) for split in ("train", "dev"))
        return KINDS[Kind.QUESTION_ANSWERING].own_task(
            name, dataclasses.replace(own, train=train, dev=dev))
    if given:
        raise UserError(f"--task={name} reads its files from --data_dir; {given[0]} goes with "
                        f"SQuAD's and MRQA's tasks and with your own ({', '.join(Kind)}).")
    read = _glue if name in glue.TASKS else _conll
    splits = read(name, _required(data_dir, "data_dir", name))
    return Task(spec=_spec(name, splits), **splits)


def load_dev(spec: TaskSpec, data_dir: Path | None, own: Files, *,
             from_tfds: bool = False) -> Mapping[str, Sequence[Example]]:
    """Reads the splits that score a trained model; arguments and errors as for `load`."""
    name, dev = spec.name, own.dev
    if dev is None and name in question_files.MRQA and not from_tfds:  # Training files are large.
        dev = question_files.find(name, _required(data_dir, "data_dir", name), "dev")
    if dev is None and name not in set(Kind):
        return load(name, data_dir, own, from_tfds=from_tfds).dev
    examples = read_file(spec, _required(dev, "dev", name), labelled=True)
    if spec.labels:
        files.require_known_labels(dev, examples, spec.labels)
    return {"dev": examples}


def read_file(spec: TaskSpec, given: Paths, *, labelled: bool) -> Sequence[Example]:
    """Reads a file or several; labels are words, or numbers as in GLUE. `UserError` if it can't."""
    return KINDS[spec.kind].read(given, spec, labelled=labelled)


def _glue(name: str, data_dir: Path) -> dict[str, Any]:
    task = glue.TASKS[name]
    return {"train": glue.read_split(task, data_dir, "train"),
            "dev": {split: glue.read_split(task, data_dir, split) for split in task.dev},
            "test": {split: glue.read_split(task, data_dir, split) for split, _ in task.tests
                     if glue.find_split(task, data_dir, split)}}


def _conll(name: str, data_dir: Path) -> dict[str, Any]:
    train, *others = (data_dir / file for file in CONLL[name])
    return {"train": files.read_conll(train), "test": {},
            "dev": {path.stem: files.read_conll(path) for path in others}}


def _spec(name: str, splits: Mapping[str, Any]) -> TaskSpec:
    """Returns a benchmark's specification; tags that only occur in dev are never predicted."""
    if name in glue.TASKS:
        return TaskSpec.of_glue(glue.TASKS[name])
    if name in CONLL:
        return KINDS[Kind.TAGGING].spec(name, files.label_set(
            itertools.chain(splits["train"], *splits["dev"].values())))
    return KINDS[Kind.QUESTION_ANSWERING].spec(name)


def _required(value: Any, flag: str, task: str) -> Any:
    if value is None:
        raise UserError(f"--{flag} is needed for --task={task}.")
    return value
