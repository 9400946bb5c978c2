"""Questions about contexts in SQuAD's JSON (Rajpurkar et al., 2016 and 2018) or MRQA's JSON lines.

The first line of a file of the MRQA 2019 shared task (Fisch et al., 2019) is a header, every other
line a context with its questions. A question has the accepted answers and the spans where they were
detected; the last character of a span is included. MRQA's marks [TLE], [DOC] and [PAR] are read as
text, as in Google's code.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, TypeVar

from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import MIB, Path
from electra_tf.tasks.examples import Answer, MatchedQuestionExample, QuestionExample
from electra_tf.tasks.tables import MOST_BYTES, byte_lines

SQUAD = {"squad": "v1.1", "squad2": "v2.0"}
"""Task -> version in the names of the published files."""
MRQA = {"searchqa": ("SearchQA",), "triviaqa": ("TriviaQA-web", "TriviaQA"),
        "newsqa": ("NewsQA",), "naturalqs": ("NaturalQuestionsShort", "NaturalQuestions")}
"""Task -> names of its files; the download script renames two."""
BENCHMARKS = (*SQUAD, *MRQA)
MRQA_SUFFIXES = (".jsonl.gz", ".jsonl")
LONGEST_LINE = 64 * MIB
"""Bytes of a line of MRQA's; a context has 800 tokens."""
MOST_MRQA_BYTES = 16 << 30
"""Largest file of MRQA's, unpacked; the largest sets have a few GB, of which contexts are kept."""

Form = TypeVar("Form")
_Found = Iterator[tuple[str, QuestionExample, bool]]
"""A question's place in the file, the example, and whether an answer is misplaced."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionFile:
    """The content of a file."""

    examples: tuple[QuestionExample, ...]
    misplaced: tuple[str, ...]
    """Keys of questions with an answer whose text is not at its offset. It is left out, and so is a
    question of SQuAD without another one; MRQA's can be scored by its accepted answers.
    """


def find(name: str, data_dir: Path, split: str) -> Path:
    """Returns the "train" or "dev" file of a benchmark, by its published name or Google's."""
    if name in SQUAD:
        return data_dir / f"{split}-{SQUAD[name]}.json"
    candidates = [data_dir / folder / f"{file}{suffix}"
                  for folder, files in ((split, MRQA[name]), (name, (split,)))
                  for file in files for suffix in MRQA_SUFFIXES]
    for path in candidates:
        if path.exists():
            return path
    raise UserError(f"no {candidates[0]}; --data_dir must hold MRQA's files as published, or "
                    f"{name}/{split}.jsonl; --{split} names any other file.")


def read_questions(path: Path, *, labelled: bool = True) -> QuestionFile:
    """Returns the questions of SQuAD's JSON, or of MRQA's .jsonl and .jsonl.gz.

    The first answer of a question is the training target: in MRQA's format the first span of a
    detected answer whose characters equal the answer's text, apart from case and spaces.
    `labelled=False` ignores the answers.

    Raises:
        UserError: unreadable, of another format (with the place), an answer outside the context,
            a question with neither an answer nor is_impossible, two of one id, or no question.
    """
    examples, misplaced, seen = [], [], set()
    read = _read_mrqa if path.name.endswith(MRQA_SUFFIXES) else _read_squad
    for place, example, is_misplaced in read(path, labelled):
        if example.key in seen:
            raise UserError(f"{place}: a second question has the id {shown(example.key)}.")
        seen.add(example.key)
        misplaced += [example.key] * is_misplaced
        if example.gold or not is_misplaced:
            examples.append(example)
    if not seen:
        raise UserError(f"{path} holds no questions.")
    return QuestionFile(examples=tuple(examples), misplaced=tuple(misplaced))


class _Open:
    """A JSON object of which only some keys are read."""

    __pydantic_config__ = strict_json.OPEN


@dataclasses.dataclass(frozen=True, kw_only=True)
class _SquadAnswer(_Open):
    text: str
    answer_start: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class _SquadQuestion(_Open):
    id: str
    question: str
    answers: tuple[_SquadAnswer, ...] | None = None
    is_impossible: bool | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _SquadParagraph(_Open):
    context: str
    qas: tuple[_SquadQuestion, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _SquadArticle(_Open):
    paragraphs: tuple[_SquadParagraph, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _SquadFile(_Open):
    data: tuple[_SquadArticle, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _MrqaHeader(_Open):
    header: dict[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _MrqaDetected(_Open):
    text: str
    char_spans: tuple[tuple[int, int], ...]
    """First and last character."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _MrqaQuestion(_Open):
    qid: str
    question: str
    answers: tuple[str, ...] | None = None
    detected_answers: tuple[_MrqaDetected, ...] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _MrqaContext(_Open):
    context: str
    qas: tuple[_MrqaQuestion, ...]


def _parsed(place: str, content: bytes, form: type[Form], fix: str = "") -> Form:
    try:
        return strict_json.loads(content, form)
    except strict_json.Unreadable as error:
        raise UserError(f"{place}: {error}{fix}.") from error


def _read_squad(path: Path, labelled: bool) -> _Found:
    content = b"".join(line for _, line in byte_lines(path, longest=MOST_BYTES, most=MOST_BYTES))
    for one, article in enumerate(_parsed(str(path), content, _SquadFile).data):
        for two, paragraph in enumerate(article.paragraphs):
            for three, question in enumerate(paragraph.qas):
                yield _of_squad(f"{path}: data[{one}].paragraphs[{two}].qas[{three}]",
                                paragraph.context, question, labelled)


def _of_squad(place: str, context: str, question: _SquadQuestion,
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


def _read_mrqa(path: Path, labelled: bool) -> _Found:
    lines = byte_lines(path, longest=LONGEST_LINE, most=MOST_MRQA_BYTES)
    number, line = next(lines, (1, b""))
    _parsed(f"{path}:{number}", line, _MrqaHeader, fix=(
        '; the first line of MRQA\'s files is their header, {"header": {"dataset": "..."}}'))
    for number, line in lines:
        found = _parsed(f"{path}:{number}", line, _MrqaContext)
        for index, question in enumerate(found.qas):
            yield _of_mrqa(f"{path}:{number}: qas[{index}]", found.context, question, labelled)


def _of_mrqa(place: str, context: str, question: _MrqaQuestion,
             labelled: bool) -> tuple[str, QuestionExample, bool]:
    detected = question.detected_answers or () if labelled else ()
    if labelled and not (question.answers and any(found.char_spans for found in detected)):
        raise UserError(f"{place}: no answers, or none detected in the context; every question of "
                        "MRQA's sets has both.")
    right, misplaced = [], False
    for number, found in enumerate(detected):
        for start, last in found.char_spans:
            if not 0 <= start <= last < len(context):
                raise UserError(
                    f"{place}.detected_answers[{number}]: [{start}, {last}] isn't a first and a "
                    f"last character of the context, which has {len(context)}.")
            text = context[start:last + 1]
            if text.lower().split() == found.text.lower().split():
                right.append(Answer(text=text, start=start))
            else:
                misplaced = True
    return place, MatchedQuestionExample(
        key=question.qid, context=context, question=question.question, answers=tuple(right[:1]),
        accepted=question.answers if labelled else ()), misplaced
