"""Reads questions in SQuAD's JSON (Rajpurkar et al., 2016 and 2018) or MRQA's JSON lines.

docs/reference/task_files.md describes the variants. The first line of a file of the MRQA 2019
shared task (Fisch et al., 2019) is a header; every other line is a context with its questions,
which have accepted answers and the spans where they were detected, with their last characters.
"""

import codecs
import collections
import itertools
import re
from collections.abc import Iterator
from typing import Annotated, Any, Generic, TypeVar

import pydantic

from electra_tf.core import strict_json
from electra_tf.core.errors import UserError, shown
from electra_tf.core.storage import Path
from electra_tf.tasks.tables import MAX_FILE_BYTES, byte_lines
from electra_tf.tasks.task import QuestionExample

SQUAD = {"squad": "v1.1", "squad2": "v2.0"}
"""Task -> version in the names of the published files."""
MRQA = {"searchqa": ("SearchQA",), "triviaqa": ("TriviaQA-web", "TriviaQA"),
        "newsqa": ("NewsQA",), "naturalqs": ("NaturalQuestionsShort", "NaturalQuestions")}
"""Task -> names of its files; MRQA's download script renames two."""
BENCHMARKS = (*SQUAD, *MRQA)
MRQA_SUFFIXES = (".jsonl.gz", ".jsonl")
MAX_MRQA_BYTES = 16 << 30
"""Largest of MRQA's files, decompressed; the largest sets have a few GB."""

_Identifier = Annotated[str, pydantic.BeforeValidator(
    lambda value: str(value) if type(value) is int else value)]
"""A name of a question; tools for annotation write a number."""
_Offset = Annotated[int, pydantic.BeforeValidator(lambda value: (
    int(float(value)) if re.fullmatch(r"-?\d+(\.0)?", str(value)) else value))]
"""Index of a character; pandas and other tools write "29" and 29.0."""
_Counts = collections.Counter[str]
"""Conversion, in words -> number of times."""
_Question = TypeVar("_Question")


def find(name: str, data_dir: Path | None, split: str) -> Path:
    """Returns the "train" or "dev" file of a benchmark; `UserError` if MRQA's doesn't exist."""
    if data_dir is None:
        raise UserError(f"--data_dir is needed for --task={name}.")
    if name in SQUAD:
        return data_dir / f"{split}-{SQUAD[name]}.json"
    candidates = [data_dir / f"{file}{suffix}"
                  for file in (*(f"{split}/{published}" for published in MRQA[name]),
                               f"{name}/{split}") for suffix in MRQA_SUFFIXES]
    for path in candidates:
        if path.exists():
            return path
    raise UserError(f"{candidates[0]} does not exist; --data_dir must hold MRQA's files as "
                    f"published, or {name}/{split}.jsonl; --{split} names any other file.")


def read_questions(path: Path, *, labelled: bool = True,
                   notes: list[str] | None = None) -> list[QuestionExample]:
    """Returns the questions of SQuAD's JSON, or of MRQA's .jsonl and .jsonl.gz.

    The first answer whose text is at its offset is the one to train on; MRQA's may differ in case
    and spaces. `labelled=False` ignores the answers. `notes` receives what was converted.
    `UserError` locates a question without answers or is_impossible, and a repeated id.
    """
    examples: dict[str, QuestionExample] = {}
    counts = _Counts()
    for prefix, paragraph in _paragraphs(path):
        for number, question in enumerate(paragraph.qas):
            location, key = f"{prefix}qas[{number}]", question.id or str(len(examples) + 1)
            if key in examples:
                raise UserError(f"{location}: a second question has the id {shown(key)}.")
            examples[key] = QuestionExample(
                key=key, context=paragraph.context, question=question.question,
                **(question.truth(location, paragraph.context, counts) if labelled else {}))
    if not examples:
        raise UserError(f"{path} holds no questions.")
    if notes is not None:
        notes += [f"{path}: {count:,} {what}" for what, count in counts.items()]
    return list(examples.values())


class _SquadAnswer(pydantic.BaseModel):
    text: str
    answer_start: _Offset

    def span(self, context: str, counts: _Counts) -> tuple[int, int] | None:
        start, end = self.answer_start, self.answer_start + len(self.text)
        if start >= 0 and context.startswith(self.text, start):
            return start, end
        for match in re.finditer(f"(?={re.escape(self.text)})", context):
            first = match.start()
            if len(context[:first].encode("utf-16-le")) == 2 * start:  # JavaScript's units.
                counts["answers have offsets that count UTF-16's units, and are converted"] += 1
                return first, first + len(self.text)
        return None


