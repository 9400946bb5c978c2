"""Shows the corruption of a sentence: the words filled in, and the discriminator's verdicts."""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

Outcome = Literal["untouched", "restored", "replaced", "caught", "missed", "false alarm"]

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

    def tokens(self) -> Iterator[tuple[str, str, float, Outcome]]:
        """Yields before, after, probability (0 without a discriminator) and outcome of tokens."""
        judged = self.replaced_probability is not None
        for before, after, chosen, probability in zip(
                self.original, self.corrupted, self.selected,
                self.replaced_probability if judged else [0.0] * len(self.original), strict=True):
            yield before, after, probability, _outcome(
                before != after, chosen, probability > 0.5, judged=judged)


def outcomes(sample: Corruption) -> list[Outcome]:
    """Returns the outcome of every token; a probability above one half is an accusation."""
    return [outcome for *_, outcome in sample.tokens()]


def summary(sample: Corruption) -> str:
    """Returns the counts of one sequence as a line."""
    counts = outcomes(sample)
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
    def paint(text: str, outcome: Outcome) -> str:
        code = _COLOURS.get(outcome)
        return f"\x1b[{code}m{text}\x1b[0m" if colour and code else text

    words = _words(sample, lambda *token: paint(_mark(*token), token[-1]))
    return "\n".join([summary(sample), *_wrap(words, width=width, indent="  ")])


def markdown_view(sample: Corruption) -> str:
    """Returns one sequence as Markdown, for TensorBoard's text page."""
    words = _words(sample, _markdown_mark)
    return f"*{summary(sample)}*\n\n{' '.join(words)}"


def terminal_page(samples: Sequence[Corruption], *, width: int = 100, colour: bool = False) -> str:
    """Returns the legend and every sample, ready to print; arguments as `terminal_view`'s."""
    views = [f"{number}. {terminal_view(sample, width=width, colour=colour)}"
             for number, sample in enumerate(samples, start=1)]
    if not _judged(samples):
        return "\n\n".join([GUESSES_LEGEND, *views])
    return "\n\n".join([LEGEND, *views, suspicion(samples)])


def markdown_page(samples: Sequence[Corruption]) -> str:
    """Returns a legend and every sample as Markdown."""
    legend = "~~original~~ **guess**; {word} guessed right"
    if _judged(samples):
        legend = ("~~original~~ **replacement**, ✓ caught or ✗ missed with the discriminator's "
                  "probability; *!* a false alarm; {word} found by the generator")
    return "\n\n".join([legend, *(markdown_view(sample) for sample in samples)])


def _judged(samples: Sequence[Corruption]) -> bool:
    return any(sample.replaced_probability is not None for sample in samples)


def _outcome(replaced: bool, selected: bool, accused: bool, *, judged: bool) -> Outcome:
    if replaced and not judged:
        return "replaced"
    if replaced:
        return "caught" if accused else "missed"
    if accused:
        return "false alarm"
    return "restored" if selected else "untouched"


def _mark(before: str, after: str, probability: float, outcome: Outcome) -> str:
    """Returns one token in plain text."""
    percent = f" {_MARKS[outcome]}{probability:.0%}" if outcome in _MARKS else ""
    if outcome in ("caught", "missed", "replaced"):
        return f"[{'→'.join(_pair(before, after))}{percent}]"
    word = _bare(before)
    return {"false alarm": f"[{word}{percent}]", "restored": f"{{{word}}}"}.get(outcome, word)


def _markdown_mark(before: str, after: str, probability: float, outcome: Outcome) -> str:
    percent = f" ({_MARKS[outcome]} {probability:.0%})" if outcome in _MARKS else ""
    if outcome in ("caught", "missed", "replaced"):
        was, now = map(_escape, _pair(before, after))
        return f"~~{was}~~ **{now}**{percent}"
    word = _escape(_bare(before))
    alarm = f"{word} (*! {probability:.0%}*)"
    return {"false alarm": alarm, "restored": f"{{{word}}}"}.get(outcome, word)


def _words(sample: Corruption, mark: Callable[[str, str, float, Outcome], str]) -> list[str]:
    """Returns the words of the original with every token marked."""
    words: list[str] = []
    for before, after, probability, outcome in sample.tokens():
        marked = mark(before, after, probability, outcome)
        if before.startswith("##") and words:
            words[-1] += marked
        else:
            words.append(marked)
    return words


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


def _pair(before: str, after: str) -> tuple[str, str]:
    """Shows "##" only where the two pieces differ in it."""
    if before.startswith("##") and after.startswith("##"):
        return _bare(before), _bare(after)
    return before, after


def _bare(piece: str) -> str:
    return piece[2:] if piece.startswith("##") and len(piece) > 2 else piece


def _escape(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", text)
