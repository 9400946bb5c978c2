"""Shows the corruption of a sentence: the words filled in, and the discriminator's verdicts."""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

Outcome = Literal["untouched", "restored", "replaced", "caught", "missed", "false alarm"]

_WEIGHT: tuple[Outcome, ...] = ("caught", "missed", "replaced", "false alarm", "restored",
                                "untouched")
"""Of the outcomes of a word's pieces, the first one here is the word's."""
_COLOURS = {"restored": "36", "caught": "32", "missed": "31", "false alarm": "33"}
_MARKS = {"caught": "✓", "missed": "✗", "false alarm": "!"}

LEGEND = (
    "The generator fills in hidden words; the discriminator says which words are not the "
    "original ones.\n"
    "  [chef→cook ✓97%]  replaced, and caught: 97 % sure that it is a replacement\n"
    "  [meal→soup ✗12%]  replaced, and missed\n"
    "  [again !64%]      original, and wrongly accused: a false alarm\n"
    "  {the}             the generator found the original word, so nothing was replaced"
)
"""Explains the marks; printed once above the samples."""
GUESSES_LEGEND = (
    "The network fills in hidden words with its best guess.\n"
    "  [chef→cook]  another word than the one that stood there\n"
    "  {the}        the right one")
"""Explains the marks of a network without a discriminator."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Corruption:
    """One sequence before and after the generator, token by token, without padding.

    Raises:
        ValueError: the four fields differ in length.
    """

    original: Sequence[str]
    """WordPieces, "##" before those that continue a word."""
    corrupted: Sequence[str]
    """WordPieces that the discriminator read."""
    selected: Sequence[bool]
    """Whether the generator filled in this position."""
    replaced_probability: Sequence[float] | None = None
    """The discriminator's probability, in [0, 1], that the token is not the original one; None
    where there is no discriminator."""

    def __post_init__(self):
        lengths = {name: len(values) for name, values in vars(self).items() if values is not None}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"all fields must have one length. Received: {lengths}")

    @classmethod
    def of_arrays(cls, details: Mapping[str, np.ndarray], written: np.ndarray,
                  tokens: Sequence[str],
                  replaced_probability: np.ndarray | None = None) -> "list[Corruption]":
        """Returns the rows of an evaluation, padding left out.

        Args:
            details: "ids" int32 and "valid" bool [M, L]; "positions" int32 and "predicted" bool
                [M, N], which positions were filled in; without them none is marked.
            written: int32 [M, L], the text after that.
            tokens: the vocabulary.
            replaced_probability: [M, L], if something judged.
        """
        found = []
        for row, real in enumerate(details["valid"]):
            selected = np.zeros_like(real)
            if "positions" in details:
                selected[details["positions"][row][details["predicted"][row]]] = True
            found.append(cls(
                original=[tokens[index] for index in details["ids"][row][real]],
                corrupted=[tokens[index] for index in written[row][real]],
                selected=list(selected[real]),
                replaced_probability=None if replaced_probability is None else list(
                    replaced_probability[row][real])))
        return found

    def words(self) -> "Iterator[Word]":
        """Yields whole words, without [CLS] and the last [SEP]."""
        tokens = list(self.tokens())
        starts = [index for index, token in enumerate(tokens)
                  if not index or not _continues(token[0])]
        for start, stop in zip(starts, [*starts[1:], len(tokens)], strict=True):
            word = Word.of_pieces(tokens[start:stop])
            if (word.before, start) != ("[CLS]", 0) and (word.before, stop) != (
                    "[SEP]", len(tokens)):
                yield word

    def tokens(self) -> Iterator[tuple[str, str, float, Outcome]]:
        """Yields before, after, probability (0 without a discriminator) and outcome of tokens."""
        judged = self.replaced_probability is not None
        for before, after, chosen, probability in zip(
                self.original, self.corrupted, self.selected,
                self.replaced_probability if judged else [0.0] * len(self.original), strict=True):
            yield before, after, probability, _outcome(
                before != after, chosen, probability > 0.5, judged=judged)


class Word(NamedTuple):
    """A word of the original and what replaced it."""

    before: str
    after: str
    """The pieces that the discriminator read; several words where pieces became words."""
    probability: float
    """The largest of the word's replaced tokens, or of all if none was replaced."""
    outcome: Outcome
    """Caught if the discriminator accuses one of its replaced tokens."""

    @classmethod
    def of_pieces(cls, pieces: Sequence[tuple[str, str, float, Outcome]]) -> "Word":
        """Joins tokens as `Corruption.tokens` yields them."""
        before, after = (pieces[0][side] + "".join(
            piece[side][2:] if _continues(piece[side]) else f" {piece[side]}"
            for piece in pieces[1:]) for side in (0, 1))
        counted = [piece for piece in pieces if piece[0] != piece[1]] or pieces
        return cls(before, after, max(piece[2] for piece in counted),
                   min((piece[3] for piece in counted), key=_WEIGHT.index))


