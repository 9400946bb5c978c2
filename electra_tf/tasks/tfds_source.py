"""Reads benchmarks from TensorFlow Datasets as the examples that their own files contain."""

import ssl
import types
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from electra_tf.core.command_line import pip_install
from electra_tf.core.errors import UserError, one_line
from electra_tf.core.storage import Path
from electra_tf.tasks import glue
from electra_tf.tasks.files import in_iob2
from electra_tf.tasks.question_files import MRQA, SQUAD
from electra_tf.tasks.task import Example, QuestionExample, TaggedExample, TextExample

SECONDS = 10.0
"""Longest wait for an address of a server; without a network the library retries for 212 s."""
_SERVERS = {"glue": "https://dl.fbaipublicfiles.com", "squad": "https://rajpurkar.github.io",
            "conll2003": "https://data.deepai.org", "blimp": "https://raw.githubusercontent.com"}
"""Data set -> the server that the library downloads its files from."""
_ELSEWHERE = {"chunk": "CoNLL-2000's train.txt and test.txt, "
                       "https://www.clips.uantwerpen.be/conll2000/chunking/",
              **dict.fromkeys(MRQA, "MRQA's folders train and dev, "
                              "https://github.com/mrqa/MRQA-Shared-Task-2019#datasets")}
"""Task -> files of a benchmark that is read from files only, and their source."""


def read(name: str, split: str, data_dir: Path | None, notes: list[str]) -> list[Example]:
    """Returns a split of a GLUE task, "squad", "squad2" or "ner"; splits are named like files.

    `notes` receives a line about the scheme of tags. `data_dir` is the library's directory, its
    default if None. A missing data set is downloaded; `UserError` if it can't be, after 10 s at
    most if its server does not answer.
    """
    # GLUE: texts with the words of labels, which its files number.
    if name in glue.TASKS:
        task = glue.TASKS[name]
        columns = ("premise", "hypothesis") if name == "mnli" else (
            task.inputs or task.spec.text_columns)
        labels = dict(zip(task.spec.label_words, task.spec.labels, strict=True))
        dataset, tfds_split = ("glue/ax", "test") if split == "diagnostic" else (
            f"glue/{name}", split.replace("dev", "validation"))
        return [TextExample(
            key=str(row["idx"]), texts=tuple(row[column] for column in columns),
            label=None if split in task.tests else labels.get(row["label"]) or float(row["label"]))
            for row in _rows(dataset, tfds_split, data_dir)]

    # SQuAD: the first answer is the one to train on.
    if name in SQUAD:
        examples = []
        for row in _rows(
                f"squad/{SQUAD[name]}", split.replace("dev", "validation"), data_dir):
            gold, starts = row["answers"]["text"], row["answers"]["answer_start"]
            examples.append(QuestionExample(
                key=row["id"], question=row["question"], context=row["context"], gold=tuple(gold),
                span=(int(starts[0]), int(starts[0]) + len(gold[0])) if gold else None,
                is_impossible=bool(row.get("is_impossible", False))))
        return examples

    # CoNLL-2003: tags in IOB2.
    if name == "ner":
        scheme_notes: list[str] = []
        examples = in_iob2(f"conll2003, {split}", [
            TaggedExample(key=str(number), tags=tuple(row["ner"]), words=tuple(row["tokens"]))
            for number, row in enumerate(_rows(
                "conll2003", split.replace("valid", "dev"), data_dir))], (), scheme_notes)
        notes += [f"{split}: {note}" for note in scheme_notes]
        return list(examples)
    known = ", ".join([*glue.TASKS, *SQUAD, "ner"])
    elsewhere = _ELSEWHERE.get(name, "--train names your own files")
    raise UserError(f"--data_source=tfds has {known}. Received: --task={name}. Name the directory "
                    f"of its files by --data_dir: {elsewhere}")


def read_blimp(data_dir: Path | None) -> Mapping[str, list[tuple[str, str]]]:
    """Returns the pairs (good, bad) of all 67 paradigms of BLiMP by name; errors as in `read`."""
    configs = _library("blimp").builder_cls("blimp").builder_configs
    return {name: [(row["sentence_good"], row["sentence_bad"])
                   for row in _rows(f"blimp/{name}", "train", data_dir)]
            for name in sorted(configs)}


def _rows(dataset: str, split: str, data_dir: Path | None) -> Iterable[Mapping[str, Any]]:
    """Yields rows of a data set, downloaded if needed: texts as `str`, classes as their names."""
    tfds = _library(dataset)
    try:
        # Downloads a data set only if its server answers within seconds.
        builder = tfds.builder(dataset, data_dir=data_dir)
        if not (builder.data_path / "dataset_info.json").exists():
            server = _SERVERS[dataset.partition("/")[0]]
            opener = urllib.request.build_opener()  # Through the environment's proxy, if any.
            try:
                opener.open(urllib.request.Request(server, method="HEAD"), timeout=SECONDS).close()
            except urllib.error.HTTPError as error:  # Every status counts as an answer.
                error.close()
            except OSError as error:
                reason = getattr(error, "reason", error)
                # The library that downloads may have other certificates than this interpreter.
                if not isinstance(reason, ssl.SSLError):
                    raise UserError(
                        f"TensorFlow Datasets' {dataset} can't be downloaded from {server}: "
                        f"{one_line(str(reason))}. It is not in {builder.data_path}; --data_dir "
                        "names other files.") from error
            builder.download_and_prepare()

        # The rows of the split.
        rows = builder.as_dataset(split=split, shuffle_files=False)
    except UserError:
        raise
    except (tfds.core.DatasetNotFoundError, tfds.download.DownloadError, OSError,
            ValueError) as error:
        raise UserError(f"TensorFlow Datasets has no {split} of {dataset} in "
                        f"{data_dir or 'its directory'} and can't get it: "
                        f"{one_line(str(error), 150)}") from error
    for row in tfds.as_numpy(rows):
        yield _decoded(builder.info.features, row)


def _decoded(feature: Any, value: Any) -> Any:
    """Returns a value with texts as `str` and classes by name, "" for an unknown one."""
    if isinstance(value, dict):
        return {name: _decoded(feature[name], part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return [_decoded(getattr(feature, "feature", feature), item) for item in value]
    if hasattr(feature, "int2str"):
        return feature.int2str(value) if value >= 0 else ""
    return value.decode() if isinstance(value, bytes) else value


def _library(dataset: str) -> types.ModuleType:
    try:
        import tensorflow_datasets as tfds  # Takes seconds.
    except ModuleNotFoundError as error:
        raise UserError(f"{dataset} needs TensorFlow Datasets ({error}). Install it with "
                        f"{pip_install('tfds')}, or name files by --data_dir.") from error
    return tfds
