"""Labels: the forms in which programs write them, notes on mistakes, and weights of classes."""

import ast
import collections
import contextlib
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from electra_tf.core import strict_json
from electra_tf.core.errors import UserError, one_line, shown
from electra_tf.tasks.task import TaskSpec

BALANCED = "balanced"  # Value of `--class_weights` that computes them.
INDICATORS: Mapping[str, bool] = {
    "0": False, "0.0": False, "false": False, "1": True, "1.0": True, "true": True}
"""Value, in lower case, that says if a label applies."""
_MISSING = r"-|\?|nan|NaN|null|NULL|None|<NA>|N/A"
"""Labels that SNLI, pandas and databases write where one is missing."""


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Returns labels sorted, as numbers if all are whole numbers, otherwise as text."""
    labels = sorted(labels)
    are_whole = all(re.fullmatch(r"-?[0-9]{1,15}(\.0+)?", label) for label in labels)
    return tuple(sorted(labels, key=float) if are_whole else labels)


def parsed(value: Any) -> Any:
    """Returns the list that a string is the print of, in JSON or Python; others as they are.

    Dictionaries of `INDICATORS` become the list of the labels that apply.
    """
    text, result = value.strip() if isinstance(value, str) else "", value
    # Python would join the strings of NumPy's print, "['a' 'b']".
    if text.startswith(("[", "(", "{", "set()")) and not re.search(r"""['"]\s+['"]""", text):
        with contextlib.suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            result = ast.literal_eval(text)
        with contextlib.suppress(strict_json.Unreadable):
            result = strict_json.parse(text)
    if isinstance(result, dict):
        applies = {name: INDICATORS.get(str(item).lower()) for name, item in result.items()}
        return value if None in applies.values() else [*filter(applies.get, applies)]
    return list(result) if isinstance(result, tuple | set | list) else value


def are_multi_hot(lists: Sequence[Sequence[Any]]) -> bool:
    """Returns True if all lists have the same length, above 1, and a 0 or 1 for each label."""
    return len({*map(len, lists)}) == 1 and len(lists[0]) > 1 and all(
        str(item).lower() in INDICATORS for items in lists for item in items)


def joined_labels(labels: Collection[str]) -> tuple[str, list[str]]:
    """Returns the mark that joins most labels, and these: they are other labels with it between.

    Of those that "#" or a line end joins, the others need not occur alone, but twice.
    """
    best: tuple[str, list[str]] = "", []
    for mark in sorted({mark for label in labels for mark in re.findall(r"[\W_]+", label)}):
        parts = {label: [*map(str.strip, label.split(mark))]
                 for label in sorted(labels) if mark in label}
        counts = collections.Counter(part for names in parts.values() for part in {*names})
        known = {*labels, *(part for part in counts if counts[part] > 1 and mark in ("#", "\n"))}
        joined = [label for label in parts if known - {""} >= {*parts[label]}]
        best = max(best, (mark, joined), key=lambda pair: len(pair[1]))
    return best


def separators(cells: Collection[str]) -> list[str]:
    """Returns the marks that separate labels in cells: those of `,;|`, or one that joins others.

    It must do so in at least two cells and in half of those that have it; a space in all of them,
    or between 0 and 1.
    """
    if marks := [mark for mark in ",;|" if any(mark in cell for cell in cells)]:
        return marks
    mark, joined = joined_labels(cells)
    count = sum(mark in cell for cell in cells)
    is_sure = mark not in "-_" and len(joined) >= max(2, count if mark == " " else count / 2)
    are_indicators = INDICATORS.keys() >= {part for cell in cells for part in cell.lower().split()}
    if is_sure:
        return [mark]
    return [" "] if are_indicators and any(" " in cell for cell in cells) else []


def notes_on(labels: Collection[str]) -> list[str]:
    """Returns notes on labels that are probably not meant as labels of their own."""
    mark, joined = joined_labels(labels)
    notes = [f"{len(joined):,} labels such as {shown(joined[0])} are others joined by {mark!r}; if "
             "a text can have several, use --task=multilabel with a comma between them"
             ] if joined else []
    groups = collections.defaultdict(list)
    for label in labels:
        folded = "".join(character for character in unicodedata.normalize(
            "NFKC", label.casefold()) if character.isprintable() and not character.isspace())
        is_number = re.fullmatch(r"[+-]?[0-9]{1,15}(\.[0-9]*)?", folded)
        groups[float(folded) if is_number else folded].append(label)
    if equal := [" and ".join(map(shown, group)) for group in groups.values() if group[1:]]:
        notes.append("different labels are equal except for case, spaces, Unicode's forms or the "
                     f"format of numbers: {'; '.join(equal[:5])}")
    if marked := [label for label in labels if re.fullmatch(
            r"""\[.*\]|\(.*\)|\{.*\}|'.+'|".+|.+\"""", label, re.DOTALL)]:
        notes.append(f"brackets or quotes are part of labels: {', '.join(map(shown, marked[:5]))}")
    missing = [label for label in labels if re.fullmatch(_MISSING, label)
               or (label == "-1" and "2" in labels and "-2" not in labels)]
    if missing:
        notes.append(f"{' and '.join(map(repr, missing))} may stand for a missing label, and is "
                     "learned like any other; if so, remove these rows")
    return notes


def balanced_weights(classes: Sequence[str], labels: Iterable[str]) -> tuple[float, ...]:
    """Returns n / (k n_c) for each class, as scikit-learn's `compute_class_weight`.

    Of n labels (of examples or words), n_c are c; k different ones occur. 1 for one that doesn't.
    """
    counts = collections.Counter(labels)
    mean = counts.total() / len(counts)
    return tuple(mean / counts[label] if counts[label] else 1.0 for label in classes)


def given_weights(text: str, spec: TaskSpec) -> tuple[float, ...]:
    """Returns the weights in `--class_weights`, "a=2,b=0.5" or "2,0.5"; () for other values.

    Names are labels or `label_words`. `UserError` unless each label has one finite weight above 0.
    """
    if text in ("", BALANCED):
        return ()
    words = spec.label_words
    parts = [part.rpartition("=") for part in text.split(",")]
    names = [name.strip() for name, _, _ in parts] if "=" in text else [*words]
    index = dict(zip((*words, *spec.labels), 2 * [*range(len(words))], strict=True))
    weights: dict[int | None, float] = {}
    with contextlib.suppress(ValueError):
        weights = {index.get(name): float(number)
                   for name, (_, _, number) in zip(names, parts, strict=True)}
    if (len(weights) < len(words) or None in weights or len(parts) > len(words)
            or not all(0 < weight < math.inf for weight in weights.values())):
        differing = sorted(set(names) - index.keys() | set(words) - set(names))[:5]
        detail = f" Unknown or without a weight: {', '.join(differing)}." if (
            "=" in text and differing) else ""
        raise UserError(f"--class_weights must be {BALANCED}, or a number above 0 for each label, "
                        f"such as {one_line(','.join(f'{word}=1' for word in words), 200)}. "
                        f"Received: {shown(text)}.{detail}")
    return tuple(weights[label] for label in range(len(words)))
