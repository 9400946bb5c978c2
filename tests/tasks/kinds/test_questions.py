"""Questions become windows that lose nothing; answers come back as they stand in the context."""

import numpy as np
import pytest

from electra_tf.config.finetuning import TaskConfig
from electra_tf.modeling.task_heads import SpanBeams
from electra_tf.tasks.kinds import answers, questions
from electra_tf.tasks.task import QuestionExample
from electra_tf.text.normalization import MODES, TextSettings
from electra_tf.text.rows import RowEncoder
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.few_words import TEXT, VOCABULARY

CONTEXT = "The Cafés\nwon, in (1999)."
# Pieces: the cafe ##s won [UNK] in ( 1999 ) .
LOW = -50.0
SHORT = {"max_length": 10, "doc_stride": 3, "max_query_length": 2}
WINDOWS = [["the", "cafe", "##s", "won", "[UNK]"], ["won", "[UNK]", "in", "(", "1999"],
           ["(", "1999", ")", "."]]
"""Settings that make three windows of the context, and their words."""


def question(text="1999", context=CONTEXT, **changes):
    start = context.index(text) if text else 0
    return QuestionExample(**{
        "key": "q", "question": "Who?", "context": context,
        "span": (start, start + len(text)) if text else None, **changes})


def encode(*examples, max_length=32, doc_stride=4, max_query_length=8, **options):
    return questions.encode(examples, RowEncoder(TEXT, max_length), TaskConfig(
        doc_stride=doc_stride, max_query_length=max_query_length, **options))


def words(row):
    return [VOCABULARY.tokens[index] for index in row.ids]


def test_an_answer_is_the_pieces_of_its_characters():
    answers = {"1999": (11, 11), "Cafés": (5, 6), "s\nwon": (6, 7), "afé": (5, 5),
               "(1999)": (10, 12), ".": (13, 13), "\nwon, ": (7, 8)}
    for row, places in zip(encode(*map(question, answers)).rows, answers.values(), strict=True):
        assert words(row) == ["[CLS]", "who", "?", "[SEP]", "the", "cafe", "##s", "won", "[UNK]",
                              "in", "(", "1999", ")", ".", "[SEP]"]
        assert row.segment_ids.tolist() == [0] * 4 + [1] * 11
        assert [row.targets[name] for name in ("start", "end", "impossible")] == [*places, 0.0]


def test_windows_of_a_long_context_count_alone_or_as_their_question():
    encoded = encode(question(question="who who who"), **SHORT)
    assert [words(row)[4:-1] for row in encoded.rows] == WINDOWS
    assert [row.targets["impossible"] for row in encoded.rows] == [1.0, 0.0, 0.0]
    assert [int(row.targets["start"]) for row in encoded.rows] == [0, 8, 5]
    assert encoded.windows.first.numpy().tolist() == [0, 3, 6]
    by_question = SHORT | {"answerable_by_window": False}
    answered = encode(question(question="who who who"), **by_question)
    assert [row.targets["impossible"] for row in answered.rows] == [0.0, 0.0, 0.0]
    assert [int(row.targets["start"]) for row in answered.rows] == [0, 8, 5]
    unanswerable = encode(question(None, is_impossible=True), **by_question)
    assert {tuple(float(row.targets[name]) for name in ("start", "end", "impossible"))
            for row in unanswerable.rows} == {(0.0, 0.0, 1.0)}
    assert len(encode(question(None, context="")).rows) == 1


def test_more_questions_than_one_call_takes_are_all_there(monkeypatch):
    examples = [question(key="a"), question("Cafés", "The Cafés", key="b"), question(key="c")]
    monkeypatch.setattr(questions, "CHUNK", 2)
    split = questions.QuestionAnswering().encode(
        None, examples, RowEncoder(TEXT, 10), TaskConfig(doc_stride=3, max_query_length=2))
    assert [words(row)[4:-1] for row in split.rows] == [
        *WINDOWS, ["the", "cafe", "##s"], *WINDOWS]
    # Every window answers the piece at 5, its second; the second window is the likeliest for "a".
    results = [{name: part[0] for name, part in beams([(5, 5, score)])._asdict().items()}
               for score in (-3.0, -1.0, -2.0, -1.0, -3.0, -2.0, -1.0)]
    records = split.score(results, 0.0).records
    assert {record["key"]: record["best_answer"] for record in records} == {
        "a": ",", "b": "Café", "c": "1999"}


