"""Examples from the user's own files: tables of texts, tagged sentences, questions."""

import dataclasses
import math
import re
from collections.abc import Collection, Iterator, Sequence

from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
from electra_tf.tasks.examples import TaggedExample, TextExample
from electra_tf.tasks.tables import TableRow, read_rows, suffix_of
from electra_tf.tasks.tagging import read_conll, to_iob2
from electra_tf.tasks.task import Columns, TaskSpec

_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*", re.ASCII)
"""Accepted form of a number; Python's `float` also takes "1_0", "nan" and other digits."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Files:
    """The user's own files, or files that replace a benchmark's."""

    train: Path | None = None
    dev: Path | None = None
    test: Path | None = None
    """Examples to predict, without labels."""
    columns: Columns = Columns()
    strict: bool = False
    """Refuse questions whose answer is not at its offset."""


def read_texts(path: Path, columns: Columns | TaskSpec, *, numbers: bool = False,
               labelled: bool = True) -> list[TextExample]:
    """Returns the rows of a table as examples for classification or regression.

    Args:
        path: `.tsv`, `.csv` or `.jsonl`; see `read_rows`.
        columns: the columns by role.
        numbers: labels are numbers.
        labelled: False ignores the label column.

    Raises:
        UserError: a missing column, an empty label, or a label that is no number; with the line.
    """
    return [TextExample(
        key=_key(row, columns), texts=tuple(map(row.text, columns.texts)),
        label=(_number if numbers else _word)(row, columns.label) if labelled else None)
        for row in _rows(path, columns, labelled=labelled)]


def read_tagged(path: Path, columns: Columns | TaskSpec, *,
                labelled: bool = True) -> list[TaggedExample]:
    """Returns the sentences of JSON lines with lists of words and tags, or of CoNLL columns.

    Raises:
        UserError: a list that isn't one of texts, or not as many tags as words; with the line.
    """
    if suffix_of(path) != ".jsonl":
        return read_conll(path, tagged=labelled)
    examples = []
    for row in _rows(path, columns, labelled=labelled):
        words = _list(row, columns.texts[0])
        tags = _list(row, columns.label) if labelled else None
        if not words or (tags is not None and len(tags) != len(words)):
            raise row.error(f"{len(words)} words and {len(tags or ())} tags; there must be at "
                            "least one word, and a tag for each.")
        examples.append(TaggedExample(
            key=_key(row, columns), words=tuple(words),
            tags=None if tags is None else tuple(to_iob2(tags))))
    return examples


def label_set(examples: Sequence[TextExample | TaggedExample]) -> tuple[str, ...]:
    """Returns the distinct labels or tags, in order."""
    return tuple(sorted({label for example in examples for label in _labels_of(example)}))


def require_known_labels(path: Path, examples: Sequence[TextExample | TaggedExample],
                         known: Collection[str]) -> None:
    """Raises `UserError` if an example has a label that is not in the training file."""
    for example in examples:
        unknown = [label for label in _labels_of(example) if label not in known]
        if unknown:
            raise UserError(f"{path}: {example.key}: the label {shown(unknown[0])} isn't among "
                            f"those of the training file: {', '.join(sorted(known)[:20])}.")


def _labels_of(example: TextExample | TaggedExample) -> tuple[str, ...]:
    if isinstance(example, TaggedExample):
        return example.tags or ()
    return () if example.label is None else (example.label,)


def _rows(path: Path, columns: Columns | TaskSpec, *, labelled: bool) -> Iterator[TableRow]:
    """Yields rows; raises `UserError` that names the flag of a missing column."""
    wanted = {"text_columns": columns.texts, "label_column": (columns.label,) if labelled else (),
              "key_column": (columns.key,) if columns.key else ()}
    for row in read_rows(path):
        for flag, names in wanted.items():
            for name in names:
                if name not in row.values:
                    raise row.error(
                        f"no column {name!r}. There are: {', '.join(row.values)}. --{flag} says "
                        "which one it is; files to predict have the training file's columns.")
        yield row


def _key(row: TableRow, columns: Columns | TaskSpec) -> str:
    return row.text(columns.key) if columns.key else str(row.line)


def _word(row: TableRow, column: str) -> str:
    value = row.values.get(column)
    if isinstance(value, (bool, int)):  # JSON's; true and 1 are labels like others.
        return str(value)
    word = row.text(column)
    if not word:
        raise row.error(f"the label in column {column!r} is empty.")
    return word


def _number(row: TableRow, column: str) -> float:
    value = row.values.get(column)
    if isinstance(value, bool) or not isinstance(value, int | float):
        value = row.text(column) if column not in row.values or isinstance(value, str) else ""
        value = float(value) if _NUMBER.fullmatch(value) else math.nan
    if not math.isfinite(value):
        raise row.error(f"{column!r} must be a number. Received: {shown(row.values[column])}")
    return float(value)


def _list(row: TableRow, column: str) -> list[str]:
    value = row.values.get(column)
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise row.error(f"{column!r} must be a list of texts. Received: {shown(value)}")
    return value
