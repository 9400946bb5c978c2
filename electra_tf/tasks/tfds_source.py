"""GLUE and SQuAD from TensorFlow Datasets, as the examples that their own files would give."""

from collections.abc import Iterator, Mapping
from typing import Any

from electra_tf.platform import network
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks import glue
from electra_tf.tasks.examples import Answer, QuestionExample, TextExample

_SQUAD = {"squad": "squad/v1.1", "squad2": "squad/v2.0"}
_SERVERS = {"glue": "https://dl.fbaipublicfiles.com", "squad": "https://rajpurkar.github.io"}
"""Data set -> the server that TensorFlow Datasets downloads its files from. Without a network the
library retries each file ten times, for 212 s in all."""
_TEXTS = {"mrpc": ("sentence1", "sentence2"), "mnli": ("premise", "hypothesis")}
"""Columns of the texts where their names differ from those in the files."""
_SPLITS = {"dev": "validation", "dev_matched": "validation_matched",
           "dev_mismatched": "validation_mismatched"}


def read(name: str, data_dir: Path | None) -> dict[str, Any]:
    """Returns "train", "dev" and "test", as in `Task`, of a task of GLUE, "squad" or "squad2".

    `data_dir` is the directory of TensorFlow Datasets, its default if None. A missing data set is
    downloaded; `UserError` if it can't be, after 10 s at most if its server does not answer.
    """
    if name in _SQUAD:
        train, dev = ([_question(row) for row in _rows(_SQUAD[name], split, data_dir)]
                      for split in ("train", "validation"))
        return {"train": train, "dev": {"dev": dev}, "test": {}}
    if name not in glue.TASKS:
        raise UserError(f"--data_source=tfds has {', '.join([*glue.TASKS, *_SQUAD])}. Received: "
                        f"--task={name}. Name the directory of its files by --data_dir; "
                        "docs/how_to/fine_tuning.md has the addresses.")
    task = glue.TASKS[name]

    def examples(split: str, labelled: bool = True) -> list[TextExample]:
        dataset, theirs = ("glue/ax", "test") if split == "diagnostic" else (
            f"glue/{name}", _SPLITS.get(split, split))
        return [_text(task, row, labelled) for row in _rows(dataset, theirs, data_dir)]

    return {"train": examples("train"), "dev": {split: examples(split) for split in task.dev},
            "test": {split: examples(split, False) for split, _ in task.tests}}


def _text(task: glue.GlueTask, row: Mapping[str, Any], labelled: bool) -> TextExample:
    label = None
    if labelled and task.labels:
        # GLUE's files have the class's number where its name isn't in the label set.
        label = row["label"] if row["label"] in task.labels else task.labels[row["label/index"]]
    elif labelled:
        label = float(row["label"])
    return TextExample(key=str(row["idx"]), label=label, texts=tuple(
        row[column] for column in _TEXTS.get(task.name, task.texts)))


def _question(row: Mapping[str, Any]) -> QuestionExample:
    answers = tuple(
        Answer(text=text.decode(), start=int(start)) for text, start in zip(
            row["answers"]["text"], row["answers"]["answer_start"], strict=True))
    return QuestionExample(
        key=row["id"], question=row["question"], context=row["context"], answers=answers,
        is_impossible=bool(row.get("is_impossible", False)))


def _rows(dataset: str, split: str, data_dir: Path | None) -> Iterator[Mapping[str, Any]]:
    """Yields rows: texts as `str`, classes as their names and, under "/index", numbers."""
    try:
        import tensorflow_datasets as tfds  # Takes seconds.
    except ModuleNotFoundError as error:
        raise UserError(f"{dataset} needs TensorFlow Datasets ({error}). Install it with "
                        "pip install 'electra-tf[tfds]', or name files by --data_dir.") from error
    try:
        builder = tfds.builder(dataset, data_dir=data_dir)
        if not (builder.data_path / "dataset_info.json").exists():
            network.require_reachable(
                _SERVERS[dataset.partition("/")[0]], f"TensorFlow Datasets' {dataset}",
                f"It is not in {builder.data_path}; --data_dir names other files.")
            builder.download_and_prepare()
    except UserError:
        raise
    except (tfds.core.DatasetNotFoundError, tfds.download.DownloadError, OSError,
            ValueError) as error:
        reason = " ".join(str(error).split())[:150]
        raise UserError(f"TensorFlow Datasets has no {dataset} in {data_dir or 'its directory'} "
                        f"and can't get it: {reason}") from error
    for row in tfds.as_numpy(builder.as_dataset(split=split, shuffle_files=False)):
        found: dict[str, Any] = {}
        for name, value in row.items():
            feature = builder.info.features[name]
            if isinstance(feature, tfds.features.ClassLabel):
                found[f"{name}/index"] = int(value)
                value = feature.int2str(int(value)) if value >= 0 else ""
            found[name] = value.decode() if isinstance(value, bytes) else value
        yield found
