"""Reads the user's own files: tables of texts, and sentences with a tag per word."""

import collections
import contextlib
import dataclasses
import functools
import itertools
import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from electra_tf.core.errors import UserError, shown
from electra_tf.core.storage import Path
from electra_tf.tasks import tables
from electra_tf.tasks.column_files import read_columns
from electra_tf.tasks.labels import INDICATORS, are_multi_hot, in_order, parsed, separators
from electra_tf.tasks.tables import TableRow
from electra_tf.tasks.tag_schemes import as_iob2, as_known, scheme_name, span_parts
from electra_tf.tasks.task import Example, Kind, TaggedExample, TaskSpec, TextExample

PAIRS = (" (to read pairs with a model of transformers: python -m "
         "electra_tf.apps.tools.convert_checkpoint --from=MODEL --to=NEW --to_format=run "
         "--text_columns=text,text_pair)")
"""Part of the message for a pair that a model of one text receives."""
HELD_OUT = 10
"""Without a file for dev, one of `HELD_OUT` training examples is scored and not trained on."""
_JSON = re.compile(r'[\[{][\[{\s]*"[^"\n]*"\s*[]:,]')
_COMMAS = ("a tagger reads columns that are separated by tabs or spaces, not commas, or .jsonl; "
           "save the table as tab-separated text, without quotes")
_OTHER_FORMATS = {
    r"(?m)^T\d+\t\S+ \d+ \d+[;\t]": "annotations of BRAT, whose tools/anntoconll.py writes "
    "columns from them and their .txt, for --text_columns=4 --label_column=1",
    r"(?i)\A<(\?xml version|!doctype html|html[^>\n]*>\n)":
        "XML or HTML; write one word and its tag per line",
    r"\A#begin document .*\n\S+\s+\d+\s+\d+\s": "CoNLL-2012, whose spans are in brackets; `grep -v "
    "'^#' FILE | awk '{print $4, $5}'` writes words and parts of speech",
    # All lines have a comma, none a tab, and the first names a column or none has a space.
    r"(?i)\A(?=.*\b(word|token|form)s?\b|[^ ]*\Z)([^\t\n,]*+,[^\t\n]*+(\n|\Z)){2,}+\Z": _COMMAS}
