"""Questions about paragraphs, in SQuAD's JSON format (Rajpurkar et al., 2016 and 2018)."""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

from electra_tf.command_line import UserError
from electra_tf.storage import Path
from electra_tf.tasks.examples import Answer, QuestionExample


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionFile:
    """What a file holds."""

    examples: tuple[QuestionExample, ...]
    misplaced: tuple[str, ...]
    """Keys of the questions with an answer whose text doesn't stand at its offset: the answer is
    left out, and a question that has no other is not among the examples."""


def read_squad(path: Path, *, strict: bool = False, labelled: bool = True) -> QuestionFile:
    """Returns the questions of a file in the format of SQuAD 1.1 or 2.0.

    Args:
        path: of the JSON file.
        strict: refuse misplaced answers instead of counting them.
        labelled: False for questions to answer, whose answers aren't looked at.

    Raises:
        UserError: unreadable, not of this format (with the place), two questions of one id, no
            question, or a misplaced answer while `strict`.
    """
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}.") from error
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}.") from None
    examples, misplaced, seen = [], [], set()
    for place, context, question in _questions(path, content):
        example, wrong = _example(place, context, question, labelled)
        if example.key in seen:
            raise UserError(f"{place}: a second question has the id {example.key!r}.")
        seen.add(example.key)
        if wrong:
            misplaced.append(example.key)
            if strict:
                raise UserError(
                    f"{place}: the answer {wrong[0].text!r:.60} doesn't stand at offset "
                    f"{wrong[0].start} of the context (question {example.key!r}).")
            if not example.answers:
                continue
        examples.append(example)
    if not seen:
        raise UserError(f"{path} holds no questions.")
    return QuestionFile(examples=tuple(examples), misplaced=tuple(misplaced))


def _questions(path: Path, content: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yields the place in the file, the context, and the question's object."""
    for article_place, article in _list(str(path), content, "data"):
        for paragraph_place, paragraph in _list(article_place, article, "paragraphs"):
            context = _field(paragraph_place, paragraph, "context", str)
            for place, question in _list(paragraph_place, paragraph, "qas"):
                yield place, context, question


def _example(place: str, context: str, question: Any,
             labelled: bool) -> tuple[QuestionExample, list[Answer]]:
    answers = [
        Answer(text=_field(answer_place, answer, "text", str),
               start=_field(answer_place, answer, "answer_start", int))
        for answer_place, answer in (
            _list(place, question, "answers") if labelled and "answers" in question else ())]
    wrong = [answer for answer in answers
             if context[max(answer.start, 0):][:len(answer.text)] != answer.text]
    impossible = labelled and bool(question.get("is_impossible", False))
    return QuestionExample(
        key=_field(place, question, "id", str), context=context,
        question=_field(place, question, "question", str),
        # What people proposed for a question without an answer is under "plausible_answers".
        answers=() if impossible else tuple(one for one in answers if one not in wrong),
        is_impossible=impossible), [] if impossible else wrong


def _list(place: str, holder: Any, name: str) -> Iterator[tuple[str, Any]]:
    for index, item in enumerate(_field(place, holder, name, list)):
        yield f"{place}: {name}[{index}]" if ": " not in place else f"{place}.{name}[{index}]", item


def _field(place: str, holder: Any, name: str, kind: type) -> Any:
    value = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        words = {str: "a string", int: "a whole number", list: "a list"}[kind]
        raise UserError(f"{place}: {name!r} must be {words}, as in SQuAD's format. "
                        f"Received: {value!r:.60}")
    return value