def summary(sample: Corruption) -> str:
    """Returns the counts of one sequence as a line."""
    counts = [outcome for *_, outcome in sample.tokens()]
    caught, missed = counts.count("caught"), counts.count("missed")
    replaced = caught + missed + counts.count("replaced")
    # A restored token can also be a false alarm.
    restored = sum(chosen and before == after for before, after, chosen in zip(
        sample.original, sample.corrupted, sample.selected, strict=True))
    filled = f"{restored + replaced} of {len(counts)} tokens filled in: {restored} as they were"
    if sample.replaced_probability is None:
        return f"{filled}, {replaced} otherwise"
    alarms = counts.count("false alarm")
    return (f"{filled}, {replaced} replaced ({caught} caught, {missed} missed); "
            f"{alarms} false alarm{'' if alarms == 1 else 's'}")


def suspicion(samples: Sequence[Corruption]) -> str:
    """Returns how suspicious replaced and original tokens look on average, as a line.

    Early in training no probability exceeds one half, yet replaced tokens already stand out.
    """
    seen = [(before != after, probability) for sample in samples
            for before, after, probability, _ in sample.tokens()]
    means = []
    for wanted in (True, False):
        values = [probability for replaced, probability in seen if replaced is wanted]
        means.append(f"{sum(values) / len(values):.1%}" if values else "-")
    return (f"On average the discriminator suspects a replaced token to {means[0]} and an original "
            f"one to {means[1]}.")


def terminal_view(sample: Corruption, *, width: int = 100, colour: bool = False) -> str:
    """Returns one sequence as wrapped text with marks, under a line of counts.

    Args:
        sample: what was read and what was said about it.
        width: columns of the terminal, at least 40.
        colour: whether to add ANSI colours; `sys.stdout.isatty()` knows.
    """
    def paint(word: Word) -> str:
        code = _COLOURS.get(word.outcome)
        return f"\x1b[{code}m{_mark(word)}\x1b[0m" if colour and code else _mark(word)

    words = list(map(paint, sample.words()))
    return "\n".join([summary(sample), *_wrap(words, width=width, indent="  ")])


def readable(tokens: Sequence[str]) -> float:
    """Returns how much of a text is whole words of letters, in [0, 1].

    >>> readable(["[CLS]", "the", "cat", "sat", ".", "[SEP]"]), readable(["(", "3", "##x", "|"])
    (0.75, 0.0)
    """
    text = [token for token in tokens if token not in ("[CLS]", "[SEP]")]
    return sum(token.isalpha() for token in text) / max(1, len(text))


def spread(texts: Sequence[Sequence[str]], count: int) -> list[int]:
    """Returns the indices of the most readable texts out of `count` parts of all, in order.

    Consecutive texts are mostly of one document, so texts of different parts are mostly of
    different documents; the last quarter of a part is left out, which is next to the next part.
    """
    parts = np.array_split(np.arange(len(texts)), min(count, len(texts)) or 1)
    return [int(max(part[:max(1, 3 * len(part) // 4)], key=lambda index: readable(texts[index])))
            for part in parts if part.size]


def terminal_page(samples: Sequence[Corruption], *, width: int = 100, colour: bool = False) -> str:
    """Returns the legend and every sample, ready to print; arguments as `terminal_view`'s."""
    views = [f"{number}. {terminal_view(sample, width=width, colour=colour)}"
             for number, sample in enumerate(samples, start=1)]
    if all(sample.replaced_probability is None for sample in samples):
        return "\n\n".join([GUESSES_LEGEND, *views])
    return "\n\n".join([LEGEND, *views, suspicion(samples)])


def markdown_page(samples: Sequence[Corruption]) -> str:
    """Returns the same as Markdown, for TensorBoard."""
    return f"```\n{terminal_page(samples)}\n```"


def _outcome(replaced: bool, selected: bool, accused: bool, *, judged: bool) -> Outcome:
    if replaced and not judged:
        return "replaced"
    if replaced:
        return "caught" if accused else "missed"
    if accused:
        return "false alarm"
    return "restored" if selected else "untouched"


def _mark(word: Word) -> str:
    """Returns one word in plain text."""
    percent = f" {_MARKS[word.outcome]}{word.probability:.0%}" if word.outcome in _MARKS else ""
    if word.outcome in ("caught", "missed", "replaced"):
        return f"[{word.before}→{word.after}{percent}]"
    return {"false alarm": f"[{word.before}{percent}]",
            "restored": f"{{{word.before}}}"}.get(word.outcome, word.before)


def _wrap(words: Sequence[str], *, width: int, indent: str) -> list[str]:
    """Fills lines up to `width` visible columns; colours take none."""
    lines, column = [indent], len(indent)
    for word in words:
        size = len(re.sub(r"\x1b\[\d+m", "", word))
        if column + size > width and column > len(indent):
            lines.append(indent)
            column = len(indent)
        lines[-1] += f"{word} "
        column += size + 1
    return [line.rstrip() for line in lines]


def _continues(piece: str) -> bool:
    return piece.startswith("##") and len(piece) > 2
