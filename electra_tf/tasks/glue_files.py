"""GLUE's files as the benchmark publishes them, and those that its server takes.

https://gluebenchmark.com/submit says what: one zip of them, each "index<TAB>prediction".
"""

import math
from collections.abc import Sequence

from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks.examples import TextExample
from electra_tf.tasks.glue import GlueTask, label_words
from electra_tf.tasks.tables import TableRow, read_rows


def read_split(task: GlueTask, data_dir: Path, split: str) -> list[TextExample]:
    """Returns all examples of a file of the benchmark.

    Args:
        task: a value of `TASKS`.
        data_dir: holds the tasks' directories, or the files themselves.
        split: "train", one of `task.dev`, or the first of a pair of `task.tests`.

    Raises:
        UserError: no such file, a damaged row, or a label outside the label set; with the line.
    """
    is_test = any(split == name for name, _ in task.tests)
    path = _find(task, data_dir, split)
    columns = None if is_test or not task.headerless else task.headerless
    return [_example(task, row, is_test) for row in read_rows(path, columns=columns)]


def has_split(task: GlueTask, data_dir: Path, split: str) -> bool:
    """Tells whether a file is there; tests are needed for submitting only."""
    return any(path.exists() for path in _candidates(task, data_dir, split))


def submission(task: GlueTask, split: str, keys: Sequence[str],
               predictions: Sequence[str | float]) -> tuple[str, str]:
    """Returns name and content of the file that the benchmark's server takes.

    Args:
        task: a value of `TASKS`.
        split: the first of a pair of `task.tests`.
        keys: of the examples, in the file's order.
        predictions: as people read them; numbers for regression, clipped to the scale.
    """
    name = dict(task.tests)[split]
    # The server takes what the files hold.
    written = dict(zip(label_words(task.name, task.labels), task.labels, strict=True))
    words = [written[word] if isinstance(word, str) else f"{min(max(word, 0.0), task.largest):.3f}"
             for word in predictions]
    lines = ["index\tprediction",
             *(f"{key}\t{word}" for key, word in zip(keys, words, strict=True))]
    return name, "\n".join(lines) + "\n"


def _example(task: GlueTask, row: TableRow, is_test: bool) -> TextExample:
    if is_test:
        return TextExample(key=row.text(task.key), texts=tuple(map(row.text, task.texts)))
    return TextExample(key=str(row.line), texts=tuple(map(row.text, task.texts)),
                       label=_label(task, row))


def _label(task: GlueTask, row: TableRow) -> str | float:
    word = row.text(task.label)
    if task.labels:
        if word not in task.labels:
            raise row.error(f"{task.label!r} must be one of {', '.join(task.labels)}. "
                            f"Received: {word!r}")
        return word
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not 0.0 <= number <= task.largest:
        raise row.error(f"{task.label!r} must be a number from 0 to {task.largest:g}. "
                        f"Received: {word!r}")
    return number


def _find(task: GlueTask, data_dir: Path, split: str) -> Path:
    candidates = _candidates(task, data_dir, split)
    for path in candidates:
        if path.exists():
            return path
    raise UserError(f"no {candidates[0]}; --data_dir must hold GLUE's files in their original "
                    "layout; some of the tasks can be named alone, with commas between them.")


def _candidates(task: GlueTask, data_dir: Path, split: str) -> list[Path]:
    """In the task's directory; beside it; or, as the diagnostic set comes, in one of its own."""
    return [data_dir / task.directory / f"{split}.tsv", data_dir / f"{split}.tsv",
            data_dir / split / f"{split}.tsv"]
