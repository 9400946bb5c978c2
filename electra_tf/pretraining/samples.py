"""Shows what ELECTRA does to a sentence: the generator's words and the discriminator's verdicts."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Literal

Outcome = Literal["untouched", "restored", "caught", "missed", "false alarm"]

PADDING = "[PAD]"
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Corruption:
    """One sequence before and after the generator, token by token; padding may trail.

    Raises:
        ValueError: the four fields differ in length.
    """

    original: Sequence[str]
    """WordPieces, "##" before those that continue a word."""
    corrupted: Sequence[str]
    """WordPieces that the discriminator read."""
    selected: Sequence[bool]
    """Whether the generator filled in this position."""
    replaced_probability: Sequence[float]
    """The discriminator's probability, in [0, 1], that the token is not the original one."""

    def __post_init__(self):
        lengths = {field.name: len(getattr(self, field.name))
                   for field in dataclasses.fields(self)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"all fields must have one length. Received: {lengths}")


def outcomes(sample: Corruption) -> list[Outcome]:
    """Returns what became of every token; accused means a probability above one half."""
    return [
        _outcome(before != after, chosen, probability > 0.5)
        for before, after, chosen, probability in zip(
            sample.original, sample.corrupted, sample.selected, sample.replaced_probability,
            strict=True)]


def summary(sample: Corruption) -> str:
    """Returns the counts of one sequence as a line, padding left out."""
    counts = outcomes(_without_padding(sample))
    caught, missed = counts.count("caught"), counts.count("missed")
    return (
        f"{caught + missed + counts.count('restored')} of {len(counts)} tokens filled in: "
        f"{counts.count('restored')} as they were, {caught + missed} replaced "
        f"({caught} caught, {missed} missed); {_plural(counts.count('false alarm'))}")


def suspicion(samples: Sequence[Corruption]) -> str:
    """Returns how suspicious replaced and original tokens look on average, as a line.

    Early in training no probability exceeds one half, yet replaced tokens already stand out.
    """
    seen = [(before != after, probability) for sample in map(_without_padding, samples)
            for before, after, probability in zip(
                sample.original, sample.corrupted, sample.replaced_probability, strict=True)]
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

    words = _words(_without_padding(sample), lambda *token: paint(_mark(*token), token[-1]))
    return "\n".join([summary(sample), *_wrap(words, width=width, indent="  ")])


def markdown_view(sample: Corruption) -> str:
    """Returns one sequence as Markdown, for TensorBoard's text page."""
    words = _words(_without_padding(sample), _markdown_mark)
    return f"*{summary(sample)}*\n\n{' '.join(words)}"


def terminal_page(samples: Sequence[Corruption], *, width: int = 100, colour: bool = False) -> str:
    """Returns the legend and every sample, ready to print; arguments as `terminal_view`'s."""
    views = [f"{number}. {terminal_view(sample, width=width, colour=colour)}"
             for number, sample in enumerate(samples, start=1)]
    return "\n\n".join([LEGEND, *views, suspicion(samples)])


def markdown_page(samples: Sequence[Corruption]) -> str:
    """Returns a legend and every sample as Markdown."""
    legend = ("~~original~~ **replacement**, ✓ caught or ✗ missed with the discriminator's "
              "probability; *!* a false alarm; {word} found by the generator")
    return "\n\n".join([legend, *(markdown_view(sample) for sample in samples)])


def _outcome(replaced: bool, selected: bool, accused: bool) -> Outcome:
    if replaced:
        return "caught" if accused else "missed"
    if accused:
        return "false alarm"
    return "restored" if selected else "untouched"


def _mark(before: str, after: str, probability: float, outcome: Outcome) -> str:
    """One token in plain text."""
    percent = f"{_MARKS.get(outcome, '')}{probability:.0%}"
    match outcome:
        case "caught" | "missed":
            return f"[{'→'.join(_pair(before, after))} {percent}]"
        case "false alarm":
            return f"[{_bare(before)} {percent}]"
        case "restored":
            return f"{{{_bare(before)}}}"
    return _bare(before)


def _markdown_mark(before: str, after: str, probability: float, outcome: Outcome) -> str:
    percent = f"{_MARKS.get(outcome, '')} {probability:.0%}"
    match outcome:
        case "caught" | "missed":
            was, now = map(_escape, _pair(before, after))
            return f"~~{was}~~ **{now}** ({percent})"
        case "false alarm":
            return f"{_escape(_bare(before))} (*{percent}*)"
        case "restored":
            return f"{{{_escape(_bare(before))}}}"
    return _escape(_bare(before))


def _words(
    sample: Corruption, mark: Callable[[str, str, float, Outcome], str]
) -> list[str]:
    """Marks every token and glues the pieces of the original's words together."""
    words: list[str] = []
    for before, after, probability, outcome in zip(
            sample.original, sample.corrupted, sample.replaced_probability, outcomes(sample),
            strict=True):
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


def _without_padding(sample: Corruption) -> Corruption:
    kept = [index for index, token in enumerate(sample.original) if token != PADDING]
    return Corruption(**{
        field.name: [getattr(sample, field.name)[index] for index in kept]
        for field in dataclasses.fields(sample)})


def _pair(before: str, after: str) -> tuple[str, str]:
    """Shows "##" only where the two pieces differ in it."""
    if before.startswith("##") and after.startswith("##"):
        return _bare(before), _bare(after)
    return before, after


def _bare(piece: str) -> str:
    return piece[2:] if piece.startswith("##") and len(piece) > 2 else piece


def _escape(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", text)


def _plural(count: int) -> str:
    return f"{count} false alarm" + ("" if count == 1 else "s")
