"""Examples of fine-tuning as they were read, before tokenization."""

import dataclasses
import enum


class Kind(enum.StrEnum):
    """The kind of a task, which decides the encoder's head."""

    CLASSIFICATION = "classification"
    REGRESSION = "regression"
    TAGGING = "tagging"
    QUESTION_ANSWERING = "question_answering"


LABELLED = (Kind.CLASSIFICATION, Kind.TAGGING)
"""Kinds with a set of labels."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextExample:
    """One or two texts with a label or a number, None if it is unknown."""

    key: str
    """Name of the example within its file and in predictions."""
    texts: tuple[str, ...]
    label: str | float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggedExample:
    """A sentence in words with a tag for each, IOB2 for spans; None if they are unknown."""

    key: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """Returns what the encoder reads."""
        return self.words


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """A span of a context, and the offset of its first character."""

    text: str
    start: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionExample:
    """A question about a context, which may or may not contain the answer."""

    key: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    """The annotators' answers, the first for training; none if unknown or impossible."""
    is_impossible: bool = False
    """The context holds no answer."""
    accepted: tuple[str, ...] = ()
    """All correct answers if `answers` has only those found in the context (MRQA)."""
    misplaced: bool = False
    """An answer was left out because its text is not at its offset."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Returns what the encoder reads."""
        return self.question, self.context

    @property
    def gold(self) -> tuple[str, ...]:
        """Returns the texts that an answer is compared with."""
        return self.accepted or tuple(answer.text for answer in self.answers)


Example = TextExample | TaggedExample | QuestionExample
