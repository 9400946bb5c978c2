"""Reads questions in SQuAD's JSON (Rajpurkar et al., 2016 and 2018) or MRQA's JSON lines.

The first line of a file of the MRQA 2019 shared task (Fisch et al., 2019) is a header; every other
line is a context with its questions. A question has the accepted answers and the spans where they
were detected; a span includes its last character. MRQA's marks [TLE], [DOC] and [PAR] are read as
text, as in Google's code.
"""

from collections.abc import Iterator
from typing import Annotated, Any

import pydantic

from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
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


def read_questions(path: Path, *, labelled: bool = True) -> list[QuestionExample]:
    """Returns the questions of SQuAD's JSON, or of MRQA's .jsonl and .jsonl.gz.

    The first answer whose text is at its offset is the one to train on; MRQA's may differ in case
    and spaces. `labelled=False` ignores the answers. `UserError` locates a question with neither
    an answer nor is_impossible, and a second one with the same id.
    """
    examples: dict[str, QuestionExample] = {}
    for prefix, paragraph in _paragraphs(path):
        for number, question in enumerate(paragraph.qas):
            location = f"{prefix}qas[{number}]"
            example = question.example(location, paragraph.context, labelled)
            if example.key in examples:
                raise UserError(f"{location}: a second question has the id {shown(example.key)}.")
            examples[example.key] = example
    if not examples:
        raise UserError(f"{path} holds no questions.")
    return list(examples.values())


class _SquadAnswer(pydantic.BaseModel):
    text: str
    answer_start: int


class _SquadQuestion(pydantic.BaseModel):
    id: _Identifier
    question: str
    answers: list[_SquadAnswer] | None = None
    is_impossible: bool | None = None

    def example(self, location: str, context: str, labelled: bool) -> QuestionExample:
        answers = self.answers or () if labelled else ()
        impossible = labelled and bool(self.is_impossible)
        if labelled and impossible == bool(answers):
            raise UserError(f"{location}: " + (
                "is_impossible is true, but there are answers; remove one of the two." if answers
                else "no answers; write is_impossible: true for a question without one."))
        spans = ((answer.answer_start, answer.answer_start + len(answer.text))
                 for answer in answers if answer.answer_start >= 0
                 and context.startswith(answer.text, answer.answer_start))
        return QuestionExample(
            key=self.id, context=context, question=self.question, is_impossible=impossible,
            span=next(spans, None), gold=tuple(answer.text for answer in answers))


class _SquadParagraph(pydantic.BaseModel):
    context: str
    qas: list[_SquadQuestion]


class _SquadArticle(pydantic.BaseModel):
    paragraphs: list[_SquadParagraph]


class _SquadFile(pydantic.BaseModel):
    data: list[_SquadArticle]


class _MrqaHeader(pydantic.BaseModel):
    header: dict[str, Any]


class _MrqaDetected(pydantic.BaseModel):
    text: str
    char_spans: list[tuple[int, int]]


class _MrqaQuestion(pydantic.BaseModel):
    qid: _Identifier
    question: str
    answers: list[str] | None = None
    detected_answers: list[_MrqaDetected] | None = None

    def example(self, location: str, context: str, labelled: bool) -> QuestionExample:
        if not labelled:
            return QuestionExample(key=self.qid, context=context, question=self.question)
        detected = [(answer.text.lower().split(), start, last + 1)
                    for answer in self.detected_answers or () for start, last in answer.char_spans]
        if not (self.answers and detected):
            raise UserError(f"{location}: no answers, or none detected in the context; every "
                            "question of MRQA's sets has both.")
        spans = ((start, end) for words, start, end in detected
                 if start >= 0 and context[start:end].lower().split() == words)
        return QuestionExample(key=self.qid, context=context, question=self.question,
                               span=next(spans, None), gold=tuple(self.answers))


class _MrqaParagraph(pydantic.BaseModel):
    context: str
    qas: list[_MrqaQuestion]


def _paragraphs(path: Path) -> Iterator[tuple[str, _SquadParagraph | _MrqaParagraph]]:
    """Yields the location of a context's questions, as a prefix of messages, and the context."""
    if path.name.endswith(MRQA_SUFFIXES):
        lines = byte_lines(path, max_bytes=MAX_MRQA_BYTES)
        number, line = next(lines, (1, b""))
        _parsed(f"{path}:{number}", line, _MrqaHeader, fix=(
            '; the first line of MRQA\'s files is their header, {"header": {"dataset": "..."}}'))
        for number, line in lines:
            yield f"{path}:{number}: ", _parsed(f"{path}:{number}", line, _MrqaParagraph)
        return
    content = b"".join(line for _, line in byte_lines(path, max_line_bytes=MAX_FILE_BYTES))
    for number, article in enumerate(_parsed(str(path), content, _SquadFile).data):
        for index, paragraph in enumerate(article.paragraphs):
            yield f"{path}: data[{number}].paragraphs[{index}].", paragraph


def _parsed(location: str, content: bytes, form: type[Any], fix: str = "") -> Any:
    try:
        return strict_json.loads(content, form)
    except strict_json.Unreadable as error:
        raise UserError(f"{location}: {error}{fix}.") from error
