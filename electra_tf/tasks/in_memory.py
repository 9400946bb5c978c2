"""Reads examples that a program has in memory: lists, arrays, tables and data sets of tf.data."""

import dataclasses
import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.settings import require_one_of
from electra_tf.tasks import files
from electra_tf.tasks.files import Files
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.tables import TableRow
from electra_tf.tasks.task import Example, Kind, Task, TaskSpec

MAX_EXAMPLES = 10_000_000
"""Limit of the examples of a split; it ends the reading of generators without an end."""
_COLUMNS = {1: ("text",), 2: ("text_1", "text_2")}
"""Number of texts of an example -> names of their columns, if the user gives none."""
_SINGLE_LABEL = (Kind.CLASSIFICATION, Kind.REGRESSION)
"""Kinds whose examples have one label or number; others have a list."""


def load(task: str, train: Any, labels: Any, dev: Any, own: Files) -> Task:
    """Returns a task of the user's own data; `UserError` for data that can't be read.

    `train` and `dev` are as in `read_rows`; without `dev` examples are held out. `own` has the
    columns of tables.
    """
    require_one_of(KINDS, "task, for data in memory,", task)
    kind = KINDS[Kind(task)]
    own = dataclasses.replace(own, train=("train",), dev=("dev",) if dev is not None else ())
    spec = kind.own_spec(task, own)
    rows = read_rows("train", train, labels, spec, own.texts)
    if not own.texts and rows[0].values.keys() >= {*_COLUMNS[2]}:
        spec = dataclasses.replace(spec, texts=_COLUMNS[2])
    notes: list[str] = []
    read = functools.partial(kind.examples, spec=spec, labelled=True, notes=notes)
    train, dev = [*read("train", rows)], [] if dev is None else [
        *read("dev", read_rows("dev", dev, None, spec, spec.texts))]
    return kind.build_task(spec, own, train, dev, [], notes)


def examples(source: str, data: Any, labels: Any, spec: TaskSpec,
             notes: list[str]) -> list[Example]:
    """Returns labelled examples for a trained task; `notes` receives labels that it lacks."""
    parts = [*KINDS[spec.kind].examples(source, read_rows(
        source, data, labels, spec, spec.texts), spec, labelled=True, notes=notes)]
    if spec.labels:
        files.check_labels(source, parts, spec.labels, notes)
    return parts


def read_rows(source: str, data: Any, labels: Any, spec: TaskSpec,
              texts: tuple[str, ...]) -> list[TableRow]:
    """Returns labelled examples as rows with the columns of `spec`, numbered from 0.

    Args:
        source: name of the data in messages.
        data: texts, pairs or lists of words; a tuple of these and their labels; a table or
            dictionaries with the columns of `spec`; a data set of dictionaries or (text, label);
            for extractive QA dictionaries as in `parse_questions`.
        labels: labels of the texts; None if `data` has them.
        spec: the task.
        texts: the columns of texts, or () if the first example decides.
    """
    if labels is None and isinstance(data, tuple) and len(data) == 2:
        data, labels = data
    if isinstance(data, tf.data.Dataset):
        data = _elements(source, data, spec)
        if data and isinstance(data[0], list):
            data, labels = zip(*data, strict=True)
    names = getattr(data, "columns", data.keys() if isinstance(data, Mapping) else None)
    if spec.kind is Kind.QUESTION_ANSWERING and isinstance(data, Mapping) and "data" in data:
        data = data["data"]
    elif names is not None and labels is None:
        columns = {str(name): to_list(data[name], f"{source}[{name!r}]") for name in names}
        _require_equal_lengths(source, columns)
        data = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    values = to_list(data, source)
    if spec.kind is Kind.QUESTION_ANSWERING:
        if labels is not None or not all(isinstance(value, dict) for value in values):
            raise UserError(f"{source} must be dictionaries with question, context and answers, as "
                            f"in SQuAD's files. Received: {shown(values)}")
        return [TableRow(source, index, value) for index, value in enumerate(values)]
    if labels is not None:
        columns = {"texts": values, "labels": to_list(labels, f"labels of {source}")}
        _require_equal_lengths(source, columns)
        names = _columns_of(values[:1], spec, texts)
        values = [_as_row(source, index, text, spec, names) | {spec.label: label}
                  for index, (text, label) in enumerate(zip(*columns.values(), strict=True))]
    if not values:
        raise UserError(f"{source} has no examples; give at least one.")
    rows = [TableRow(source, index, value) for index, value in enumerate(values)]
    needed = {*_columns_of(values, spec, texts), spec.label}
    for row in rows:
        if not isinstance(row.values, dict):
            raise UserError(f"{source} has no labels; give a tuple of texts and labels, or a table "
                            f"with columns of both. Received: {shown(row.values)}")
        if missing := needed - row.values.keys():
            raise UserError(f"{source} has no column {min(missing)!r}. There are: "
                            f"{', '.join(map(str, row.values))}; text_columns and label_column "
                            "select columns.")
    if spec.kind is Kind.CLASSIFICATION:
        _require_one_type(source, rows, spec.label)
    return rows


