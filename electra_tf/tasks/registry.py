"""Loads tasks by name, with all their examples."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks import files, glue, minimal_pairs, mrqa, tfds_source
from electra_tf.tasks.examples import Example, Kind
from electra_tf.tasks.files import Files, Paths
from electra_tf.tasks.kinds.registry import KINDS
from electra_tf.tasks.mrqa import MRQA, QUESTIONS
from electra_tf.tasks.squad import SQUAD
from electra_tf.tasks.tagging import CONLL, read_conll
from electra_tf.tasks.task import Task, TaskSpec


def names() -> tuple[str, ...]:
    """Returns all names that `load` takes."""
    return (*glue.TASKS, *QUESTIONS, *CONLL, *Kind)


def resolved(asked: Sequence[str]) -> tuple[str, ...]:
    """Returns the tasks that the values of `--task` name.

    Raises:
        UserError: no name, an unknown one, one twice, or several that aren't GLUE's.
    """
    known = [name for one in asked for name in (glue.TASKS if one == glue.ALL else [one])]
    unknown = [name for name in known if name not in names()]
    if unknown or not known:
        raise UserError(f"--task must be one of {glue.ALL}, {', '.join(names())}, or "
                        f"{minimal_pairs.NAME} or {glue.AVERAGE} alone. "
                        f"Received: {', '.join(asked)!r}")
    if len(set(known)) < len(known):
        raise UserError(f"--task names a task twice. Received: {', '.join(asked)!r}")
    if len(known) > 1 and not set(known) <= set(glue.TASKS):
        raise UserError("only GLUE's tasks can share a run; give one --task at a time. Received: "
                        f"{', '.join(asked)!r}")
    return tuple(known)


def load(name: str, data_dir: Path | None, own: Files, *, from_tfds: bool = False) -> Task:
    """Reads a task.

    Args:
        name: one of `names()`; a kind stands for the user's own files.
        data_dir: directory of a benchmark's files, or of TensorFlow Datasets (default if None).
        own: files that replace a benchmark's, or the user's own.
        from_tfds: read a benchmark from TensorFlow Datasets.

    Raises:
        UserError: an unknown name, or a file that is missing or unreadable.
    """
    resolved([name])
    given = [f"--{split}" for split in ("train", "dev", "test") if getattr(own, split)]
    if from_tfds:
        return _tfds(name, data_dir, given)
    if name in set(Kind):
        _required(own.train, "train", name)
        return KINDS[Kind(name)].own_task(name, own)
    if name in QUESTIONS:
        train, dev = (getattr(own, split) or _question_file(
            name, _required(data_dir, "data_dir", name), split) for split in ("train", "dev"))
        return KINDS[Kind.QUESTION_ANSWERING].own_task(
            name, dataclasses.replace(own, train=train, dev=dev))
    if given:
        raise UserError(f"--task={name} reads its files from --data_dir; {given[0]} goes with "
                        f"SQuAD's and MRQA's tasks and with your own ({', '.join(Kind)}).")
    if name in glue.TASKS:
        return _glue(glue.TASKS[name], _required(data_dir, "data_dir", name))
    train, *others = (_required(data_dir, "data_dir", name) / file for file in CONLL[name])
    return _tagging(name, read_conll(train), {path.stem: read_conll(path) for path in others})


def load_dev(spec: TaskSpec, data_dir: Path | None, own: Files, *,
             from_tfds: bool = False) -> Mapping[str, Sequence[Example]]:
    """Reads the splits that score a trained model; arguments and errors as for `load`."""
    if own.dev is None and spec.name in MRQA and not from_tfds:  # Training files are large.
        own = dataclasses.replace(own, dev=mrqa.find(
            spec.name, _required(data_dir, "data_dir", spec.name), "dev"))
    if own.dev is None and spec.name not in set(Kind):
        return load(spec.name, data_dir, own, from_tfds=from_tfds).dev
    examples = read_file(spec, _required(own.dev, "dev", spec.name), labelled=True)
    if spec.labels:
        files.require_known_labels(own.dev, examples, spec.labels)
    return {"dev": examples}


def read_file(spec: TaskSpec, given: Paths, *, labelled: bool) -> Sequence[Example]:
    """Reads a file of a task's examples, or several as one.

    Args:
        spec: names the columns; the file's labels may be numbers or words, as GLUE has both.
        given: the file or files, in a format of the task's kind.
        labelled: False needs no labels, and leaves unknown ones out.

    Raises:
        UserError: the file can't be read, or lacks a column.
    """
    return KINDS[spec.kind].read(given, spec, labelled=labelled)


def _glue(task: glue.GlueTask, data_dir: Path) -> Task:
    return Task(
        spec=TaskSpec.of_glue(task), train=glue.read_split(task, data_dir, "train"),
        dev={split: glue.read_split(task, data_dir, split) for split in task.dev},
        test={split: glue.read_split(task, data_dir, split) for split, _ in task.tests
              if glue.has_split(task, data_dir, split)})


def _question_file(name: str, data_dir: Path, split: str) -> Path:
    if name in SQUAD:
        return data_dir / f"{split}-{SQUAD[name]}.json"
    return mrqa.find(name, data_dir, split)


def _tagging(name: str, train: Sequence[Example], dev: Mapping[str, Sequence[Example]]) -> Task:
    """Returns a benchmark's task; tags that only occur in dev are counted as errors."""
    labels = files.label_set(itertools.chain(train, *dev.values()))
    return Task(spec=KINDS[Kind.TAGGING].spec(name, labels), train=train, dev=dev, test={})


def _tfds(name: str, data_dir: Path | None, given: Sequence[str]) -> Task:
    if given:
        raise UserError(f"{given[0]} names a file; leave it out with --data_source=tfds.")
    splits = tfds_source.read(name, data_dir)
    if name in glue.TASKS:
        return Task(spec=TaskSpec.of_glue(glue.TASKS[name]), **splits)
    if name in CONLL:
        return _tagging(name, splits["train"], splits["dev"])
    return Task(spec=KINDS[Kind.QUESTION_ANSWERING].spec(name), **splits)


def _required(value: Path | None, flag: str, task: str) -> Path:
    if value is None:
        raise UserError(f"--{flag} is needed for --task={task}.")
    return value
