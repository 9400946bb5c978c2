"""Examples from the user's own files: tables of texts, and sentences with a tag per word.

CoNLL-2000 (Tjong Kim Sang and Buchholz, 2000): word, part of speech, chunk. CoNLL-2003 (Tjong Kim
Sang and De Meulder, 2003): word, part of speech, chunk, entity, with "-DOCSTART-" lines between
documents. An empty line ends a sentence.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
from electra_tf.tasks.examples import Example, Kind, TaggedExample, TextExample
from electra_tf.tasks.tables import TableRow, read_lines, read_rows, suffix_of
from electra_tf.tasks.task import TaskSpec

Paths = Path | Sequence[Path]
"""One file or several that are read as one."""
HELD_OUT = 10
"""One of so many training examples is scored, not trained on, if there is no file for dev."""
_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*", re.ASCII)
"""Accepted form of a number; Python's `float` also takes "1_0", "nan" and other digits."""
_DOCUMENT_START = "-DOCSTART-"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Files:
    """The user's own files, or files that replace a benchmark's."""

    train: Paths | None = None
    dev: Paths | None = None
    """Examples to score; without them some of the training examples are held out."""
    test: Paths | None = None
    """Examples to predict; labels may be missing."""
    texts: tuple[str, ...] = ("text",)
    """Columns as in `TaskSpec`, like `label` and `key`."""
    label: str = "label"
    key: str = ""

    def __post_init__(self):
        if not 1 <= len(self.texts) <= 2:
            raise UserError("--text_columns takes one column, or two separated by a comma. "
                            f"Received: {','.join(self.texts)!r}")


def paths_of(given: Paths) -> list[Path]:
    """Returns one path or several as a list."""
    return list(given) if isinstance(given, Sequence) else [given]


def shown_paths(given: Paths) -> str:
    """Returns one path or several for a message."""
    return ", ".join(map(str, paths_of(given)))


def read_all(given: Paths, read: Callable[[Path], Sequence[Example]]) -> list[Example]:
    """Returns the examples of one file, or of several with the file's name in every key."""
    paths = paths_of(given)
    if len(paths) == 1:
        return list(read(paths[0]))
    return [dataclasses.replace(one, key=f"{path}:{one.key}")
            for path in paths for one in read(path)]


