"""Makes files of examples that a program has in memory, which tasks read as those on a disk."""

import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, BinaryIO

import numpy as np
import tensorflow as tf

from electra_tf.core.errors import UserError, shown
from electra_tf.tasks import files
from electra_tf.tasks.labels import are_multi_hot
from electra_tf.tasks.tables import is_label_name
from electra_tf.tasks.task import Kind, TaskSpec

_COLUMNS = {1: ("text",), 2: ("text_1", "text_2"), 3: ("text_1", "text_2", "text_3")}
"""Number of texts of an example -> names of their columns, if the user gives none."""


class MemoryFile:
    """A file in memory with the part of a path's interface that readers use; see `write`."""

    def __init__(self, title: str, suffix: str, content: bytes, text_columns: tuple[str, ...]):
        self.name, self.suffix, self.text_columns = f"{title}{suffix}", suffix, text_columns
        self._title, self._content = title, content

    def __str__(self) -> str:
        return self._title

    def open(self, mode: str) -> BinaryIO:
        """Opens it for reading."""
        return io.BytesIO(self._content)


def write(title: str, kind: Kind, data: Any, labels: Any = None, *,
          text_columns: Sequence[str] = (), label_column: str = "label",
          key_column: str = "") -> MemoryFile:
    """Returns examples as a file that messages call `title`; `UserError` for unreadable data.

    `data` and `labels` have the forms that `electra_tf.finetune` takes; all examples are labelled,
    but for sentence embeddings. The first example decides the columns of texts by default.
    Examples are numbered if `data` does not have the column `key_column`.
    """
    # A tuple or a data set becomes examples and labels. Questions have a format of their own.
    is_embedding = kind is Kind.SENTENCE_EMBEDDINGS
    if kind is not Kind.TAGGING and (labels is not None or (
            is_embedding and isinstance(data, tuple)
            and all(isinstance(text, str) for column in data[1:] for text in column))):
        refuse_columns(data)
    if labels is None and isinstance(data, tuple) and len(data) == 2:
        data, labels = data
    if isinstance(data, tf.data.Dataset):
        data = _elements(title, data, kind, label_column)
        if data and isinstance(data[0], list):
            data, labels = zip(*data, strict=True)
    if kind is Kind.QUESTION_ANSWERING:
        return _question_file(title, data, labels)

    # A table of columns becomes a list of rows, a dictionary each.
    names = getattr(data, "columns", data.keys() if isinstance(data, Mapping) else None)
    if names is not None and (labels is None or len(names) > 1):
        columns = {str(name): to_list(data[name], f"{title}[{name!r}]") for name in names}
        _require_equal_lengths(title, columns)
        data = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    rows = to_list(data, title)
    if not rows:
        raise UserError(f"{title} has no examples; give at least one.")

    # Texts become rows, too, to which the labels are added: in one column, or 0 or 1 in several.
    locations = [f"{title}:{number}" for number in range(1, len(rows) + 1)]
    text_columns = tuple(text_columns) or _columns_of(rows[0], kind)
    label_columns = files.label_columns(kind, label_column)
    if labels is not None:
        shape = tuple(getattr(labels, "shape", ()))  # That of lists of several lengths has a None.
        if kind is Kind.MULTILABEL and len(shape) == 2 and None not in shape:
            labels = _label_sets(title, labels, label_columns)
        labels = to_list(labels, f"labels of {title}")
        _require_equal_lengths(title, {"texts": rows, "labels": labels})
        rows = [_as_row(location, example, kind, text_columns) | (
            _indicators(location, label, label_columns) if label_columns[1:]
            else {label_columns[0]: label})
            for location, example, label in zip(locations, rows, labels, strict=True)]
    elif is_embedding:
        rows = [_as_row(location, example, kind, text_columns)
                for location, example in zip(locations, rows, strict=True)]

    # Every row has all columns, and classes have one type.
    needed = {*text_columns} | (set() if is_embedding else {*label_columns})
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise UserError(f"{title} has no labels; give a tuple of texts and labels, or a table "
                            f"with columns of both. Received: {shown(row)}")
        if missing := needed - row.keys():
            raise UserError(f"{title} has no column {min(missing)!r}. There are: "
                            f"{', '.join(map(str, row))}; text_columns and label_column select "
                            "columns.")
        if key_column:
            row.setdefault(key_column, str(number))
    if kind is Kind.CLASSIFICATION:
        _require_one_type(title, [row[label_column] for row in rows])

    # A line of JSON for each row: the columns that are read, and those that look like labels.
    content = b"\n".join(_json(location, {
        **{name: str(value) for name, value in row.items() if is_label_name(str(name))},
        **{name: row[name] for name in (*text_columns, *label_columns, key_column) if name in row},
    }) for location, row in zip(locations, rows, strict=True))
    return MemoryFile(title, ".jsonl", content, text_columns)


