"""Examples from the user's own files: tables of texts, tagged sentences, questions."""

import dataclasses
import math
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
from electra_tf.tasks.examples import Example, TaggedExample, TextExample
from electra_tf.tasks.tables import TableRow, read_rows, suffix_of
from electra_tf.tasks.tagging import read_conll, refuse_sentences, to_iob2
from electra_tf.tasks.task import Columns, TaskSpec

_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*", re.ASCII)
"""Accepted form of a number; Python's `float` also takes "1_0", "nan" and other digits."""


Paths = Path | Sequence[Path]
"""One file or several that are read as one."""
HELD_OUT = 10
"""One of so many training examples is scored, not trained on, if there is no file for dev."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Files:
    """The user's own files, or files that replace a benchmark's."""

    train: Paths | None = None
    dev: Paths | None = None
    """Examples to score; without them some of the training examples are held out."""
    test: Paths | None = None
    """Examples to predict, without labels."""
    columns: Columns = Columns()


def paths_of(given: Paths) -> list[Path]:
    """Returns one path or several as a list."""
    return list(given) if isinstance(given, Sequence) else [given]


def joined(given: Paths, parts: Sequence[Sequence[Example]]) -> list[Example]:
    """Returns the examples of one file, or of several with the file's name in every key."""
    paths = paths_of(given)
    if len(paths) == 1:
        return list(parts[0])
    return [dataclasses.replace(one, key=f"{path}:{one.key}")
            for path, part in zip(paths, parts, strict=True) for one in part]


def hold_out(examples: Sequence[Example]) -> tuple[list[Example], list[Example], str]:
    """Splits training examples into those to train on and those to score.

    The choice is stratified by label or number and depends on nothing but the examples. Equal texts
    and questions about one context stay together.

    Returns:
        Both parts in the examples' order, and a note on them.

    Raises:
        UserError: fewer than two different texts.
    """
    groups: dict[Any, list[int]] = {}
    for index, example in enumerate(examples):
        groups.setdefault(getattr(example, "context", example.texts), []).append(index)
    order = np.random.default_rng(0).permutation(len(groups))
    members = list(groups.values())
    shuffled = [members[index] for index in order]
    labels = [getattr(examples[group[0]], "label", None) for group in shuffled]
    if None not in labels:  # A stable sort: random within a label, spread evenly over all.
        shuffled = [shuffled[index] for index in sorted(range(len(labels)), key=labels.__getitem__)]
    every = min(HELD_OUT, len(groups))
    chosen = {index for group in shuffled[every // 2::every] for index in group}
    parts = [[one for index, one in enumerate(examples) if (index in chosen) is held]
             for held in (False, True)]
    if not all(parts):
        raise UserError("--dev is needed: the training file is too small to hold examples out.")
    return *parts, (f"without --dev {len(parts[1]):,} of {len(examples):,} training examples are "
                    "held out as dev, the same ones in every run")


def read_texts(path: Path, columns: Columns | TaskSpec, *, numbers: bool = False,
               labelled: bool = True) -> list[TextExample]:
    """Returns the rows of a table as examples for classification or regression.

    Args:
        path: `.tsv`, `.csv` or `.jsonl`; to predict also `.txt` with a text a line, or two with a
            tab between them; see `read_rows`.
        columns: the columns by role.
        numbers: labels are numbers.
        labelled: False reads no labels, or those that happen to be there.

    Raises:
        UserError: a missing column, an empty label, or a label that is no number; with the line.
    """
    if suffix_of(path) == ".txt":
        if labelled:
            raise UserError(f"{path}: lines of .txt have no labels; --train and --dev take .tsv, "
                            ".csv and .jsonl with a column for the label.")
        return [TextExample(key=str(row.line), texts=tuple(row.values.values()))
                for row in read_rows(path, columns=columns.texts)]
    read = _number if numbers else _word

    def label(row: TableRow) -> str | float | None:
        try:
            return read(row, columns.label)
        except UserError:
            if labelled:
                raise
            return None

    return [TextExample(key=_key(row, columns), texts=tuple(map(row.text, columns.texts)),
                        label=label(row)) for row in _rows(path, columns, labelled=labelled)]


def read_tagged(path: Path, columns: Columns | TaskSpec, *, labelled: bool = True,
                tags: Collection[str] = ()) -> list[TaggedExample]:
    """Returns the sentences of JSON lines with lists of words and tags, or of CoNLL columns.

    Args:
        path: `.jsonl`, or columns.
        columns: the lists by role.
        labelled: False reads no tags.
        tags: the tag set, if known.

    Raises:
        UserError: a list that isn't one of texts, or not as many tags as words; with the line.
    """
    if suffix_of(path) != ".jsonl":
        if not labelled:
            refuse_sentences(path, tags)
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


def require_known_labels(given: Paths, examples: Sequence[TextExample | TaggedExample],
                         known: Collection[str]) -> None:
    """Raises `UserError` if an example has a label that is not in the training file."""
    for example in examples:
        unknown = [label for label in _labels_of(example) if label not in known]
        if unknown:
            raise UserError(f"{shown_paths(given)}: {example.key}: the label {shown(unknown[0])} "
                            "isn't among those of the training file: "
                            f"{', '.join(sorted(known)[:20])}.")


def require_single_labels(given: Paths, labels: Collection[str]) -> None:
    """Raises `UserError` for labels that join others: "a,b" where "a" is a label, too."""
    for label in labels:
        if set(map(str.strip, re.split("[,;|]", label))) & set(labels) - {label}:
            raise UserError(f"{shown_paths(given)}: the label {shown(label)} joins several labels; "
                            "a text has one. Train a classifier per label with yes and no as "
                            "labels, or write it without commas, semicolons and bars.")


def shown_paths(given: Paths) -> str:
    """Returns one path or several for a message."""
    return ", ".join(map(str, paths_of(given)))


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