def beams(*rows, size=3):
    """Beams of rows whose k-th start has its own ends: (start, end, log probability of both)."""
    starts, start_scores = np.zeros((len(rows), size), np.int32), np.full((len(rows), size), LOW)
    ends = np.zeros((len(rows), size, size), np.int32)
    end_scores = np.full((len(rows), size, size), LOW)
    for row, spans in enumerate(rows):
        for rank, (start, end, score) in enumerate(spans):
            starts[row, rank], start_scores[row, rank] = start, score / 2
            ends[row, rank, 0], end_scores[row, rank, 0] = end, score / 2
    return SpanBeams(start_scores.astype(np.float32), starts, end_scores.astype(np.float32), ends,
                     np.arange(len(rows), 0, -1).astype(np.float32))


def best(encoded, *rows):
    """Text, start and probability of each question's answer."""
    answer = answers.best_answers(encoded.contexts, encoded.windows, beams(*rows), max_pieces=5)
    return [(text.decode(), start, score) for text, start, score in zip(
        *(part.numpy() for part in (answer.text, answer.start, answer.score)), strict=True)]


def test_the_likeliest_span_is_the_answer_as_it_was_written():
    assert best(encode(question(), question()), [(11, 11, -3.0), (5, 7, -2.0)], [(6, 6, -1.0)]) == [
        ("Cafés\nwon", 4, pytest.approx(np.exp(-2.0))), ("s", 8, pytest.approx(np.exp(-1.0)))]


@pytest.mark.parametrize(("normalization", "pieces", "context", "answer"), [
    ("bert_uncased", "won", "Ünïcödé, 世界 won", "世界"),  # Offsets are characters, not bytes.
    ("bert_cased", "임수경 ##을", "그는 임수경을 만났다", "임수경"),
    ("bert_cased", "서울 ##특별 ##시 ##에서", "서울특별시에서", "특별시"),
    ("bert_uncased", "\u1109\u1165 ##\u110b\u116e\u11af ##\u110b\u1166", "서울에", "서울"),
    ("nfc", "서울 ##에", "\u1109\u1165\u110b\u116e\u11af에", "\u1109\u1165\u110b\u116e\u11af"),
    ("bert_cased", "アメリカ ##は", "「アメリカは」", "アメリカ"),
    ("bert_uncased", "tokyo ##タワー ##に", "TOKYOタワーに", "タワー"),
    ("bert_uncased", "ankara ##da", "Ánkara'da ÁNKARÁda", "ÁNKARÁ"),
    ("bert_uncased", "helsinki ##ssa", "Helsinkissä", "Helsinki"),
    ("bert_uncased", "haus ##tur", "Haustür", "tür"), ("bert_cased", "1990 ##s", "1990s", "1990"),
    ("nfc", "กรุงเทพ ##มหานคร", "กรุงเทพมหานคร", "มหานคร")])
def test_an_answer_inside_a_word_is_learned_and_given(normalization, pieces, context, answer):
    text = TextSettings(vocabulary=Vocabulary((*SPECIAL_TOKENS, *pieces.split())),
                        normalization=MODES[normalization])
    encoded = questions.encode([question(answer, context)], RowEncoder(text, 32), TaskConfig(
        max_query_length=8))
    first, last = (int(encoded.rows[0].targets[name]) for name in ("start", "end"))
    assert best(encoded, [(first, last, -1.0)])[0][:2] == (answer, context.index(answer))


def test_backward_outside_and_long_spans_do_not_count():
    encoded = encode(question())
    for span in ((7, 6), (0, 0), (1, 2), (3, 5), (13, 14), (4, 9)):
        assert best(encoded, [(*span, -1.0), (11, 11, -3.0)])[0][0] == "1999"
        assert best(encoded, [(*span, -1.0)])[0][:2] == ("", 0)
