"""Questions about paragraphs, in SQuAD's JSON format (Rajpurkar et al., 2016 and 2018)."""

import dataclasses
from collections.abc import Iterable

from electra_tf.platform import storage, strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
from electra_tf.tasks.examples import Answer, QuestionExample
from electra_tf.tasks.tables import MOST_BYTES

SQUAD = {"squad": "v1.1", "squad2": "v2.0"}
"""Task -> version in the names of the published files."""


class Open:
    """A JSON object of which only some keys are read."""

    __pydantic_config__ = strict_json.OPEN


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionFile:
    """The content of a file."""

    examples: tuple[QuestionExample, ...]
    misplaced: tuple[str, ...]
    """Keys of the questions with an answer whose text is not at its offset. The answer is left out,
    and so is a question of SQuAD without another one; MRQA's is kept, because it can be scored."""


def read_squad(path: Path, *, labelled: bool = True) -> QuestionFile:
    """Returns the questions of a file in the format of SQuAD 1.1 or 2.0.

    Args:
        path: of the JSON file, packed if it ends in ".gz".
        labelled: False ignores the answers.

    Raises:
        UserError: unreadable, not of this format (with the place), two questions of one id, or
            no question.
    """
    content = b"".join(line for _, line in storage.read_lines(
        path, longest=MOST_BYTES, most=MOST_BYTES))
    try:
        found = strict_json.loads(content, _File)
    except strict_json.Unreadable as error:
        raise UserError(f"{path}: {error}.") from error
    return collected(path, (
        _example(f"{path}: data[{one}].paragraphs[{two}].qas[{three}]", paragraph.context,
                 question, labelled)
        for one, article in enumerate(found.data)
        for two, paragraph in enumerate(article.paragraphs)
        for three, question in enumerate(paragraph.qas)))


def collected(path: Path, questions: Iterable[tuple[str, QuestionExample, bool]]) -> QuestionFile:
    """Returns the content of a file.

    Args:
        path: the file.
        questions: of each the place in the file, the question, and if an answer is misplaced.

    Raises:
        UserError: two questions of one key, or no question.
    """
    examples, misplaced, seen = [], [], set()
    for place, example, is_misplaced in questions:
        if example.key in seen:
            raise UserError(f"{place}: a second question has the id {shown(example.key)}.")
        seen.add(example.key)
        misplaced += [example.key] * is_misplaced
        if example.gold or not is_misplaced:
            examples.append(example)
    if not seen:
        raise UserError(f"{path} holds no questions.")
    return QuestionFile(examples=tuple(examples), misplaced=tuple(misplaced))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Answer(Open):
    text: str
    answer_start: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Question(Open):
    id: str
    question: str
    answers: tuple[_Answer, ...] | None = None
    is_impossible: bool | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Paragraph(Open):
    context: str
    qas: tuple[_Question, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Article(Open):
    paragraphs: tuple[_Paragraph, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _File(Open):
    data: tuple[_Article, ...]


def _example(place: str, context: str, question: _Question,
             labelled: bool) -> tuple[str, QuestionExample, bool]:
    answers = question.answers or () if labelled else ()
    impossible = labelled and bool(question.is_impossible)
    if impossible and answers:
        raise UserError(f"{place}: is_impossible is true, and yet there are answers; remove one.")
    if labelled and not impossible and not answers:
        raise UserError(f"{place}: no answers; a question without one says is_impossible: true.")
    found = tuple(
        Answer(text=one.text, start=one.answer_start) for one in answers
        if one.answer_start >= 0 and context.startswith(one.text, one.answer_start))
    return place, QuestionExample(
        key=question.id, context=context, question=question.question, is_impossible=impossible,
        answers=found), len(found) < len(answers)