def texts_of(title: str, spec: TaskSpec, data: Any) -> list[str | list[str]]:
    """Returns the texts, pairs or lists of words of data without labels, as `write` reads them.

    A data frame with several columns may have them in another order than the task. `UserError` for
    unreadable data.
    """
    if spec.kind is not Kind.TAGGING:
        refuse_columns(data)
    if len(getattr(data, "columns", ())) > 1 and spec.kind is not Kind.SENTENCE_EMBEDDINGS:
        is_question = spec.kind is Kind.QUESTION_ANSWERING
        names = ("question", "context") if is_question else spec.text_columns
        if missing := {*names} - {*map(str, data.columns)}:
            raise UserError(f"{title} have no column {min(missing)!r}. There are: "
                            f"{', '.join(map(str, data.columns))}; rename columns.")
        data = (data[names[0]] if len(names) == 1
                else zip(*(data[name] for name in names), strict=True))
    return [[to_string(text, f"{title}:{number}") for text in example]
            if isinstance(example, list | tuple) else to_string(example, f"{title}:{number}")
            for number, example in enumerate(to_list(data, title), start=1)]


def refuse_columns(data: Any) -> None:
    """Raises `UserError` for a tuple of lists or arrays of texts, which transformers pairs up.

    Columns of pandas in a list are refused too, because a list of other values holds rows.
    """
    is_column = {tuple: lambda value: isinstance(value, list) or getattr(value, "ndim", 0) == 1,
                 list: lambda value: type(value).__name__ == "Series"}.get(type(data))
    if is_column and data and all(map(is_column, data)) and any(
            isinstance(text, str | bytes) for value in data for text in value):
        raise UserError(f"a {type(data).__name__} of columns is ambiguous; write "
                        f"list(zip(first, second)) for pairs of texts. Received: {shown(data)}")


def to_list(values: Any, what: str = "texts") -> list[Any]:
    """Returns the elements of a list, an array, a tensor or a column of a table as Python's values.

    Raises `UserError` for one string, for values without an order of texts, and for bytes that are
    not UTF-8.
    """
    values = _unpacked(values)
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        raise UserError(f"{what} must be a list of strings. Received: {shown(values)}")
    return [_plain(value, f"{what}:{number}") for number, value in enumerate(values, start=1)]


def to_string(value: Any, what: str = "text") -> str:
    """Returns a text; bytes are decoded as UTF-8, as in tensors. `UserError` for other values."""
    try:
        value = value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError as error:
        raise UserError(f"{what}: not UTF-8 at byte {error.start + 1}; give text, which "
                        f"bytes.decode returns. Received: {shown(value)}") from None
    if not isinstance(value, str):
        raise UserError(f"{what} must be a string. Received: {shown(value)}")
    if re.search("[\ud800-\udfff]", value):
        raise UserError(f"{what} has half of a character, which encode(errors='ignore') leaves "
                        f"out. Received: {shown(value)}")
    return value


def _unpacked(value: Any) -> Any:
    """Returns a tensor or an array, also the rows of a data frame, as lists of Python's values."""
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    return np.asarray(value).tolist() if hasattr(value, "__array__") else value


def _plain(value: Any, what: str) -> Any:
    """Returns a value of NumPy, pandas or TensorFlow as Python's: bytes as text, NA as None."""
    value = _unpacked(value)
    if type(value).__name__ in ("NAType", "NaTType") or (
            isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bytes):
        return to_string(value, what)
    if isinstance(value, list | tuple):
        return [_plain(part, what) for part in value]
    return ({name: _plain(part, what) for name, part in value.items()}
            if isinstance(value, Mapping) else value)


def _elements(title: str, data: tf.data.Dataset, kind: Kind, label: str) -> list[Any]:
    """Returns the elements of a data set, batched or not: dictionaries, or lists of two."""
    if data.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise UserError(f"{title} is a data set without an end; remove repeat(), or use take().")
    form = data.element_spec
    if not isinstance(form, dict) and not (isinstance(form, tuple) and len(form) == 2):
        raise UserError(f"{title} must be a data set of (text, label) or of dictionaries. "
                        f"Received: {shown(form)}")
    values = form.get(label) if isinstance(form, dict) else form[1]
    label_rank = 0 if kind in (Kind.CLASSIFICATION, Kind.REGRESSION) else 1
    if isinstance(values, tf.TypeSpec) and values.shape.rank > label_rank:
        data = data.unbatch()
    return to_list(data, title)


