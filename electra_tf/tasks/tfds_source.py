"""Benchmarks from TensorFlow Datasets, as the examples that their own files would give."""

import ssl
import types
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from typing import Any

from electra_tf.platform.errors import UserError, one_line
from electra_tf.platform.storage import Path
from electra_tf.tasks import glue
from electra_tf.tasks.examples import Answer, QuestionExample, TaggedExample, TextExample
from electra_tf.tasks.files import to_iob2
from electra_tf.tasks.question_files import MRQA

_SQUAD = {"squad": "squad/v1.1", "squad2": "squad/v2.0"}
_SERVERS = {"glue": "https://dl.fbaipublicfiles.com", "squad": "https://rajpurkar.github.io",
            "conll2003": "https://data.deepai.org", "blimp": "https://raw.githubusercontent.com"}
"""Data set -> the server that TensorFlow Datasets downloads its files from. Without a network the
library retries each file ten times, for 212 s in all."""
ANSWER_SECONDS = 10.0
"""Longest wait for one address of a server."""
_TEXTS = {"mrpc": ("sentence1", "sentence2"), "mnli": ("premise", "hypothesis")}
"""Columns of the texts where their names differ from those in the files."""
_SPLITS = {"dev": "validation", "dev_matched": "validation_matched",
           "dev_mismatched": "validation_mismatched"}
_ELSEWHERE = {"chunk": "CoNLL-2000's train.txt and test.txt, "
                       "https://www.clips.uantwerpen.be/conll2000/chunking/",
              **dict.fromkeys(MRQA, "MRQA's folders train and dev, "
                              "https://github.com/mrqa/MRQA-Shared-Task-2019#datasets")}
"""Task -> files of a benchmark that is read from files only, and their source."""


def read(name: str, data_dir: Path | None) -> dict[str, Any]:
    """Returns "train", "dev" and "test", as in `Task`, of GLUE, "squad", "squad2" or "ner".

    `data_dir` is the directory of TensorFlow Datasets, its default if None. A missing data set is
    downloaded; `UserError` if it can't be, after 10 s at most if its server does not answer.
    """
    if name in glue.TASKS:
        return _glue(glue.TASKS[name], data_dir)
    if name in _SQUAD:
        train, dev = (tuple(map(_question, _rows(_SQUAD[name], split, data_dir)))
                      for split in ("train", "validation"))
        return {"train": train, "dev": {"dev": dev}, "test": {}}
    if name == "ner":
        splits = {split: [_sentence(str(number), row) for number, row in enumerate(
            _rows("conll2003", split, data_dir))] for split in ("train", "dev", "test")}
        return {"train": splits.pop("train"), "dev": splits, "test": {}}
    known = ", ".join([*glue.TASKS, *_SQUAD, "ner"])
    raise UserError(f"--data_source=tfds has {known}. Received: --task={name}. Name the directory "
                    f"of its files by --data_dir: {_ELSEWHERE.get(name, '--train names your own')}")


def read_blimp(data_dir: Path | None) -> Mapping[str, list[tuple[str, str]]]:
    """Returns all 67 paradigms of BLiMP in the order of their names; see `read`."""
    configs = _library("blimp").builder_cls("blimp").builder_configs
    return {name: [(row["sentence_good"], row["sentence_bad"])
                   for row in _rows(f"blimp/{name}", "train", data_dir)]
            for name in sorted(configs)}


def _glue(task: glue.GlueTask, data_dir: Path | None) -> dict[str, Any]:
    def examples(split: str, labelled: bool) -> list[TextExample]:
        dataset, theirs = ("glue/ax", "test") if split == "diagnostic" else (
            f"glue/{task.name}", _SPLITS.get(split, split))
        return [_text(task, row, labelled) for row in _rows(dataset, theirs, data_dir)]

    return {"train": examples("train", True),
            "dev": {split: examples(split, True) for split in task.dev},
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


def _sentence(key: str, row: Mapping[str, Any]) -> TaggedExample:
    return TaggedExample(key=key, words=tuple(word.decode() for word in row["tokens"]),
                         tags=tuple(to_iob2(list(row["ner"]))))


def _rows(dataset: str, split: str, data_dir: Path | None) -> Iterable[Mapping[str, Any]]:
    """Yields rows: texts as `str`, classes as their names and, under "/index", numbers."""
    tfds, builder = _library(dataset), _prepared(dataset, data_dir)
    if split not in builder.info.splits:
        raise UserError(f"{dataset} has no split {split!r}; it has "
                        f"{', '.join(builder.info.splits)}.")
    classes = tfds.features.ClassLabel
    for row in tfds.as_numpy(builder.as_dataset(split=split, shuffle_files=False)):
        found: dict[str, Any] = {}
        for name, value in row.items():
            feature = builder.info.features[name]
            if isinstance(feature, classes):
                found[f"{name}/index"] = int(value)
                value = feature.int2str(int(value)) if value >= 0 else ""
            elif isinstance(getattr(feature, "feature", None), classes):
                value = [feature.feature.int2str(int(one)) for one in value]
            elif isinstance(value, bytes):
                value = value.decode()
            found[name] = value
        yield found


def _library(dataset: str) -> types.ModuleType:
    try:
        import tensorflow_datasets as tfds  # Takes seconds.
    except ModuleNotFoundError as error:
        raise UserError(f"{dataset} needs TensorFlow Datasets ({error}). Install it with "
                        "pip install 'electra-tf[tfds]', or name files by --data_dir.") from error
    return tfds


def _prepared(dataset: str, data_dir: Path | None) -> Any:
    """Returns the builder of a data set that is on disk, downloaded if needed."""
    tfds = _library(dataset)
    try:
        builder = tfds.builder(dataset, data_dir=data_dir)
        if not (builder.data_path / "dataset_info.json").exists():
            _require_reachable(
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
    return builder


def _require_reachable(url: str, wanted: str, fix: str) -> None:
    """Raises `UserError` unless a server answers, with any status, directly or through the proxy.

    `wanted` is the thing to download; `fix` says what to do without it.
    """
    opener = urllib.request.build_opener()  # With the proxies of the environment as it is now.
    try:
        opener.open(urllib.request.Request(url, method="HEAD"), timeout=ANSWER_SECONDS).close()
    except urllib.error.HTTPError as error:
        error.close()
    except OSError as error:
        reason = getattr(error, "reason", error)
        # The library that downloads may have other certificates than this interpreter.
        if not isinstance(reason, ssl.SSLError):
            raise UserError(f"{wanted} can't be downloaded from {url}: {one_line(str(reason))}. "
                            f"{fix}") from error
