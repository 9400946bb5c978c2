"""Shows the corruption of a sentence: the words filled in, and the discriminator's decisions."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from electra_tf.reporting.tables import wrapped

Outcome = Literal["untouched", "restored", "replaced", "detected", "missed", "false alarm"]

# A word has the first of these outcomes that one of its pieces has.
_ORDER: tuple[Outcome, ...] = (
    "detected", "missed", "replaced", "false alarm", "restored", "untouched")
_COLORS = {"restored": "36", "detected": "32", "missed": "31", "false alarm": "33"}
_MARKS = {"detected": "✓", "missed": "✗", "false alarm": "!"}

LEGEND = (
    "The generator fills in masked words; the discriminator tells replaced words from original "
    "ones.\n"
    "  [chef→cook ✓97%]  replaced and detected, with probability 97 %\n"
    "  [meal→soup ✗12%]  replaced and missed\n"
    "  [again !64%]      original, but falsely detected: a false alarm\n"
    "  {the}             the generator sampled the original word, so it is not replaced"
)
GUESSES_LEGEND = (
    "The network fills in masked words with its best guess.\n"
    "  [chef→cook]  another word\n"
    "  {the}        the original word")  # For a network without a discriminator.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Corruption:
    """One sequence before and after the generator, token by token, without padding."""

    original: Sequence[str]  # WordPieces, "##" before those that continue a word.
    corrupted: Sequence[str]  # WordPieces that the discriminator read.
    selected: Sequence[bool]  # Positions that the generator filled in.
    replaced_probability: Sequence[float] | None = None  # The discriminator's, in [0, 1].

    @classmethod
    def from_arrays(cls, per_example: Mapping[str, np.ndarray], written: np.ndarray,
                  tokens: Sequence[str],
                  replaced_probability: np.ndarray | None = None) -> "list[Corruption]":
        """Returns the rows of an evaluation, padding left out.

        `per_example` has "ids" int32 and "padding_mask" bool [M, L] and, if known, the filled
        positions: "positions" int32 and "predicted" bool [M, N]. `written` int32 [M, L] is the text
        with them, `tokens` the vocabulary; `replaced_probability` is [M, L].
        """
        rows = []
        for row, real in enumerate(per_example["padding_mask"]):
            selected = np.zeros_like(real)
            if "positions" in per_example:
                selected[per_example["positions"][row][per_example["predicted"][row]]] = True
            rows.append(cls(
                original=[tokens[index] for index in per_example["ids"][row][real]],
                corrupted=[tokens[index] for index in written[row][real]],
                selected=list(selected[real]),
                replaced_probability=None if replaced_probability is None else list(
                    replaced_probability[row][real])))
        return rows

    def tokens(self) -> Iterator[tuple[str, str, float, Outcome]]:
        """Yields before, after, probability (0 without a discriminator) and outcome of tokens."""
        unknown = self.replaced_probability is None
        for before, after, selected, probability in zip(
                self.original, self.corrupted, self.selected,
                [0.0] * len(self.original) if unknown else self.replaced_probability, strict=True):
            # A token that differs is a replacement, also where the generator didn't fill it in.
            detected = probability > 0.5
            if before != after:
                outcome = "replaced" if unknown else "detected" if detected else "missed"
            else:
                outcome = "false alarm" if detected else "restored" if selected else "untouched"
            yield before, after, probability, outcome


def summary(sample: Corruption) -> str:
    """Returns the counts of one sequence as a line."""
    counts = [outcome for *_, outcome in sample.tokens()]
    detected, missed = counts.count("detected"), counts.count("missed")
    replaced = detected + missed + counts.count("replaced")
    # A restored token can also be a false alarm.
    restored = sum(selected and before == after for before, after, selected in zip(
        sample.original, sample.corrupted, sample.selected, strict=True))
    filled = f"{restored + replaced} of {len(counts)} tokens filled in: {restored} as they were"
    if sample.replaced_probability is None:
        return f"{filled}, {replaced} otherwise"
    alarms = counts.count("false alarm")
    return (f"{filled}, {replaced} replaced ({detected} detected, {missed} missed); "
            f"{alarms} false alarm{'' if alarms == 1 else 's'}")


def terminal_page(samples: Sequence[Corruption], *, color: bool = False) -> str:
    """Returns the legend and samples in lines of 100 columns; `color` adds ANSI codes.

    The last line has mean probabilities: early in training none exceeds one half, yet replaced
    tokens already stand out.
    """
    views = []
    for number, sample in enumerate(samples, start=1):
        words = [f"\x1b[{_COLORS[outcome]}m{mark}\x1b[0m" if color and outcome in _COLORS else mark
                 for mark, outcome in _marked_words(sample)]
        views.append("\n".join([f"{number}. {summary(sample)}", *wrapped(words, "  ")]))
    if all(sample.replaced_probability is None for sample in samples):
        return "\n\n".join([GUESSES_LEGEND, *views])
    # Mean probabilities of replaced and of original tokens, over all samples.
    tokens = [token for sample in samples for token in sample.tokens()]
    replaced, original = ([probability for before, after, probability, _ in tokens
                           if (before != after) is different] for different in (True, False))
    means = [f"{np.mean(values):.1%}" if values else "-" for values in (replaced, original)]
    return "\n\n".join([LEGEND, *views, "Mean probability of being a replacement: {} for replaced "
                        "tokens, {} for original ones.".format(*means)])


def _marked_words(sample: Corruption) -> Iterator[tuple[str, Outcome]]:
    """Yields whole words with their marks, without [CLS] and the last [SEP]."""
    # Words are a piece and those that continue it.
    tokens = list(sample.tokens())
    starts = [index for index, token in enumerate(tokens) if not index or not _continues(token[0])]
    for start, stop in zip(starts, [*starts[1:], len(tokens)], strict=True):
        pieces = tokens[start:stop]
        before, after = (pieces[0][side] + "".join(
            piece[side][2:] if _continues(piece[side]) else f" {piece[side]}"
            for piece in pieces[1:]) for side in (0, 1))
        if (before, start) == ("[CLS]", 0) or (before, stop) == ("[SEP]", len(tokens)):
            continue
        # The word's outcome is that of its replaced pieces, or of all if it kept them.
        counted = [piece for piece in pieces if piece[0] != piece[1]] or pieces
        outcome = min((piece[3] for piece in counted), key=_ORDER.index)
        percent = (f" {_MARKS[outcome]}{max(piece[2] for piece in counted):.0%}"
                   if outcome in _MARKS else "")
        yield {"false alarm": f"[{before}{percent}]", "restored": f"{{{before}}}",
               "untouched": before}.get(outcome, f"[{before}→{after}{percent}]"), outcome


def _continues(piece: str) -> bool:
    return piece.startswith("##") and len(piece) > 2


def select_readable(texts: Sequence[Sequence[str]], count: int) -> list[int]:
    """Returns the indices of the most readable texts out of `count` parts of all, in order.

    Texts of different parts are mostly of different documents; so the last quarter of a part, next
    to the next part, is left out.
    """
    def readable(index: int) -> float:  # The fraction of tokens that are words of letters.
        text = [token for token in texts[index] if token not in ("[CLS]", "[SEP]")]
        return sum(token.isalpha() for token in text) / max(1, len(text))

    parts = np.array_split(np.arange(len(texts)), min(count, len(texts)) or 1)
    return [int(max(part[:max(1, 3 * len(part) // 4)], key=readable))
            for part in parts if part.size]