def _question_file(title: str, data: Any, labels: Any) -> MemoryFile:
    """Returns a file of SQuAD's content, articles, paragraphs, or rows with one question each."""
    articles = data["data"] if isinstance(data, Mapping) and "data" in data else data
    articles = [] if isinstance(articles, Mapping) else to_list(articles, title)
    if labels is not None or not articles or not all(isinstance(row, dict) for row in articles):
        raise UserError(f"{title} must be dictionaries with question, context and answers, as in "
                        f"SQuAD's files. Received: {shown(data)}")
    return MemoryFile(title, ".json", _json(title, {"data": articles}), ())


def _indicators(location: str, labels: Any, names: Sequence[str]) -> dict[str, int]:
    """Returns a column of 0 or 1 for each name of a label; `labels` may have these numbers."""
    if isinstance(labels, list) and len(labels) == len(names) and are_multi_hot([labels]):
        return dict(zip(names, labels, strict=True))
    if not isinstance(labels, list) or not {*map(str, labels)} <= {*names}:
        raise UserError(f"{location}: labels must be a list of some of {', '.join(names)}. "
                        f"Received: {shown(labels)}")
    return {name: int(name in {*map(str, labels)}) for name in names}


def _label_sets(title: str, matrix: Any, names: Sequence[str]) -> list[list[str]]:
    """Returns the labels of a matrix or data frame of 0 and 1, which names them by its columns.

    `names` are those of a matrix with as many columns.
    """
    numbers = names if len(names) == matrix.shape[1] > 1 else range(matrix.shape[1])
    names = list(map(str, getattr(matrix, "columns", numbers)))
    rows = _plain(matrix, title)
    if wrong := {value for row in rows for value in row} - {0, 1}:
        raise UserError(f"labels of {title} must be 0 or 1 in a matrix. Received: {min(wrong)}")
    return [[name for name, value in zip(names, row, strict=True) if value] for row in rows]


def _columns_of(first: Any, kind: Kind) -> tuple[str, ...]:
    """Returns the columns of texts of an example."""
    if isinstance(first, dict):
        return _COLUMNS[1 + ("text" not in first and "text_1" in first)]
    size = len(first) if kind is not Kind.TAGGING and isinstance(first, list) else 1
    most = 3 if kind is Kind.SENTENCE_EMBEDDINGS else 2
    return _COLUMNS[size if size <= most else 1]


def _as_row(location: str, text: Any, kind: Kind, names: Sequence[str]) -> dict[str, Any]:
    """Returns the columns of a text, a pair or a list of words."""
    if isinstance(text, dict):
        return text
    texts = text if isinstance(text, list) and kind is not Kind.TAGGING else [text]
    if len(texts) != len(names):
        raise UserError(f"{location}: {len(names)} text(s) per example are expected. Received: "
                        f"{shown(text)}")
    return dict(zip(names, texts, strict=True))


def _json(title: str, value: Any) -> bytes:
    try:
        return json.dumps(value).encode()
    except (TypeError, ValueError) as error:
        raise UserError(f"{title}: {error}; give strings, numbers and lists.") from None


def _require_equal_lengths(title: str, columns: Mapping[str, list[Any]]) -> None:
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise UserError(f"{title} has columns of different lengths: " + ", ".join(
            f"{size:,} {name}" for name, size in sizes.items()) + ".")


def _require_one_type(title: str, labels: Sequence[Any]) -> None:
    """Raises `UserError` unless classes are all texts, all integers or all booleans."""
    types = {type(label) for label in labels}
    if float in types:  # NaN, and integers of a column with missing values.
        number, value = next((number, label) for number, label in enumerate(labels, start=1)
                             if isinstance(label, float))
        raise UserError(f"{title}:{number}: a class must be text, an integer or a boolean; drop "
                        "rows without a label, convert with astype(int), or use the task "
                        f"'regression'. Received: {value}")
    if len(types - {type(None)}) > 1:
        raise UserError(f"{title} has labels of several types: "
                        f"{', '.join(sorted(kind.__name__ for kind in types))}; use one.")
