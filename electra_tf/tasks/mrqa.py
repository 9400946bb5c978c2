"""Questions in the format of the MRQA 2019 shared task (Fisch et al., 2019): gzipped JSON lines.

The first line is a header that names the set, every other line a context with its questions. A
question has the accepted answers and the spans where they were detected in the context; the last
character of a span is included. MRQA's marks [TLE], [DOC] and [PAR] are read as text, as in
Google's code.
"""

import dataclasses
from collections.abc import Iterator
from typing import TypeVar

from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import MIB, Path, read_lines
from electra_tf.tasks.examples import Answer, MatchedQuestionExample
from electra_tf.tasks.squad import SQUAD, Open, QuestionFile, collected

MRQA = {"searchqa": ("SearchQA",), "triviaqa": ("TriviaQA-web", "TriviaQA"),
        "newsqa": ("NewsQA",), "naturalqs": ("NaturalQuestionsShort", "NaturalQuestions")}
"""Task -> names of the set, in headers and file names; the download script renames two."""
QUESTIONS = (*SQUAD, *MRQA)
"""Benchmarks of extractive QA."""
SUFFIXES = (".jsonl.gz", ".jsonl")
LONGEST_LINE = 64 * MIB
"""Bytes; a context has 800 tokens."""
MOST_BYTES = 16 << 30
"""Largest file, unpacked; the largest sets have a few GB, of which the contexts are kept."""

Form = TypeVar("Form")


def find(name: str, data_dir: Path, split: str) -> Path:
    """Returns the file of a set, by MRQA's names or those that Google's code reads.

    Args:
        name: a key of `MRQA`.
        data_dir: holds `train/SearchQA.jsonl.gz`, or `searchqa/train.jsonl`, packed or not.
        split: "train" or "dev".

    Raises:
        UserError: there is none, or its header names another set.
    """
    candidates = [data_dir / split / f"{one}{suffix}" for one in MRQA[name] for suffix in SUFFIXES]
    candidates += [data_dir / name / f"{split}{suffix}" for suffix in SUFFIXES]
    for path in candidates:
        if path.exists():
            _require_set(name, path)
            return path
    raise UserError(f"no {candidates[0]}; --data_dir must hold MRQA's files as published, or "
                    f"{name}/{split}.jsonl; --{split} names any other file.")


def read_mrqa(path: Path, *, labelled: bool = True) -> QuestionFile:
    """Returns the questions of a file in MRQA's format.

    The training target is the first span of the first detected answer whose characters equal the
    answer's text, apart from case and spaces.

    Args:
        path: a file of JSON lines, packed if it ends in ".gz".
        labelled: False ignores the answers.

    Raises:
        UserError: unreadable, not of this format (with the line), a place that isn't in the
            context, a question without an answer, two questions of one qid, or no question.
    """
    lines = _lines(path)
    _set_name(path, lines)
    return collected(path, (
        _example(f"{path}:{number}: qas[{index}]", found.context, question, labelled)
        for number, line in lines for found in [_parsed(path, number, line, _Context)]
        for index, question in enumerate(found.qas)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Header(Open):
    dataset: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class _FirstLine(Open):
    header: _Header


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Detected(Open):
    text: str
    char_spans: tuple[tuple[int, int], ...]
    """First and last character."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Question(Open):
    qid: str
    question: str
    answers: tuple[str, ...] | None = None
    detected_answers: tuple[_Detected, ...] | None = None
    is_impossible: bool | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Context(Open):
    context: str
    qas: tuple[_Question, ...]


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    return read_lines(path, longest=LONGEST_LINE, most=MOST_BYTES)


def _parsed(path: Path, number: int, line: bytes, form: type[Form], fix: str = "") -> Form:
    try:
        return strict_json.loads(line, form)
    except strict_json.Unreadable as error:
        raise UserError(f"{path}:{number}: {error}{fix}.") from error


def _set_name(path: Path, lines: Iterator[tuple[int, bytes]]) -> str:
    """Reads the header, and returns the set that it names."""
    number, line = next(lines, (1, b""))
    return _parsed(path, number, line, _FirstLine, fix=(
        '; the first line of MRQA\'s files is their header, {"header": {"dataset": "..."}}'
        )).header.dataset


def _require_set(name: str, path: Path) -> None:
    found, known = _set_name(path, _lines(path)), MRQA[name]
    if found.lower() not in {one.lower() for one in (name, *known)}:
        raise UserError(f"{path}:1: the header names the set {shown(found)}, but --task={name} "
                        f"reads {known[0]}; put the right file there, or name this one with "
                        "--train or --dev.")


def _example(place: str, context: str, question: _Question,
             labelled: bool) -> tuple[str, MatchedQuestionExample, bool]:
    right, misplaced = _places(place, context, question) if labelled else ([], False)
    return place, MatchedQuestionExample(
        key=question.qid, context=context, question=question.question, answers=tuple(right[:1]),
        accepted=question.answers if labelled else ()), misplaced


def _places(place: str, context: str, question: _Question) -> tuple[list[Answer], bool]:
    """Returns the answers at their places in the context, and if others are misplaced."""
    detected = question.detected_answers or ()
    if question.is_impossible:
        raise UserError(f"{place}: is_impossible is true; all questions of MRQA's sets have "
                        "answers. Remove this one.")
    if not question.answers or not any(found.char_spans for found in detected):
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
            if _plain(text) == _plain(found.text):
                right.append(Answer(text=text, start=start))
            else:
                misplaced = True
    return right, misplaced


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