def hold_out(examples: Sequence[Example]) -> tuple[list[Example], list[Example], str]:
    """Returns the examples to train on, those to score, and a note; both in their order.

    The choice is stratified by label or number and depends on nothing but the examples. Equal texts
    and questions about one context stay together. `UserError` for fewer than two different texts.
    """
    groups: dict[Any, list[int]] = {}
    for index, example in enumerate(examples):
        groups.setdefault(getattr(example, "context", example.texts), []).append(index)
    members = list(groups.values())
    shuffled = [members[index] for index in np.random.default_rng(0).permutation(len(groups))]
    labels = [getattr(examples[group[0]], "label", None) for group in shuffled]
    if None not in labels:  # A stable sort: random within a label, spread evenly over all.
        shuffled = [shuffled[index] for index in sorted(range(len(labels)), key=labels.__getitem__)]
    every = min(HELD_OUT, len(groups))
    chosen = {index for group in shuffled[every // 2::every] for index in group}
    train, dev = ([one for index, one in enumerate(examples) if (index in chosen) is held]
                  for held in (False, True))
    if not train or not dev:
        raise UserError("--dev is needed: the training file is too small to hold examples out.")
    return train, dev, (f"without --dev {len(dev):,} of {len(examples):,} training examples are "
                        "held out as dev, the same ones in every run")


def read_texts(path: Path, spec: TaskSpec, *, labelled: bool = True) -> list[TextExample]:
    """Returns the rows of a table, as `read_rows` takes it, for classification or regression.

    `labelled=False` makes labels optional, and `.txt` is read only then. `UserError` for a missing
    column, an empty label, or a label that is no number.
    """
    if suffix_of(path) == ".txt":
        if labelled:
            raise UserError(f"{path}: lines of .txt have no labels; --train and --dev take .tsv, "
                            ".csv and .jsonl with a column for the label.")
        return [TextExample(key=str(row.line), texts=tuple(row.values.values()))
                for row in read_rows(path, columns=spec.texts)]
    read = _number if spec.kind == Kind.REGRESSION else _word

    def label(row: TableRow) -> str | float | None:
        try:
            return read(row, spec.label)
        except UserError:
            if labelled:
                raise
            return None

    return [TextExample(key=_key(row, spec), texts=tuple(map(row.text, spec.texts)),
                        label=label(row)) for row in _rows(path, spec, labelled=labelled)]


def read_tagged(path: Path, spec: TaskSpec, *, labelled: bool = True) -> list[TaggedExample]:
    """Returns the sentences of JSON lines with lists of words and tags, or of CoNLL columns.

    `labelled=False` reads no tags. `UserError` for a list that isn't one of texts, not as many tags
    as words, or plain sentences instead of columns.
    """
    if suffix_of(path) != ".jsonl":
        if not labelled:
            _refuse_sentences(path, spec.labels)
        return read_conll(path, tagged=labelled)
    examples = []
    for row in _rows(path, spec, labelled=labelled):
        words = _list(row, spec.texts[0])
        known = _list(row, spec.label) if labelled else None
        if not words or (known is not None and len(known) != len(words)):
            raise row.error(f"{len(words)} words and {len(known or ())} tags; there must be at "
                            "least one word, and a tag for each.")
        examples.append(TaggedExample(
            key=_key(row, spec), words=tuple(words),
            tags=None if known is None else tuple(to_iob2(known))))
    return examples


def read_conll(path: Path, *, tagged: bool = True) -> list[TaggedExample]:
    """Returns all sentences of a file: the first column is the word, the last the tag.

    Columns are separated by spaces or tabs. Tags in IOB1, which CoNLL-2003 was published in, come
    back as IOB2. `tagged=False` is for a file to predict, whose last column is no tag. `UserError`
    for another number of columns, or no sentence.
    """
    sentences: list[list[tuple[int, list[str]]]] = [[]]  # Line number and cells of every word.
    width = None
    for number, line in read_lines(path):
        cells = line.split()
        if not cells or cells[0] == _DOCUMENT_START:
            sentences.append([])
            continue
        width = width or len(cells)
        if len(cells) != width or (tagged and width < 2):
            expected = "at least 2" if len(cells) == width else str(width)
            raise UserError(f"{path}:{number}: {len(cells)} columns, but {expected} are expected. "
                            f"Received: {line[:60]!r}")
        sentences[-1].append((number, cells))
    if width is None:
        raise UserError(f"{path} holds no sentences.")
    return [TaggedExample(
        key=str(lines[0][0]), words=tuple(cells[0] for _, cells in lines),
        tags=tuple(to_iob2([cells[-1] for _, cells in lines])) if tagged else None)
        for lines in sentences if lines]


def to_iob2(tags: Sequence[str]) -> list[str]:
    """Makes the first tag of every span a "B-": IOB1 writes it only between neighbours of a type.

    >>> to_iob2(["I-PER", "I-PER", "O", "I-LOC", "B-LOC", "I-PER"])
    ['B-PER', 'I-PER', 'O', 'B-LOC', 'B-LOC', 'B-PER']
    """
    return [f"B-{tag[2:]}" if tag.startswith("I-") and before[2:] != tag[2:] else tag
            for before, tag in zip(["O", *tags], tags, strict=False)]


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


def _refuse_sentences(path: Path, tags: Collection[str]) -> None:
    """Raises `UserError` if most lines end in a lower-case word that is no tag: sentences."""
    lines = [line.split() for _, line in read_lines(path)]
    last = [cells[-1] for cells in lines if len(cells) > 1]
    plain = [cell for cell in last if cell != cell.upper() and cell not in tags]
    if 2 * len(plain) > len(last):
        raise UserError(f"{path}: lines of several words such as {shown(' '.join(lines[0]))}; to "
                        "tag a sentence write one word per line and an empty line after it, or "
                        '.jsonl: {"words": ["He", "runs", "."]}.')


def _labels_of(example: TextExample | TaggedExample) -> tuple[str, ...]:
    if isinstance(example, TaggedExample):
        return example.tags or ()
    return () if example.label is None else (example.label,)


def _rows(path: Path, spec: TaskSpec, *, labelled: bool) -> Iterator[TableRow]:
    """Yields rows; raises `UserError` that names the flag of a missing column."""
    wanted = {**dict.fromkeys(spec.texts, "text_columns"),
              **({spec.label: "label_column"} if labelled else {}),
              **({spec.key: "key_column"} if spec.key else {})}
    for row in read_rows(path):
        for name, flag in wanted.items():
            if name not in row.values:
                raise row.error(
                    f"no column {name!r}. There are: {', '.join(row.values)}. --{flag} says "
                    "which one it is; files to predict have the training file's columns.")
        yield row


def _key(row: TableRow, spec: TaskSpec) -> str:
    return row.text(spec.key) if spec.key else str(row.line)


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
