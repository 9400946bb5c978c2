"""Reads the user's own files: tables of texts, and sentences with a tag per word.

CoNLL-2000 (Tjong Kim Sang and Buchholz, 2000): word, part of speech, chunk. CoNLL-2003 (Tjong Kim
Sang and De Meulder, 2003): word, part of speech, chunk, entity, with "-DOCSTART-" lines between
documents. An empty line ends a sentence.
"""

import contextlib
import dataclasses
import itertools
import math
import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
from electra_tf.tasks.examples import NUMERIC, Example, TaggedExample, TextExample
from electra_tf.tasks.tables import TableRow, read_lines, read_rows, suffix_of
from electra_tf.tasks.task import TaskSpec

HELD_OUT = 10
"""Without a file for dev, one of `HELD_OUT` training examples is scored and not trained on."""
_BETWEEN_SENTENCES = ([], ["-DOCSTART-"])
"""First cells of the lines that separate sentences."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Files:
    """The user's own files, or files that replace a benchmark's; several are read as one."""

    train: Sequence[Path] = ()
    dev: Sequence[Path] = ()
    """Examples to score; without them some of the training examples are held out."""
    test: Sequence[Path] = ()
    """Examples to predict; labels may be missing."""
    texts: tuple[str, ...] = ("text",)
    """This field, `label` and `key` name columns as in `TaskSpec`."""
    label: str = "label"
    key: str = ""


def shown_paths(paths: Sequence[Path]) -> str:
    """Returns paths separated by commas, for a message."""
    return ", ".join(map(str, paths))


def hold_out(examples: Sequence[Example]) -> tuple[list[Example], list[Example], str]:
    """Returns the examples to train on, those to score, both in their order, and a note.

    The choice is stratified by label or number and depends on the examples alone. Equal texts and
    questions about one context stay together. `UserError` for fewer than two different texts.
    """
    groups: dict[Any, list[int]] = {}
    for index, example in enumerate(examples):
        groups.setdefault(getattr(example, "context", example.texts), []).append(index)
    members = list(groups.values())
    shuffled = [members[index] for index in np.random.default_rng(0).permutation(len(groups))]
    labels = [getattr(examples[group[0]], "label", None) for group in shuffled]
    if None not in labels:  # The sort is stable, so the order within a label stays random.
        shuffled = [shuffled[index] for index in sorted(range(len(labels)), key=labels.__getitem__)]
    every = min(HELD_OUT, len(groups))
    chosen = {index for group in shuffled[every // 2::every] for index in group}
    train, dev = ([one for index, one in enumerate(examples) if (index in chosen) is held]
                  for held in (False, True))
    if not train:
        raise UserError("--dev is needed: the training file is too small to hold examples out.")
    return train, dev, (f"without --dev {len(dev):,} of {len(examples):,} training examples are "
                        "held out as dev, the same ones in every run")


def read_texts(path: Path, spec: TaskSpec, *, labelled: bool = True,
               columns: Sequence[str] | None = None) -> list[TextExample]:
    """Returns the rows of a table; labels are texts, or numbers for kinds in `NUMERIC`.

    `labelled=False` makes labels optional and also reads `.txt`. `UserError` as in `read_rows`, and
    for a wrong label.
    """
    if suffix_of(path) == ".txt":
        if labelled:
            raise UserError(f"{path}: lines of .txt have no labels; --train and --dev take .tsv, "
                            ".csv and .jsonl with a column for the label.")
        columns, spec = spec.texts, dataclasses.replace(spec, key="")
    read_label = _number if spec.kind in NUMERIC else _label
    examples = []
    for row in read_rows(path, columns=columns):
        label = None
        with contextlib.nullcontext() if labelled else contextlib.suppress(UserError):
            label = read_label(row, spec.label)
        examples.append(TextExample(key=_key(row, spec), label=label,
                                    texts=tuple(map(row.text, spec.texts))))
    return examples


def read_tagged(path: Path, spec: TaskSpec, *, labelled: bool = True) -> list[TaggedExample]:
    """Returns the sentences of JSON lines with lists of words and tags, or of CoNLL columns.

    `labelled=False` makes tags optional in JSON lines and ignores those of columns. `UserError` for
    missing keys or columns, and for plain sentences in the place of columns.
    """
    if suffix_of(path) != ".jsonl":
        if not labelled:
            _refuse_sentences(path, spec)
        return read_conll(path, tagged=labelled)
    examples = []
    for row in read_rows(path):
        known = spec.label in row.values
        if spec.texts[0] not in row.values or (labelled and not known):
            needed = f" and a list of tags in {spec.label!r}" if labelled else ""
            raise row.error(f"a sentence needs a list of words in {spec.texts[0]!r}{needed}; in "
                            "training, --text_columns and --label_column select other keys. "
                            f"Received the keys: {', '.join(row.values)}.")
        words = _list(row, spec.texts[0])
        tags = _list(row, spec.label) if known else words
        if not words or len(tags) != len(words):
            raise row.error(f"{len(words)} words and {len(tags)} tags; there must be at least one "
                            "word, and a tag for each.")
        examples.append(TaggedExample(key=_key(row, spec), words=tuple(words),
                                      tags=to_iob2(tags) if known else None))
    return examples


def read_conll(path: Path, *, tagged: bool = True) -> list[TaggedExample]:
    """Returns all sentences of a file: the first column is the word, the last the tag.

    Tags in IOB1, the scheme of CoNLL-2003, become IOB2. `tagged=False` is for a file to predict,
    whose last column is not a tag. `UserError` for no sentences or uneven columns.
    """
    rows = ((number, line.split()) for number, line in read_lines(path))
    sentences = [list(part) for is_sentence, part in itertools.groupby(
        rows, lambda row: row[1][:1] not in _BETWEEN_SENTENCES) if is_sentence]
    if not sentences:
        raise UserError(f"{path} holds no sentences.")
    width = len(sentences[0][0][1])
    for number, cells in itertools.chain.from_iterable(sentences):
        if len(cells) != width or (tagged and width < 2):
            expected = "at least 2" if len(cells) == width else str(width)
            raise UserError(f"{path}:{number}: {len(cells)} columns, but {expected} are expected. "
                            f"Received: {shown(' '.join(cells))}")
    return [TaggedExample(key=str(lines[0][0]), words=tuple(cells[0] for _, cells in lines),
                          tags=to_iob2([cells[-1] for _, cells in lines]) if tagged else None)
            for lines in sentences]


def to_iob2(tags: Sequence[str]) -> tuple[str, ...]:
    """Makes the first tag of every span a "B-"; IOB1 has it only between two spans of a type.

    >>> to_iob2(["I-PER", "I-PER", "O", "I-LOC", "B-LOC", "I-PER"])
    ('B-PER', 'I-PER', 'O', 'B-LOC', 'B-LOC', 'B-PER')
    """
    return tuple(f"B-{tag[2:]}" if tag.startswith("I-") and before[2:] != tag[2:] else tag
                 for before, tag in zip(["O", *tags], tags, strict=False))


def label_set(examples: Sequence[TextExample | TaggedExample]) -> tuple[str, ...]:
    """Returns the distinct labels or tags, sorted."""
    return tuple(sorted({label for example in examples for label in _labels_of(example)}))


def require_known_labels(paths: Sequence[Path], examples: Sequence[TextExample | TaggedExample],
                         known: Collection[str]) -> None:
    """Raises `UserError` if an example has a label that is not among the known ones."""
    for example in examples:
        unknown = [label for label in _labels_of(example) if label not in known]
        if unknown:
            raise UserError(f"{shown_paths(paths)}: {example.key}: the label {shown(unknown[0])} "
                            "isn't among those of the training file: "
                            f"{', '.join(sorted(known)[:20])}.")


def require_single_labels(paths: Sequence[Path], labels: Collection[str]) -> None:
    """Raises `UserError` for labels that join others: "a,b" where "a" is also a label."""
    for label in labels:
        if set(map(str.strip, re.split("[,;|]", label))) & set(labels) - {label}:
            raise UserError(f"{shown_paths(paths)}: the label {shown(label)} joins several labels, "
                            "and a text has one. Train a classifier per label with the labels yes "
                            "and no, or write it without commas, semicolons and bars.")


def _refuse_sentences(path: Path, spec: TaskSpec) -> None:
    """Raises `UserError` if most lines end in a lower-case word that is not a tag."""
    lines = [line.split() for _, line in read_lines(path)]
    last = [cells[-1] for cells in lines if len(cells) > 1]
    plain = [cell for cell in last if cell != cell.upper() and cell not in spec.labels]
    if 2 * len(plain) > len(last):
        raise UserError(f"{path}: lines of several words such as {shown(' '.join(lines[0]))}; to "
                        "tag a sentence write one word per line and an empty line after it, or "
                        f'.jsonl: {{"{spec.texts[0]}": ["He", "runs", "."]}}.')


def _labels_of(example: TextExample | TaggedExample) -> tuple[str, ...]:
    if isinstance(example, TaggedExample):
        return example.tags or ()
    return () if example.label is None else (example.label,)


def _key(row: TableRow, spec: TaskSpec) -> str:
    return row.text(spec.key) if spec.key else str(row.line)


def _label(row: TableRow, column: str) -> str:
    value = row.value(column)
    if isinstance(value, int):  # In JSON, true and 1 are labels too.
        return str(value)
    if value == "":
        raise row.error(f"the label in column {column!r} is empty.")
    return row.text(column)


def _number(row: TableRow, column: str) -> float:
    value = row.value(column)
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise row.error(f"{column!r} must be a number. Received: {shown(row.values[column])}")
    return float(value)


def _list(row: TableRow, column: str) -> list[str]:
    value = row.values[column]
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise row.error(f"{column!r} must be a list of strings, one for each word. Received: "
                        f"{shown(value)}")
    return value