"""Content that is no column file -> what it is, and what to do."""
_UNKNOWN_LABEL = "a label that the task lacks, which is left out"
_REPEATED_KEY = "the key of an earlier row; predictions keep all rows, in their order"
_SPANS = ("JSON of Label Studio, Prodigy, doccano or spaCy has texts with spans instead: export "
          "CoNLL2003, or split texts and spans by spacy.training.offsets_to_biluo_tags.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Files:
    """The user's own files, or files that replace a benchmark's; several are read as one."""

    train: Sequence[Path] = ()
    dev: Sequence[Path] = ()
    """Examples to score; without them some of the training examples are held out."""
    num_folds: int = 0
    """Folds of a cross-validation, for which no examples are held out."""
    test: Sequence[Path] = ()
    """Examples to predict; labels may be missing."""
    unlabelled: Sequence[Path] = ()
    """Texts that only a teacher labels; their labels are not used."""
    text_columns: tuple[str, ...] = ()
    """This field and the next two select columns as in `TaskSpec`; empty for the task's own."""
    label_column: str = ""
    key_column: str = ""
    dev_text_columns: tuple[str, ...] = ()
    """Columns of the pairs of `dev` and `test`, for sentence embeddings."""

    def select(self, spec: TaskSpec) -> TaskSpec:
        """Returns a task with the columns of these files; `UserError` for another number."""
        if self.text_columns and len(self.text_columns) != len(spec.text_columns):
            raise UserError(f"--text_columns={','.join(self.text_columns)}: the task {spec.name} "
                            f"reads {len(spec.text_columns)} text(s) per example"
                            f"{PAIRS if len(self.text_columns) == 2 else ''}.")
        return dataclasses.replace(spec, **{
            name: getattr(self, name) or getattr(spec, name)
            for name in ("text_columns", "label_column", "key_column")})


def fold_numbers(examples: Sequence[Example], num_folds: int) -> np.ndarray:
    """Returns the fold of every example, int [N] from 0; some are empty for too few examples.

    The folds are stratified by label or number and depend on the examples alone. Equal texts and
    questions about one context stay together.
    """
    # Groups of examples that stay together, in random order, sorted by label.
    groups: dict[Any, list[int]] = {}
    for index, example in enumerate(examples):
        groups.setdefault(getattr(example, "context", example.texts), []).append(index)
    members = list(groups.values())
    shuffled = [members[index] for index in np.random.default_rng(0).permutation(len(groups))]
    if all(getattr(examples[group[0]], "label", None) is not None for group in members):
        # The sort is stable, so the order within a label stays random.
        shuffled.sort(key=lambda group: examples[group[0]].label)
    # Folds take turns along this order.
    numbers = np.zeros(len(examples), int)
    for position, group in enumerate(shuffled):
        numbers[group] = position % min(num_folds, len(groups))
    return numbers


def hold_out(examples: Sequence[Example]) -> tuple[list[Example], list[Example], str]:
    """Returns the examples to train on, those to score, both in their order, and a note.

    The choice is a fold of `fold_numbers`. `UserError` for fewer than two different texts.
    """
    numbers = fold_numbers(examples, HELD_OUT)
    chosen = numbers == (numbers.max() + 1) // 2
    train, dev = ([*itertools.compress(examples, marked)] for marked in (~chosen, chosen))
    if not train:
        reason, = _long_sentence(examples) or [f"{len(examples):,} examples with the same text"]
        raise UserError("--dev is needed: the training file is too small to hold examples out; "
                        f"{reason}.")
    return train, dev, (f"without --dev {len(dev):,} of {len(examples):,} training examples are "
                        "held out as dev, the same ones in every run")


def read_texts(path: Path, spec: TaskSpec, *, labelled: bool = True,
               columns: Sequence[str] | None = None, published: bool = False,
               notes: list[str] | None = None) -> Iterator[TextExample]:
    """Yields the rows of a table; labels are texts, numbers for regression, or sets.

    They may be the task's `label_words`. `labelled=False` makes them optional and also reads
    `.txt`. `columns`, `published`, `notes` and `UserError` as in `read_rows`; `UserError` also for
    a wrong label.
    """
    # A text per line, or rows with the selected columns.
    if tables.suffix_of(path) == ".txt":
        if labelled:
            raise UserError(f"{path}: lines of .txt have no labels; --train and --dev take .tsv, "
                            ".csv and .jsonl with a column for the label.")
        columns, spec = spec.text_columns, dataclasses.replace(spec, key_column="")
    labels = label_columns(spec.kind, spec.label_column)
    known = dict(zip((*spec.label_words, *spec.labels), 2 * spec.labels, strict=True))
    selected = () if columns else filter(
        None, (*spec.text_columns, *(labels if labelled else ()), spec.key_column))
    rows = functools.partial(tables.read_rows, path, columns=columns, selected=tuple(selected),
                             published=published)

    # How a label is read depends on the kind, a set of labels on all rows.
    counts: collections.Counter[str] = collections.Counter()
    read_label = {  # Those of pairs of sentence embeddings are texts if they are optional.
        Kind.REGRESSION: _number, Kind.MULTILABEL: _indicators,
        Kind.SENTENCE_EMBEDDINGS: _number if labelled else _label}.get(spec.kind, _label)
    if read_label is _label:
        read_label = functools.partial(_label, known=known, counts=counts)
    elif spec.kind is Kind.MULTILABEL and len(labels) == 1:
        read_label = functools.partial(
            _label_set, sets=_label_sets(path, labels[0], rows(), known, notes))

    # The rows, with counts of what was converted or left out.
    num_rows, keys = 0, set[str]()
    for row in rows(notes=notes):
        num_rows += 1
        if labelled and row.values.get("answer") in ("reject", "ignore") and "answer" not in (
                *spec.text_columns, *labels):
            raise row.error("Prodigy's answer is not \"accept\", so the label may not apply; keep "
                            "the accepted rows, for example with `grep '\"accept\"'`.")
        key = _key(row, spec)
        if spec.key_column:
            counts[_REPEATED_KEY] += key in keys
            keys.add(key)
        label = None
        with contextlib.nullcontext() if labelled else contextlib.suppress(UserError):
            label = read_label(row, *labels)
        if not labelled and known and isinstance(label, str) and label not in known:
            counts[_UNKNOWN_LABEL], label = counts[_UNKNOWN_LABEL] + 1, None
        texts = tuple(map(row.text, spec.text_columns))
        if not all(map(str.strip, texts)):
            counts["an empty text; training leaves them out, predictions keep them"
                   if is_empty(texts, spec.kind) else "one empty text, and are used"] += 1
        yield TextExample(key=key, label=known.get(label, label), texts=texts)
    if notes is not None and not published:
        notes += [f"{path}: {count:,} of {num_rows:,} rows have {what}"
                  for what, count in counts.items() if count]


def is_empty(texts: Sequence[str], kind: Kind) -> bool:
    """Returns True for texts of spaces alone; for sentence embeddings one of them is enough."""
    blank = [not text.strip() for text in texts]
    return any(blank) if kind is Kind.SENTENCE_EMBEDDINGS else all(blank)


def unused_labels(paths: Sequence[Path], spec: TaskSpec) -> dict[str, set[str]]:
    """Returns up to 3 values of each other column that has 0 and 1 or is named like labels."""
    columns = collections.defaultdict(set)
    for row in itertools.chain(*(tables.read_rows(path, selected=spec.text_columns)
                                 for path in paths if tables.suffix_of(path) != ".txt")):
        for name, value in row.values.items():
            if name not in (*spec.text_columns, spec.key_column) and len(columns[name]) < 3:
                columns[name].add(str(value))
    return {name: values for name, values in columns.items()
            if name == spec.label_column or tables.is_label_name(name)
            or {INDICATORS.get(value.lower()) for value in values} == {False, True}}


def label_columns(kind: Kind, names: str) -> list[str]:
    """Returns the column of labels, or several columns that say with 0 and 1 which labels apply."""
    return [*dict.fromkeys(map(str.strip, names.split(",")))
            ] if kind is Kind.MULTILABEL else [names]


def read_tagged(path: Path, spec: TaskSpec, *, labelled: bool = True,
                notes: list[str] | None = None) -> list[TaggedExample]:
    """Returns the sentences of JSON with lists of words and tags, or of column files.

    Tags of spans become IOB2, or those of a model. `labelled=False` makes tags optional.
    `UserError` for missing keys or columns, for tags that can't be read, and for plain sentences
    or another format in the place of columns.
    """
    # JSON, or columns; plain sentences to tag would be read as words with tags.
    tag_notes: list[str] = []
    if (rows := _json_rows(path)) is not None:
        examples = tagged_examples(rows, spec, labelled=labelled)
    else:
        if not (labelled or spec.text_columns[0].isdecimal()):
            lines = [re.split("[ \t]+", line.strip(" \t")) for _, line in tables.read_lines(path)]
            last = [cells[-1] for cells in lines if len(cells) > 1 and cells[0][:1] != "#"]
            no_tags = [cell for cell in last if cell != cell.upper() and cell not in spec.labels]
            if 2 * len(no_tags) > len(last):  # Most are lower-case words.
                raise UserError(
                    f"{path}: lines of several words such as {shown(' '.join(lines[0]))}; to tag a "
                    "sentence write one word per line and an empty line after it, or "
                    f'.jsonl: {{"{spec.text_columns[0]}": ["He", "runs", "."]}}.')
        examples = read_columns(path, spec.text_columns[0], spec.label_column, spec.key_column,
                                tagged=labelled, notes=tag_notes)
    # Tags in one scheme, and a note on what was read.
    examples = in_iob2(path, examples, spec.labels, tag_notes)
    tag_notes += _long_sentence(examples)
    words = {word for example in examples for word in example.words}
    if (prefix := os.path.commonprefix([*words])) and len(words) >= 10:  # WikiANN's "en:".
        tag_notes.append(f"every word begins with {prefix!r}; remove it if it is a mark")
    if repeated := len(examples) - len({example.key for example in examples}):
        tag_notes.append(f"{repeated:,} of {len(examples):,} rows have {_REPEATED_KEY}")
    if notes is not None and tag_notes:
        notes.append(f"{path}: {'; '.join(tag_notes)}")
    return examples


def _json_rows(path: Path) -> Iterable[TableRow] | None:
    """Returns the rows of JSON, in lines or in one list, or None for columns."""
    if tables.suffix_of(path) == ".jsonl":
        return tables.read_rows(path)
    content = "\n".join(line for _, line in tables.read_lines(path) if line.strip()).lstrip()
    if _JSON.match(content):
        return tables.json_rows(path)
    problems = [problem for form, problem in _OTHER_FORMATS.items() if re.search(form, content)]
    are_commas = tables.suffix_of(path) == ".csv" and any(
        line and "\t" not in line for line in content.split("\n"))
    if problems or are_commas:
        raise UserError(f"{path}: {[*problems, _COMMAS][0]}.")
    return None


def _long_sentence(examples: Sequence[Example]) -> list[str]:
    """Returns a note on a sentence to tag that probably is several."""
    longest = max(len(getattr(example, "words", ())) for example in examples)
    if longest <= (50 if len(examples) == 1 else 150):  # CoNLL-2003's longest has 124 words.
        return []
    return [f"one sentence of {longest:,} words: in column files an empty line ends a sentence"]


def tagged_examples(rows: Iterable[TableRow], spec: TaskSpec, *,
                    labelled: bool) -> list[TaggedExample]:
    """Returns the sentences of rows with lists of words and tags; see `read_tagged`."""
    # A number selects a column of column files; in JSON lines it stands for the default key.
    text, label = (default if name.isdecimal() else name for name, default in (
        (spec.text_columns[0], "text"), (spec.label_column, "label")))
    examples = []
    for row in rows:
        has_tags = label in row.values
        if text not in row.values or (labelled and not has_tags):
            tags_key = f" and a list of tags in {label!r}" if labelled else ""
            raise row.error(f"a sentence needs a list of words in {text!r}{tags_key}; "
                            "--text_columns and --label_column select other keys. "
                            f"Received the keys: {', '.join(row.values)}. {_SPANS}")
        words = _list(row, text)
        tags = _list(row, label) if has_tags else words
        if not words or len(tags) != len(words):
            raise row.error(f"{len(words)} words and {len(tags)} tags; there must be at least "
                            "one word, and a tag for each.")
        examples.append(TaggedExample(key=_key(row, spec), words=tuple(words),
                                      tags=tuple(tags) if has_tags else None))
    return examples


def in_iob2(source: object, examples: Sequence[TaggedExample], known: Collection[str],
            notes: list[str]) -> list[TaggedExample]:
    """Returns sentences with tags of spans in IOB2, or in the scheme of a model's known tags.

    `notes` receives a line about the scheme. `UserError` for tags that don't fit to the others.
    """
    # Tags that are in the model's scheme stay as they are. IOBES has all letters of IOB and IOE.
    tagged = [example.tags for example in examples if example.tags is not None]
    present = set(label_set(examples))
    scheme = {tag: letter for tag, (letter, _) in span_parts(known)[0].items()}
    letters = {letter for tag, letter in scheme.items() if tag in present}
    if not present or (present <= set(known) and not letters <= set("BIO") and not (
            letters <= set("IEO") and "S" in scheme.values())):
        return list(examples)
    if any("(" in tag and "*" in tag for tag in present):
        raise UserError(f"{source}: tags such as {max(present)!r} in the bracket notation of "
                        "CoNLL-2005 and 2012; write them as B-, I- and O.")

    # The letter and type of every tag; without them the tags are scored per word.
    parts, form, odd = span_parts(present)
    if odd:
        key = next(example.key for example in examples if odd[0] in (example.tags or ()))
        raise UserError(f"{source}:{key}: the tag {shown(odd[0])} is neither O nor a letter and a "
                        "type, such as B-PER, as most tags are; correct it, or select the tags "
                        "with --label_column.")
    if not parts:
        notes.append("tags without B-, I- or another mark of spans, scored per word")
        return list(examples)

    # Every sentence in IOB2, with a count of the tags that this changes.
    converted = [example if example.tags is None else dataclasses.replace(
        example, tags=as_known(as_iob2(example.tags, parts), known)) for example in examples]
    changed = sum(old != new for before, after in zip(examples, converted, strict=True)
                  for old, new in zip(before.tags or (), after.tags or (), strict=True))
    notes.append(f"tags in {scheme_name(parts, form)}" + (
        f"; {changed:,} of {sum(map(len, tagged)):,} rewritten as "
        + ("the model's tags" if known else "IOB2") if changed else ""))
    return converted


def label_set(examples: Sequence[TextExample | TaggedExample]) -> tuple[str, ...]:
    """Returns the distinct labels or tags, sorted."""
    return in_order({label for example in examples for label in labels_of(example)})


def check_labels(source: object, examples: Sequence[TextExample | TaggedExample],
                 known: Collection[str], notes: list[str] | None = None) -> None:
    """Adds notes on labels that are not among the known ones, and on those of no text or all.

    `UserError` for an unknown label without `notes`, or if no label is known.
    """
    # Labels of multi-label classification without positives or negatives.
    counts = collections.Counter(label for example in examples for label in labels_of(example))
    ranking = ""
    if any(isinstance(getattr(example, "label", None), tuple) for example in examples):
        ranking = "; ROC AUC and average precision leave them out"
        constant = [label for label in known if counts[label] in (0, len(examples))]
        if constant:
            notes.append(f"{source}: all texts or no texts have these labels, so they are not "
                         "learned, or left out of ROC AUC and average precision: "
                         f"{', '.join(constant[:20])}")
    # Labels that are not known.
    unknown = collections.Counter({label: counts[label] for label in counts if label not in known})
    if not unknown:
        return
    if notes is None or set(label_set(examples)).isdisjoint(known):
        key, label = next((example.key, label) for example in examples
                          for label in labels_of(example) if label in unknown)
        raise UserError(f"{source}: {key}: the label {shown(label)} isn't among the labels of the "
                        f"training file: {', '.join(in_order(known)[:20])}.")
    names = ", ".join(f"{shown(label)[1:-1]} ({count:,})"
                      for label, count in unknown.most_common(8))
    notes.append(f"{source}: {unknown.total():,} labels that training never shows count as missed: "
                 f"{names}{(', ...' if len(unknown) > 8 else '')}{ranking}")


def notes_on_copies(train: Sequence[Example], dev: Sequence[Example]) -> list[str]:
    """Returns notes on equal texts with different labels, and on texts of dev that train has."""
    labels = collections.defaultdict(set)
    for example in (*train, *dev):
        if (target := target_of(example)) is not None:
            labels[example.texts].add(target)
    differing = [texts for texts, found in labels.items()
                 if len(found) > 1 and any(map(str.strip, texts))]
    notes = [f"texts that occur with different labels: {len(differing):,}, such as "
             f"{shown(' '.join(differing[0]))}"] if differing else []
    trained = {example.texts for example in train}
    copies = sum(not trained.isdisjoint((example.texts, example.texts[::-1]))  # Swapped pairs too.
                 for example in dev)
    if copies:
        notes.append(f"{copies:,} of {len(dev):,} examples of dev have texts that are also "
                     "trained, so the scores may be too high")
    return notes


def target_of(example: Example) -> Any:
    """Returns the label, number, labels or tags; None if they are unknown, and for questions."""
    return getattr(example, "label", getattr(example, "tags", None))


def labels_of(example: TextExample | TaggedExample) -> tuple[str, ...]:
    """Returns the label of a text, or the tags of a sentence; none if they are unknown."""
    target = target_of(example)
    return target if isinstance(target, tuple) else () if target is None else (target,)


def _key(row: TableRow, spec: TaskSpec) -> str:
    if not spec.key_column:
        return str(row.line)
    value = row.value(spec.key_column)
    return str(value) if isinstance(value, int) else row.text(spec.key_column)


def _label(row: TableRow, column: str, *, known: Collection[str],
           counts: collections.Counter[str]) -> str:
    """Returns a label; `known` ones stay as they are, and `counts` receives what was converted."""
    value = row.value(column)
    labels = parsed(value)
    if isinstance(labels, list) and len(labels) == 1 and str(value) not in known:
        counts["a list of one label, which is read as the label"] += 1
        value = labels[0]
    elif isinstance(labels, list) and not isinstance(value, str):
        raise row.error(f"a text has one label with --task=classification, and {column!r} is "
                        f"a list; use --task=multilabel. Received: {shown(value)}")
    if isinstance(value, int | float):  # In JSON, true and 1 are labels too.
        return str(value)
    if not isinstance(value, str):
        raise row.wrong(column, "text")
    if not value.strip():
        raise row.error(f"the label in column {column!r} is empty.")
    if value in known or value == value.strip():
        return value
    counts["spaces around the label, which are removed"] += 1
    return value.strip()


def _indicators(row: TableRow, *columns: str) -> tuple[str, ...]:
    """Returns the columns that have a 1."""
    applies = {column: INDICATORS.get(str(row.value(column)).strip().lower()) for column in columns}
    if None in applies.values():
        raise row.wrong(next(column for column in columns if applies[column] is None), "0 or 1")
    return tuple(filter(applies.get, columns))


def _label_set(row: TableRow, column: str, *, sets: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the labels of a list, sorted."""
    labels = sets[repr(row.value(column))]
    if not isinstance(labels, list) or len({*map(str, labels)}) < len(labels) or not all(
            isinstance(label, str | int) and str(label).strip() for label in labels):
        raise row.wrong(column, "a list of different labels, none of them empty (in a table: "
                        "sports,money), or of 0 and 1 for each label, in every row of one length")
    return in_order(map(str, labels))


def _label_sets(path: Path, column: str, rows: Iterable[TableRow], known: Collection[str],
                notes: list[str] | None) -> dict[str, Any]:
    """Returns the list of labels of every value, by its `repr`; values that have none stay.

    All rows decide what separates labels, or if they are 0 and 1, and a note says so. Labels that
    are `known` are not split.
    """
    # Lists, also printed ones, and the other cells of a table, which are text.
    values = {repr(value): value for value in (row.values.get(column) for row in rows)}
    sets = {key: parsed(value) for key, value in values.items()}
    is_printed = any(isinstance(values[key], str | dict) and isinstance(labels, list)
                     for key, labels in sets.items())
    cells = {key: value.strip() for key, value in sets.items()
             if isinstance(value, str) and tables.suffix_of(path) in (".tsv", ".csv")}

    # What all cells have in common: 0 or 1, or a mark between labels.
    unknown = {*cells.values()} - {*known}
    indicators = {cell: INDICATORS.get(cell.lower()) for cell in unknown - {""}}
    are_indicators = True in indicators.values() and None not in indicators.values()
    marks = separators(unknown - {""})
    if len(marks) > 1:
        raise UserError(f"{path}: column {column!r} has {' and '.join(map(repr, marks))}; separate "
                        "labels by one of them, which no label has, or write lists in .jsonl.")
    forms = ["0 and 1" if are_indicators else f"labels separated by {marks[0]!r}" if marks else
             "one label in a cell, or none"] if unknown else []

    # Every value becomes a list of labels, except cells that look like a damaged list. A number of
    # JSON is 0 or 1, if there are no lists, where it would be a label.
    numbers = {key: INDICATORS.get(str(value).lower()) for key, value in sets.items()
               if isinstance(value, int | float)}
    if numbers and None not in numbers.values() and not any(
            isinstance(value, list) for value in sets.values()):
        sets |= {key: [column] * applies for key, applies in numbers.items()}
        forms = ["0 and 1"]
    for key, value in sets.items():
        if isinstance(value, list):
            sets[key] = [label.strip() if isinstance(label, str) and label not in known else label
                         for label in value]
    for key, cell in cells.items():
        if are_indicators and cell in indicators:
            sets[key] = [column] * indicators[cell]
        elif not cell and not are_indicators:
            sets[key] = []
        elif cell and not cell.startswith("["):
            is_joined = marks and cell in unknown
            sets[key] = [*map(str.strip, cell.strip(marks[0]).split(marks[0]))
                         ] if is_joined else [cell]

    # Lists of 0 and 1 for each label, rather than of numbers of labels, have one length.
    lists = [labels for labels in sets.values() if isinstance(labels, list)]
    if are_multi_hot(lists) and {*known} <= {*map(str, range(len(lists[0])))}:
        sets |= {key: [str(index) for index, item in enumerate(labels) if INDICATORS[
            str(item).lower()]] for key, labels in sets.items() if isinstance(labels, list)}
        forms = ["lists of 0 and 1 for each label; the labels are named 0, 1 and so on"]
    if is_printed:
        forms.append("printed lists or objects, which are read")
    if notes is not None and forms:
        notes.append(f"{path}: column {column!r} has {'; '.join(forms)}")
    return sets


def _number(row: TableRow, column: str) -> float:
    value = row.value(column)
    if isinstance(value, str) and "_" not in value:  # Python alone reads 1_5 as 15.
        with contextlib.suppress(ValueError):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise row.wrong(column, "a number")
    return float(value)


def _list(row: TableRow, column: str) -> list[str]:
    value = row.values[column]
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        fix = f". {_SPANS}" if isinstance(value, str) else ""
        if isinstance(value, list) and {*map(type, value)} == {int}:
            fix = ("; if these are indices of a ClassLabel, write the names that "
                   f"dataset.features[{column!r}].feature.int2str returns.")
        raise row.error(f"{column!r} must be a list of strings, one for each word. Received: "
                        f"{shown(value)}{fix}")
    return value
