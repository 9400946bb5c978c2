"""The kinds of tasks; loads tasks by name, with all their examples, and returns their recipes."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from electra_tf.config.finetuning import FinetuningConfig, finetuning_config
from electra_tf.config.model import ModelConfig
from electra_tf.config.overrides import override
from electra_tf.core.errors import UserError
from electra_tf.core.settings import require_one_of
from electra_tf.core.storage import Path
from electra_tf.tasks import files, glue, question_files, tfds_source
from electra_tf.tasks.files import Files
from electra_tf.tasks.kinds.base import TaskKind
from electra_tf.tasks.kinds.classification import Classification, Regression
from electra_tf.tasks.kinds.embeddings import SentenceEmbeddings
from electra_tf.tasks.kinds.multilabel import MultiLabel
from electra_tf.tasks.kinds.questions import QuestionAnswering
from electra_tf.tasks.kinds.tagging import Tagging
from electra_tf.tasks.task import Example, Kind, Task, TaskSpec

KINDS: Mapping[Kind, TaskKind] = {task.kind: task for task in (
    Classification(), Regression(), MultiLabel(), Tagging(), QuestionAnswering(),
    SentenceEmbeddings())}
"""A new kind is registered here and in `Kind`."""
CONLL = {"chunk": ("test",), "ner": ("valid", "test")}
"""Task -> files to score. CoNLL-2000 has no file for dev; its test is scored."""
NAMES = (*glue.TASKS, *question_files.BENCHMARKS, *CONLL, *Kind)
"""All names that `load` takes."""
DIFFERENCES: Mapping[str, Mapping[str, Any]] = {
    "rte": {"training.num_train_epochs": 10.0},
    "stsb": {"training.num_train_epochs": 10.0, "task.swap_pairs": True},
    "mrpc": {"task.swap_pairs": True},
    **dict.fromkeys(("squad", *question_files.MRQA), {"task.answerability": False}),
}
"""Task -> its settings besides its kind's (ELECTRA, appendix B, table 7)."""


def recipe(task: str, model: ModelConfig) -> FinetuningConfig:
    """Returns a task's default settings; rows are no longer than the encoder's positions."""
    kind = Kind.QUESTION_ANSWERING if task in question_files.BENCHMARKS else task
    changes = {**(KINDS[kind].recipe if kind in KINDS else {}), **DIFFERENCES.get(task, {})}
    length = "task.max_seq_length"
    if length in changes:
        changes[length] = min(changes[length], model.max_position_embeddings)
    return override(finetuning_config(model), changes)


def resolve(task_flag: Sequence[str]) -> tuple[str, ...]:
    """Returns the different tasks that `--task` names; `UserError` if they can't share a run."""
    names = tuple(dict.fromkeys(name for value in task_flag for name in (
        glue.TASKS if value == glue.ALL_TASKS else [value])))
    for name in names:
        require_one_of((glue.ALL_TASKS, *NAMES), "--task", name)
    if len(names) > 1 and not set(names) <= set(glue.TASKS):
        raise UserError("only GLUE's tasks can share a run; give one --task at a time. Received: "
                        f"{', '.join(task_flag)!r}")
    return names


