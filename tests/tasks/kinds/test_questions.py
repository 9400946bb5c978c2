"""Questions become windows that lose nothing; answers come back as they stand in the context."""

import numpy as np
import pytest

from electra_tf.tasks.examples import Answer, QuestionExample
from electra_tf.tasks.kinds import answers, questions
from electra_tf.tasks.kinds.answers import Prediction
from electra_tf.text.rows import RowEncoder
from electra_tf.text.tokenization import TextSettings
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS = ("who", "?", "the", "cafe", "##s", "won", "in", "(", "1999", ")", ".")
VOCABULARY = Vocabulary((*SPECIAL_TOKENS, *WORDS))
CONTEXT = "The Cafés\nwon, in (1999)."
# Pieces: the cafe ##s won [UNK] in ( 1999 ) .
LOW = -50.0


def question(text="1999", **changes):
    return QuestionExample(**{
        "key": "q", "question": "Who?", "context": CONTEXT,
        "answers": (Answer(text=text, start=CONTEXT.index(text)),) if text else (), **changes})


def encode(*examples, max_length=32, stride=4, max_query=8, **options):
    return questions.encode(examples, RowEncoder(TextSettings(vocabulary=VOCABULARY), max_length),
                            stride=stride, max_query=max_query, **options)


def words(row):
    return [VOCABULARY.tokens[index] for index in row.ids]


def test_a_short_context_is_one_row():
    encoded = encode(question())
    (row,) = encoded.rows
    assert words(row) == ["[CLS]", "who", "?", "[SEP]", "the", "cafe", "##s", "won", "[UNK]", "in",
                          "(", "1999", ")", ".", "[SEP]"]
    assert row.segment_ids.tolist() == [0] * 4 + [1] * 11
    assert (row.targets["start"], row.targets["end"], row.targets["impossible"]) == (11, 11, 0.0)


@pytest.mark.parametrize(("text", "first", "last"), [
    ("Cafés", 5, 6), ("Cafés\nwon", 5, 7), ("afé", 5, 6), ("(1999)", 10, 12), (".", 13, 13)])
def test_an_answer_is_the_words_that_it_touches(text, first, last):
    (row,) = encode(question(text)).rows
    assert (row.targets["start"], row.targets["end"]) == (first, last)


def test_a_long_context_is_read_through_windows_and_a_question_is_cut():
    encoded = encode(question(question="who who who"), max_length=10, stride=3, max_query=2)
    assert [words(row)[4:-1] for row in encoded.rows] == [
        ["the", "cafe", "##s", "won", "[UNK]"], ["won", "[UNK]", "in", "(", "1999"],
        ["(", "1999", ")", "."]]
    assert [row.targets["impossible"] for row in encoded.rows] == [1.0, 0.0, 0.0]
    assert [int(row.targets["start"]) for row in encoded.rows] == [0, 8, 5]
    assert encoded.windows.first.tolist() == [0, 3, 6]


def test_a_window_without_the_answer_may_count_as_its_question_does():
    short = {"max_length": 10, "stride": 3, "max_query": 2, "by_window": False}
    answered = encode(question(question="who who who"), **short)
    assert [row.targets["impossible"] for row in answered.rows] == [0.0, 0.0, 0.0]
    assert [int(row.targets["start"]) for row in answered.rows] == [0, 8, 5]
    unanswerable = encode(question(None, is_impossible=True), **short)
    assert {float(row.targets["impossible"]) for row in unanswerable.rows} == {1.0}


def test_a_question_without_an_answer_aims_at_cls():
    (row,) = encode(question(None, is_impossible=True)).rows
    assert (row.targets["start"], row.targets["end"], row.targets["impossible"]) == (0, 0, 1.0)


def test_questions_without_a_context_have_a_row():
    assert len(encode(question(None, context="")).rows) == 1


