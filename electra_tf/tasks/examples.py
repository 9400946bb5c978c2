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
    """One or two texts with a label, for classification and regression."""

    key: str
    """Name of the example within its file and in predictions."""
    texts: tuple[str, ...]
    """One or two."""
    label: str | float | None = None
    """A word of the label set, or a number for regression; None if unknown."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggedExample:
    """A sentence in words, each with a tag."""

    key: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    """One per word, IOB2 for chunks and entities; None if unknown."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Returns what the encoder reads."""
        return self.words


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """A span of a context."""

    text: str
    start: int
    """Offset of its first character in the context."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionExample:
    """A question about a context, which may or may not contain the answer."""

    key: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    """The annotators' answers; none if there is no answer or it is unknown."""
    is_impossible: bool = False
    """The context holds no answer."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Returns what the encoder reads."""
        return self.question, self.context

    @property
    def gold(self) -> tuple[str, ...]:
        """Returns the texts that an answer is compared with."""
        return tuple(answer.text for answer in self.answers)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatchedQuestionExample(QuestionExample):
    """A question whose answers are texts that were searched for in the context (MRQA)."""

    accepted: tuple[str, ...]
    """All correct answers; `answers` holds the one that was found, for training."""

    @property
    def gold(self) -> tuple[str, ...]:
        """Returns the texts that an answer is compared with."""
        return self.accepted


Example = TextExample | TaggedExample | QuestionExample