def load(name: str, data_dir: Path | None, user_files: Files, *, from_tfds: bool = False) -> Task:
    """Reads a task, one of `NAMES`; `UserError` if a file is missing or unreadable.

    `data_dir` holds a benchmark's files, or those of TensorFlow Datasets (default if None). Files
    of `user_files` replace SQuAD's and MRQA's.
    """
    require_one_of(NAMES, "--task", name)
    # Flags that contradict each other or the task.
    file_flags = [f"--{split}" for split in ("train", "dev", "test") if getattr(user_files, split)]
    column_flags = [f"--{name}" for name, default in (
        ("text_columns", ("text",)), ("label_column", "label"), ("key_column", ""))
        if getattr(user_files, name) not in ((), "", default)]
    if user_files.dev_text_columns and name != Kind.SENTENCE_EMBEDDINGS:
        raise UserError("--dev_text_columns goes with --task=sentence_embeddings; leave it out.")
    if column_flags and (name in (*question_files.BENCHMARKS, Kind.QUESTION_ANSWERING) or (
            name not in KINDS and not file_flags and not user_files.unlabelled)):
        raise UserError(f"{column_flags[0]} selects a column of your own files; leave it out with "
                        f"--task={name}, whose files have fixed ones.")
    if from_tfds and file_flags:
        raise UserError(f"{file_flags[0]} names a file; leave it out with --data_source=tfds.")

    # Files of the user, also in the place of a benchmark of questions.
    if name in question_files.BENCHMARKS and not from_tfds:
        train, dev = (getattr(user_files, split) or [question_files.find(name, data_dir, split)]
                      for split in ("train", "dev"))
        return with_unlabelled(KINDS[Kind.QUESTION_ANSWERING].user_task(
            name, dataclasses.replace(user_files, train=train, dev=dev)), user_files)
    if name in KINDS and not from_tfds:
        _require(user_files.train, "train", name)
        return with_unlabelled(KINDS[name].user_task(name, user_files), user_files)
    if file_flags:
        raise UserError(f"--task={name} reads its files from --data_dir; {file_flags[0]} goes with "
                        f"SQuAD's and MRQA's tasks and with your own ({', '.join(Kind)}).")
    if not from_tfds:
        _require(data_dir, "data_dir", name)

    # The splits of a benchmark, from TensorFlow Datasets or from files of GLUE and CoNLL.
    glue_task, tagging = glue.TASKS.get(name), KINDS[Kind.TAGGING]
    dev_splits = glue_task.dev if glue_task else CONLL.get(name, ("dev",))
    test_splits = glue_task.tests if glue_task else ()
    splits: dict[str, list[Example]] = {}
    notes: list[str] = []
    for split in ("train", *dev_splits, *test_splits):
        if from_tfds:
            splits[split] = tfds_source.read(name, split, data_dir, notes)
        elif glue_task:
            splits[split] = glue.read_split(glue_task, data_dir, split, notes)
        else:
            splits[split] = tagging.read([data_dir / f"{split}.txt"], tagging.build_spec(name),
                                         labelled=True, notes=notes)
    dev = {split: splits[split] for split in dev_splits}
    test = {split: splits[split] for split in test_splits if splits[split]}

    # The labels of GLUE are fixed. Tags that only the scored files of CoNLL have are classes, too.
    spec = glue_task.spec if glue_task else KINDS[Kind.QUESTION_ANSWERING].build_spec(name)
    if name in CONLL:
        spec = tagging.build_spec(name, files.label_set([*itertools.chain(*splits.values())]))
        for split, examples in dev.items():
            source = split if from_tfds else data_dir / f"{split}.txt"
            files.check_labels(source, examples, files.label_set(splits["train"]), notes)
    return with_unlabelled(Task(spec=spec, train=splits["train"], dev=dev, test=test, notes=notes),
                           user_files)


def with_unlabelled(task: Task, user_files: Files) -> Task:
    """Returns a task with the texts that a teacher labels; a note counts labels that they have."""
    if not user_files.unlabelled:
        return task
    if task.spec.kind not in (Kind.CLASSIFICATION, Kind.MULTILABEL):
        raise UserError(f"--unlabelled is for --task={Kind.CLASSIFICATION} or {Kind.MULTILABEL}, "
                        "whose --teacher labels texts; leave it out.")
    kind, notes = KINDS[task.spec.kind], [*task.notes]
    spec = dataclasses.replace(user_files.select(task.spec), key_column="")
    examples = kind.training_examples(
        kind.read(user_files.unlabelled, spec, labelled=False, notes=notes), notes)
    if known := sum(getattr(example, "label", None) is not None for example in examples):
        notes.append(f"--unlabelled: labels of {known:,} of {len(examples):,} rows are not used")
    return dataclasses.replace(task, notes=notes, unlabelled=[
        dataclasses.replace(example, label=None) for example in examples])


def load_dev(spec: TaskSpec, data_dir: Path | None, user_files: Files, *,
             from_tfds: bool = False) -> Task:
    """Reads the splits that score a trained model, and notes; arguments and errors as for `load`.

    Labels that the model doesn't have are noted; `UserError` if it has none of them.
    """
    name, dev = spec.name, user_files.dev
    if not dev and name in question_files.BENCHMARKS and not from_tfds:
        dev = [question_files.find(name, data_dir, "dev")]
    if not dev and name not in KINDS:
        return load(name, data_dir, user_files, from_tfds=from_tfds)
    _require(dev, "dev", name)
    notes: list[str] = []
    examples = KINDS[spec.kind].read_dev(spec, dataclasses.replace(user_files, dev=dev), notes)
    if spec.labels:
        files.check_labels(", ".join(map(str, dev)), examples, spec.labels,
                           None if name in glue.TASKS else notes)
    return Task(spec=spec, train=(), dev={"dev": examples}, test={}, notes=notes)


def _require(value: Any, flag: str, task: str) -> None:
    if not value:
        raise UserError(f"--{flag} is needed for --task={task}.")