@pytest.mark.parametrize("chunk", [1, 2])
def test_more_questions_than_one_call_takes_are_all_there(monkeypatch, chunk):
    examples = [question(), question("Cafés", context="The Cafés"), question()]
    whole = encode(*examples, max_length=10, stride=3, max_query=2)
    monkeypatch.setattr(questions, "CHUNK", chunk)
    parts = encode(*examples, max_length=10, stride=3, max_query=2)
    assert [words(row) for row in whole.rows] == [words(row) for row in parts.rows]
    assert [dict(row.targets) for row in whole.rows] == [dict(row.targets) for row in parts.rows]
    for value, same in zip(whole.windows, parts.windows, strict=True):
        np.testing.assert_array_equal(value, same)
    assert len(whole.contexts) == len(parts.contexts) == 3


def test_offsets_count_characters_where_bytes_are_more():
    example = question(context="Ünïcödé, 世界 won", answers=(Answer(text="世界", start=9),))
    encoded = encode(example)
    first, last = (int(encoded.rows[0].targets[name]) for name in ("start", "end"))
    (found,) = answers.best_answers([example], encoded, [beams([(first, last, -1.0)])],
                                    max_pieces=5, count=1)
    assert found == [Prediction(text="世界", start=9, log_probability=-1.0)]


def test_rows_that_are_shorter_than_the_beam_have_narrower_ones():
    example = question()
    encoded = encode(example, example)
    claims = [beams([(11, 11, -3.0)], size=2), beams([(5, 6, -1.0)], size=5)]
    found = answers.best_answers([example, example], encoded, claims, max_pieces=5, count=5)
    assert [[one.text for one in part] for part in found] == [["1999"], ["Cafés"]]


def beams(spans, size=3):
    """Beams whose k-th start has its own ends; `spans`: (start, end, log probability of both)."""
    starts, start_scores = np.zeros(size, int), np.full(size, LOW)
    ends, end_scores = np.zeros((size, size), int), np.full((size, size), LOW)
    for rank, (start, end, score) in enumerate(spans):
        starts[rank], start_scores[rank] = start, score / 2
        ends[rank, 0], end_scores[rank, 0] = end, score / 2
    return {"start_log_probs": start_scores, "start_index": starts,
            "end_log_probs": end_scores, "end_index": ends}


def best(spans, **options):
    example = question()
    (found,) = answers.best_answers(
        [example], encode(example), [beams(spans)], **{"max_pieces": 5, "count": 5, **options})
    return found


def test_the_likeliest_span_comes_first_as_it_was_written():
    assert best([(11, 11, -3.0), (5, 7, -2.0)]) == [
        Prediction(text="Cafés\nwon", start=4, log_probability=-2.0),
        Prediction(text="1999", start=19, log_probability=-3.0)]


@pytest.mark.parametrize("span", [(7, 6), (0, 0), (1, 2), (3, 5), (13, 14), (4, 9)])
def test_spans_that_run_backwards_leave_the_context_or_are_too_long_dont_count(span):
    assert best([(*span, -1.0), (11, 11, -3.0)])[0].text == "1999"


def test_the_same_text_is_one_answer_and_no_more_than_asked_for():
    assert [one.text for one in best([(5, 5, -1.0), (5, 6, -2.0), (7, 7, -3.0)])] == [
        "Cafés", "won"]
    assert len(best([(5, 5, -1.0), (7, 7, -3.0)], count=1)) == 1


def test_of_several_windows_the_one_with_most_context_speaks():
    example = question()
    encoded = encode(example, max_length=10, stride=3, max_query=2)
    # "[UNK]" ends the first window and stands inside the second; both claim it.
    claims = [beams([(8, 8, -1.0)]), beams([(5, 5, -2.0)]), beams([])]
    (found,) = answers.best_answers([example], encoded, claims, max_pieces=5, count=5)
    assert [(one.text, one.log_probability) for one in found] == [(",", -2.0)]


def test_one_window_that_sees_an_answer_is_enough():
    encoded = encode(question(), question(), max_length=10, stride=3, max_query=2)
    scores = answers.no_answer_scores(encoded, [5.0, -1.0, 2.0, 4.0, 3.0, 9.0])
    assert scores == [-1.0, 3.0]
    found = [best([(11, 11, -1.0)]), best([(11, 11, -1.0)])]
    assert answers.chosen_answers(["a", "b"], found, scores, 0.0) == {"a": "1999", "b": ""}
    assert answers.chosen_answers(["a", "b"], [found[0], []], scores, 9.0) == {
        "a": "1999", "b": ""}
