"""Trains networks from Python, and predicts with fine-tuned models."""

import dataclasses
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from electra_tf.checkpoints.run_directory import SETTINGS_FILE, TRACKERS_FILE
from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.model import InitializationConfig
from electra_tf.config.overrides import name_fields, override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core import storage
from electra_tf.core.errors import UserError, shown
from electra_tf.core.settings import require_one_of
from electra_tf.export.atomic_directory import atomic_directory
from electra_tf.finetuning import loop as finetuning_loop
from electra_tf.finetuning.predict import TaskPredictor
from electra_tf.finetuning.results import Results
from electra_tf.finetuning.run import FinetuningRun, prepare_trained
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.pretraining import loop
from electra_tf.pretraining.evaluation import saved_scores
from electra_tf.tasks import in_memory, registry
from electra_tf.tasks.files import Files
from electra_tf.tasks.task import Kind, Task

PathName = str | os.PathLike[str]


class TaskModel:
    """A fine-tuned model, from `electra_tf.finetune` or `electra_tf.load_task`.

    Attributes:
        name (str): Name of the task.
        labels (tuple[str, ...]): Classes or tags; empty for regression, extractive QA and sentence
            embeddings.
        results (Results | None): The scores of all trials; `results.best.scores` are those of this
            model, split -> metric -> value. None for a converted model.
    """

    def __init__(self, run: FinetuningRun,
                 temporary: tempfile.TemporaryDirectory[str] | None = None):
        self.name, self.labels = run.spec.name, tuple(run.spec.label_words)
        self.results = Results.load(run.model_dir)
        self._run, self._temporary = run, temporary  # The directory is removed with the model.
        self._predictor = TaskPredictor(run)

    def predict(self, examples: Sequence[str] | Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """Returns a prediction for each example.

        Args:
            examples: Texts, or pairs of texts for a task that reads two, `[["a", "b"], ["c", "d"]]`
                for (a, b) and (c, d). Tagging takes texts with spaces between words, or lists of
                words; extractive QA (question, context) pairs. Texts longer than the run's
                `max_seq_length` are cut, with a warning, or read in windows if it was trained with
                `long_texts="windows"`. Of a data frame with several columns, those of the task are
                read; for QA "question" and "context".

        Returns:
            A dictionary for each, as `run_finetuning.py --mode=predict` writes it. "prediction" is
            a label, a list of labels (multilabel), a number, a tag for each of "words", an answer,
            the vector of a text (float32 [H]) or the cosine of a pair.

        Examples:
            >>> classifier.predict(["A fine film."])[0]["prediction"] in classifier.labels
            True
        """
        records = self._predictor.predict(in_memory.texts_of("examples", self._run.spec, examples))
        return [{name: value for name, value in record.items() if name != "key"}
                for record in records]

    def evaluate(self, examples: Any, labels: Any = None) -> dict[str, float]:
        """Returns the scores on labelled examples, metric -> value.

        Args:
            examples: Texts, pairs, a table, a data set or a file, as `train` of `finetune`.
            labels: The labels of texts or pairs.

        Examples:
            >>> 0 <= classifier.evaluate(["A fine film."], ["positive"])["accuracy"] <= 1
            True
        """
        run, spec = self._run, self._run.spec
        file: Any = storage.path(examples) if _is_file(examples) else in_memory.write(
            "examples", spec.kind, examples, labels,
            text_columns=_dev_columns(spec.kind, spec.text_columns),
            label_column=spec.label_column, key_column=spec.key_column)
        task = registry.load_dev(spec, None, Files(dev=[file]))
        split = run.encode(task.dev["dev"])
        for note in (*task.notes, *split.notes):
            warnings.warn(note, stacklevel=2)
        return dict(self._predictor.scored(split).scores)

    def save(self, directory: PathName) -> None:
        """Copies the run, which `load_task` and all commands read, to a new directory."""
        with atomic_directory(storage.path(directory)) as unfinished:
            source = storage.require_local(self._run.model_dir, "the model", "copy its directory")
            shutil.copytree(source, unfinished, ignore=shutil.ignore_patterns(TRACKERS_FILE))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the run's files."""
        directory = storage.require_local(self._run.model_dir, "the model", "copy its directory")
        return _of_files, ({str(path.relative_to(directory)): path.read_bytes()
                            for path in directory.rglob("*") if path.is_file()},)

    def save_pretrained(self, directory: PathName) -> None:
        """Writes a new directory in Hugging Face's format, which transformers reads."""
        with atomic_directory(storage.path(directory)) as unfinished:
            pretrained.write(
                pretrained.read(self._run.model_dir), unfinished, Format.HUGGING_FACE)


def _of_files(files: Mapping[str, bytes]) -> TaskModel:
    """Returns the model of a run's files, by name, in a temporary directory."""
    temporary = tempfile.TemporaryDirectory(prefix="electra-")
    directory = storage.path(temporary.name)
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    return TaskModel(prepare_trained(directory, {}), temporary)


def load_task(directory: PathName, *, text_columns: Sequence[str] = ()) -> TaskModel:
    """Returns the fine-tuned model of a run's directory, or of another checkpoint as for `load`.

    `text_columns` names the one or two texts that a model in Hugging Face's format reads, as
    `convert_checkpoint --text_columns`. Raises UserError if there is no fine-tuned model.
    """
    path, temporary = storage.path(directory), None
    if text_columns or not (path / SETTINGS_FILE).exists():
        checkpoint = pretrained.read(path, text_columns=text_columns)
        if checkpoint.task is None:
            raise UserError(f"{path} is not fine-tuned; `electra_tf.finetune` does this.")
        temporary = tempfile.TemporaryDirectory(prefix="electra-")
        path = storage.path(temporary.name)
        pretrained.write(checkpoint, path, Format.RUN)
    return TaskModel(prepare_trained(path, {}), temporary)


def pretrain(config: PretrainingConfig, *, data_dir: PathName, model_dir: PathName,
             init_checkpoint: PathName | None = None) -> dict[str, float | None]:
    """Pre-trains on records, or continues the run in `model_dir`, and scores the result.

    Args:
        config: All settings. `electra_tf.pretraining_config("small")` returns the paper's.
        data_dir: Directory of records that data_prep built.
        model_dir: Directory of the run; created if needed.
        init_checkpoint: Networks to begin with, as for `load`; new ones by default.

    Returns:
        The last evaluation on held-out examples: "step", and scores by name, None where a score
        is undefined. Empty if the records hold out no examples.
    """
    if not isinstance(config, PretrainingConfig):
        raise UserError("config must be a PretrainingConfig, such as "
                        f"electra_tf.pretraining_config('small'). Received: {shown(config)}")
    initial = None if init_checkpoint is None else pretrained.read(
        storage.path(init_checkpoint), with_task=False)
    run = loop.pretrain(config, str(data_dir), storage.path(model_dir), initial=initial)
    return saved_scores(run.model_dir)


def finetune(task: str, train: Any = None, labels: Any = None, *, init_checkpoint: PathName,
             model_dir: PathName | None = None, data_dir: PathName | None = None, dev: Any = None,
             text_columns: str | Sequence[str] = (), label_column: str = "label",
             dev_text_columns: Sequence[str] = (), teacher: PathName | None = None,
             unlabelled: Any = (), config: FinetuningConfig | None = None,
             **settings: Any) -> TaskModel:
    """Fine-tunes an encoder on one task, or continues the run in `model_dir`.

    Args:
        task: Benchmark, or kind of a task with your own data, as `run_finetuning.py --task`.
        train: Your training examples: texts, pairs of texts, or lists of words (tagging), each as
            a list or array with `labels` beside it; a data frame or a mapping of columns; a
            `tf.data.Dataset` of (text, label) or of dictionaries; a list of dictionaries, for
            extractive QA as in SQuAD's files; or the name of a file. Sentence embeddings take
            texts, pairs or triplets without labels, and for `dev` pairs with or without numbers.
        labels: A label, number, list of tags or, for multilabel, list of labels for each of the
            texts; a matrix of 0 and 1 also has several labels. Integers and booleans become text:
            predictions are "0" or "True".
        init_checkpoint: The pre-trained encoder, as for `load`.
        model_dir: Directory of the run; created if needed. By default it is temporary, and removed
            with the model; `save` keeps it.
        data_dir: Directory of a benchmark's files; by default TensorFlow Datasets provides them.
        dev: Your development examples: a tuple (texts, labels), or a table, data set or file as
            `train`; by default a part of `train` is held out.
        text_columns: Columns of tables and files with texts: one or two, up to three for sentence
            embeddings; by default "text", or "text_1" and so on.
        label_column: Column with labels.
        dev_text_columns: The two columns of `dev` with pairs, for sentence embeddings; by default
            those of `text_columns`.
        teacher: A fine-tuned classifier to learn from too, as `run_finetuning.py --teacher`.
        unlabelled: Further texts, or pairs, that the teacher labels.
        config: All settings; the task's recipe by default.
        **settings: Single settings by the names of their fields, such as `num_train_epochs=5.0`.

    Returns:
        The model of the best trial, with the scores of all trials as `results`.
    """
    # The encoder decides the recipe, which settings change.
    initial = pretrained.read(storage.path(init_checkpoint), encoder_only=True)
    config = config or registry.recipe(task, initial.config)
    config = override(config, name_fields(config, settings))
    if config.initialization != InitializationConfig():
        raise UserError("settings of initialization are for random initial weights, and "
                        f"{initial.source} has trained ones; leave them out.")

    # The task, and texts that only the teacher labels.
    columns = (text_columns,) if isinstance(text_columns, str) else tuple(text_columns)
    user_files = Files(
        text_columns=columns, label_column=label_column, dev_text_columns=tuple(dev_text_columns),
        num_folds=config.training.num_folds)
    loaded = _load(task, train, labels, dev, data_dir, user_files)
    if texts := in_memory.texts_of("unlabelled", loaded.spec, unlabelled):
        kind = registry.KINDS[loaded.spec.kind]
        examples = [kind.example(loaded.spec, str(n), text) for n, text in enumerate(texts)]
        loaded = dataclasses.replace(loaded, unlabelled=kind.training_examples(examples, []))
    # The run, in a temporary directory by default.
    temporary = None
    if model_dir is None:
        temporary = tempfile.TemporaryDirectory(prefix="electra-")
        model_dir = temporary.name
    directory = storage.path(model_dir)
    run = finetuning_loop.prepare(config, loaded, initial.text, directory,
                                  teacher=None if teacher is None else storage.path(teacher))
    finetuning_loop.train(run, loaded, initial)
    return TaskModel(prepare_trained(directory, {}), temporary)


def _load(task: str, train: Any, labels: Any, dev: Any, data_dir: PathName | None,
          user_files: Files) -> Task:
    """Returns the task of files or of data in memory; arguments as for `finetune`."""
    # Files or data in memory, but not both.
    is_file = train is None or (_is_file(train) and labels is None)
    if not is_file and isinstance(train, str | bytes):
        raise UserError("train must be a list of texts if labels is given. Received: "
                        f"{shown(train)}")
    if data_dir is not None and not is_file:
        raise UserError("data_dir is for the files of a benchmark; leave it out with data in "
                        "memory.")
    if dev is not None and _is_file(dev) != is_file:
        raise UserError("train and dev must both be files, or both be data in memory.")
    files: dict[str, Any] = {split: [storage.path(data)] for split, data in (
        ("train", train), ("dev", dev)) if is_file and data is not None}

    # Data in memory become tables, whose columns of texts dev shares.
    if not is_file:
        require_one_of(registry.KINDS, "task, for data in memory,", task)
        kind, label = Kind(task), user_files.label_column
        file = in_memory.write("train", kind, train, labels, label_column=label,
                               text_columns=user_files.text_columns)
        files = {"train": [file], "text_columns": file.text_columns}
        if dev is not None:
            files["dev"] = [in_memory.write("dev", kind, dev, label_column=label, text_columns=(
                user_files.dev_text_columns or _dev_columns(task, file.text_columns)))]
    return registry.load(
        task, None if data_dir is None else storage.path(data_dir),
        dataclasses.replace(user_files, **files),
        from_tfds=data_dir is None and train is None and task not in registry.KINDS)


def _dev_columns(task: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the columns of texts to score: those of training, but pairs for embeddings."""
    if task != Kind.SENTENCE_EMBEDDINGS:
        return columns
    return columns[:2] if len(columns) > 1 else ()


def _is_file(data: Any) -> bool:
    return isinstance(data, str | os.PathLike)
