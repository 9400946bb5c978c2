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
NUMERIC = (Kind.REGRESSION,)
"""Kinds with a set of labels, and kinds whose labels are numbers."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextExample:
    """One or two texts with a label or a number, which is None if unknown."""

    key: str
    """Name of the example within its file and in predictions."""
    texts: tuple[str, ...]
    label: str | float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggedExample:
    """A sentence as words with a tag for each, IOB2 for spans; the tags are None if unknown."""

    key: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """Returns what the encoder reads."""
        return self.words


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionExample:
    """A question about a context, which may or may not contain the answer."""

    key: str
    question: str
    context: str
    span: tuple[int, int] | None = None
    """The answer to train on: its first character in the context, and one past its last."""
    gold: tuple[str, ...] = ()
    """All correct answers for scoring; empty if they are unknown or the question has none."""
    is_impossible: bool = False
    """The context holds no answer."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Returns what the encoder reads."""
        return self.question, self.context


Example = TextExample | TaggedExample | QuestionExample