def _as_answers(value: Any) -> Any:
    """Returns a list of the answers with a text; a row's answers are lists of their parts."""
    if isinstance(value, dict):
        parts = value.get("text"), value.get("answer_start")
        value = [value] if not all(isinstance(part, list) for part in parts) else [
            {"text": text, "answer_start": start} for text, start in itertools.zip_longest(*parts)]
    return [answer for answer in value if not isinstance(answer, dict) or answer.get("text") != ""
            ] if isinstance(value, list) else value


class _SquadQuestion(pydantic.BaseModel):
    id: _Identifier = ""
    question: str
    answers: Annotated[list[_SquadAnswer] | None, pydantic.BeforeValidator(_as_answers)] = None
    is_impossible: bool | None = None

    def truth(self, location: str, context: str, counts: _Counts) -> dict[str, Any]:
        """Returns the fields of a `QuestionExample` that are known from the answers."""
        answers = self.answers or ()
        if self.answers == [] and not self.is_impossible:
            counts["questions have an empty list of answers and count as unanswerable"] += 1
        elif bool(self.is_impossible) == bool(answers):
            raise UserError(f"{location}: " + (
                "is_impossible is true, but there are answers; remove one of the two." if answers
                else "no answers, a list of text and answer_start under the key answers; a "
                "question without one needs is_impossible: true."))
        spans = (answer.span(context, counts) for answer in answers)
        return {"is_impossible": not answers, "span": next(filter(None, spans), None),
                "gold": tuple(answer.text for answer in answers)}


class _Paragraph(pydantic.BaseModel, Generic[_Question]):
    context: str
    qas: list[_Question]


class _SquadArticle(pydantic.BaseModel):
    paragraphs: list[_Paragraph[_SquadQuestion]]


def _as_article(value: Any) -> Any:
    """Returns an article for a paragraph, or for a row with one question."""
    if not isinstance(value, dict) or "paragraphs" in value:
        return value
    return {"paragraphs": [value if "qas" in value else value | {"qas": [value]}]}


class _SquadFile(pydantic.BaseModel):
    data: list[Annotated[_SquadArticle, pydantic.BeforeValidator(_as_article)]]


class _MrqaHeader(pydantic.BaseModel):
    header: dict[str, Any]


class _MrqaDetected(pydantic.BaseModel):
    text: str
    char_spans: list[tuple[int, int]]


class _MrqaQuestion(pydantic.BaseModel):
    id: _Identifier = pydantic.Field(alias="qid")
    question: str
    answers: list[str] | None = None
    detected_answers: list[_MrqaDetected] | None = None

    def truth(self, location: str, context: str, counts: _Counts) -> dict[str, Any]:
        detected = [(answer.text.lower().split(), start, last + 1)
                    for answer in self.detected_answers or () for start, last in answer.char_spans]
        if not (self.answers and detected):
            raise UserError(f"{location}: no answers, or none detected in the context; every "
                            "question of MRQA's sets has both.")
        spans = ((start, end) for words, start, end in detected
                 if start >= 0 and context[start:end].lower().split() == words)
        return {"span": next(spans, None), "gold": tuple(self.answers)}


def _paragraphs(path: Path) -> Iterator[tuple[str, _Paragraph]]:
    """Yields the location of a context's questions, as a prefix of messages, and the context."""
    is_lines = path.name.endswith(MRQA_SUFFIXES)
    lines = byte_lines(path, max_line_bytes=MAX_FILE_BYTES,
                       max_bytes=MAX_MRQA_BYTES if is_lines else MAX_FILE_BYTES)
    number, first = next(lines, (1, b""))
    if is_lines and (b'"header"' in first or b'"qid"' in first):
        _parsed(f"{path}:{number}", first, _MrqaHeader, fix=(
            '; the first line of MRQA\'s files is their header, {"header": {"dataset": "..."}}'))
        for number, line in lines:
            yield f"{path}:{number}: ", _parsed(f"{path}:{number}", line, _Paragraph[_MrqaQuestion])
        return
    content = (first + b"".join(line for _, line in lines)).removeprefix(codecs.BOM_UTF8).strip()
    joined, count = re.subn(rb"\}\s*\n\s*\{", b"},\n{", content)
    if content.startswith(b"{") and (count or is_lines):
        content = b"[" + joined + b"]"
    if content.startswith(b"["):
        content = b'{"data":' + content + b"}"
    fix = "; a file has SQuAD's articles, or rows with question, context and answers, or is MRQA's"
    for number, article in enumerate(_parsed(str(path), content, _SquadFile, fix).data):
        for index, paragraph in enumerate(article.paragraphs):
            yield f"{path}: data[{number}].paragraphs[{index}].", paragraph


def _parsed(location: str, content: bytes, form: type[Any], fix: str = "") -> Any:
    try:
        return strict_json.loads(content, form)
    except strict_json.Unreadable as error:
        raise UserError(f"{location}: {error}{fix}.") from error
