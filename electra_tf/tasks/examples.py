"""Examples of fine-tuning as they were read, before tokenization."""

import dataclasses
import enum


class Kind(enum.StrEnum):
    """Kind of a task; it decides which head the encoder gets."""

    CLASSIFICATION = "classification"
    REGRESSION = "regression"
    TAGGING = "tagging"
    QUESTION_ANSWERING = "question_answering"


LABELLED = (Kind.CLASSIFICATION, Kind.TAGGING)
"""Kinds with a set of labels."""

@dataclasses.dataclass(frozen=True, kw_only=True)
class TextExample:
    """One or two texts with a label, for classification and regression."""

    key: str
    """Names the example among those of its file, in predictions too."""
    texts: tuple[str, ...]
    """One or two."""
    label: str | float | None = None
    """A word of the label set, or a number for regression; None where it isn't known."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggedExample:
    """A sentence in words, each with a tag."""

    key: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    """One per word, IOB2 for chunks and entities; None where they aren't known."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """A span of a context."""

    text: str
    start: int
    """Offset of its first character in the context."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionExample:
    """A question about a context that holds the answer, or doesn't."""

    key: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    """Answers of annotators; several in evaluation data, none where there is no answer, or where
    it isn't known."""
    is_impossible: bool = False
    """The context holds no answer."""

    @property
    def gold(self) -> tuple[str, ...]:
        """Returns the texts that an answer is compared with."""
        return tuple(answer.text for answer in self.answers)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatchedQuestionExample(QuestionExample):
    """A question whose answers are texts, and were looked for in the context (MRQA).

    `answers` is where one was found, for training; any of the texts counts as right.
    """

    accepted: tuple[str, ...]

    @property
    def gold(self) -> tuple[str, ...]:
        """Returns the texts that an answer is compared with."""
        return self.accepted


Example = TextExample | TaggedExample | QuestionExample