def to_list(values: Any, what: str = "texts") -> list[Any]:
    """Returns the elements of a list, an array, a tensor or a column of a table as Python's values.

    Raises `UserError` for one string and for values without an order of texts.
    """
    if isinstance(values, tf.RaggedTensor) or hasattr(values, "__array__"):
        values = _plain(values)
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        raise UserError(f"{what} must be a list of strings. Received: {shown(values)}")
    values = [_plain(value) for value in itertools.islice(values, MAX_EXAMPLES + 1)]
    if len(values) > MAX_EXAMPLES:
        raise UserError(f"{what}: more than {MAX_EXAMPLES:,} values; give fewer, or a generator "
                        "that ends.")
    return values


def _plain(value: Any) -> Any:
    """Returns a value of NumPy, pandas or TensorFlow as Python's; bytes are decoded as UTF-8."""
    if isinstance(value, tf.RaggedTensor):
        value = value.to_list()
    elif hasattr(value, "__array__"):  # Also: tensors, and the rows of a data frame.
        value = np.asarray(value).tolist()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, str) and not value.isascii() and re.search("[\ud800-\udfff]", value):
        raise UserError(f"texts must be strings of Unicode. Received: {shown(value)}")
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return ({name: _plain(part) for name, part in value.items()} if isinstance(value, Mapping)
            else value)


def _elements(source: str, data: tf.data.Dataset, spec: TaskSpec) -> list[Any]:
    """Returns the elements of a data set, batched or not: dictionaries, or lists of two."""
    if data.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise UserError(f"{source} is a data set without an end; remove repeat(), or use take().")
    form = data.element_spec
    if not isinstance(form, dict) and not (isinstance(form, tuple) and len(form) == 2):
        raise UserError(f"{source} must be a data set of (text, label) or of dictionaries. "
                        f"Received: {shown(form)}")
    label = form.get(spec.label) if isinstance(form, dict) else form[1]
    if label is not None and label.shape.rank > (spec.kind not in _SINGLE_LABEL):
        data = data.unbatch()
    return to_list(data, source)


def _columns_of(values: list[Any], spec: TaskSpec, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the columns of texts; if `texts` is empty, those of the first value."""
    first = values[0] if values else ""
    if isinstance(first, dict):
        return texts or _COLUMNS[1 + (_COLUMNS[1][0] not in first and _COLUMNS[2][1] in first)]
    is_pair = spec.kind is not Kind.TAGGING and isinstance(first, list) and len(first) == 2
    return texts or _COLUMNS[1 + is_pair]


def _as_row(source: str, index: int, text: Any, spec: TaskSpec,
            names: tuple[str, ...]) -> dict[str, Any]:
    """Returns the columns of a text, a pair or a list of words."""
    if isinstance(text, dict):
        return text
    texts = text if isinstance(text, list) and spec.kind is not Kind.TAGGING else [text]
    if len(texts) != len(names):
        raise UserError(f"{source}:{index}: the task {spec.name} reads {len(names)} text(s) per "
                        f"example. Received: {shown(text)}")
    return dict(zip(names, texts, strict=True))


def _require_equal_lengths(source: str, columns: Mapping[str, list[Any]]) -> None:
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise UserError(f"{source} has columns of different lengths: " + ", ".join(
            f"{size:,} {name}" for name, size in sizes.items()) + ".")


def _require_one_type(source: str, rows: list[TableRow], column: str) -> None:
    """Raises `UserError` for classes that are not all texts, all integers or all booleans."""
    types = {type(row.values.get(column)): row for row in reversed(rows)}  # To the first row.
    if float in types:  # NaN, and integers of a column with missing values.
        row = types[float]
        raise row.error("a class must be text, an integer or a boolean; drop rows without a label, "
                        "convert with astype(int), or use the task 'regression'. Received: "
                        f"{row.values[column]}")
    if len(types) > 1 and type(None) not in types:
        raise UserError(f"{source} has labels of several types: "
                        f"{', '.join(sorted(kind.__name__ for kind in types))}; use one.")
