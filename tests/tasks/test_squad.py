"""SQuAD's JSON, 1.1 and 2.0, and what is done about answers in the wrong place."""

import json

import pytest

from electra_tf.platform.errors import UserError
from electra_tf.tasks.examples import Answer
from electra_tf.tasks.squad import read_squad

CONTEXT = "Denver beat Carolina 24–10 in 2016."
GOOD = {"id": "q1", "question": "Who won?", "answers": [
    {"text": "Denver", "answer_start": 0}, {"text": "Denver beat", "answer_start": 0}]}
NONE = {"id": "q2", "question": "Who lost in 1999?", "is_impossible": True, "answers": [],
        "plausible_answers": [{"text": "Carolina", "answer_start": 12}]}
MISPLACED = {"id": "q3", "question": "When?", "answers": [{"text": "2016", "answer_start": 29}]}


def read(tmp_path, *questions, content=None, **options):
    path = tmp_path / "dev.json"
    content = content or {"version": "v2.0", "data": [
        {"title": "A game", "paragraphs": [{"context": CONTEXT, "qas": list(questions)}]}]}
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_squad(path, **options)


def test_questions_come_with_all_their_answers(tmp_path):
    good, none = read(tmp_path, GOOD, NONE).examples
    assert good.answers == (Answer(text="Denver", start=0), Answer(text="Denver beat", start=0))
    assert (good.key, good.question, good.context) == ("q1", "Who won?", CONTEXT)
    assert (none.answers, none.is_impossible) == ((), True)


def test_questions_to_predict_need_no_answers(tmp_path):
    (one,) = read(tmp_path, {"id": "a", "question": "Who?"}, labelled=False).examples
    assert (one.answers, one.is_impossible) == ((), False)


def test_misplaced_answers_are_counted_and_left_out(tmp_path):
    half = MISPLACED | {"id": "q4", "answers": [
        *MISPLACED["answers"], {"text": "2016", "answer_start": CONTEXT.index("2016")}]}
    result = read(tmp_path, GOOD, MISPLACED, half)
    assert result.misplaced == ("q3", "q4")
    assert [example.key for example in result.examples] == ["q1", "q4"]
    assert result.examples[1].answers == (Answer(text="2016", start=30),)


def test_a_place_outside_of_the_context_is_misplaced(tmp_path):
    for start in (29, -4, 1000):
        wrong = MISPLACED | {"answers": [{"text": "2016", "answer_start": start}]}
        assert read(tmp_path, GOOD, wrong).misplaced == ("q3",)


@pytest.mark.parametrize(("content", "message"), [
    ("{", "not JSON"), ("{}", r"dev\.json: 'data' is missing"),
    ({"data": []}, "holds no questions"),
    ({"data": [{"paragraphs": [{"qas": []}]}]},
     r"data\[0\]\.paragraphs\[0\]: 'context' is missing"),
    ({"data": [{"paragraphs": [{"context": "x", "qas": [{"question": "y"}]}]}]},
     r"qas\[0\]: 'id' is missing"),
    ({"data": [{"paragraphs": [{"context": "x", "qas": [GOOD | {"answers": [{"text": "x"}]}]}]}]},
     r"qas\[0\]\.answers\[0\]: 'answer_start' is missing"),
    ({"data": [{"paragraphs": [{"context": "x", "qas": [GOOD | {"is_impossible": "no"}]}]}]},
     r"qas\[0\]: 'is_impossible' must be true or false"),
    ({"data": [{"paragraphs": [{"context": CONTEXT, "qas": [GOOD | {"is_impossible": True}]}]}]},
     r"qas\[0\]: is_impossible is true, and yet"),
    ({"data": [{"paragraphs": [{"context": CONTEXT, "qas": [{"id": "a", "question": "b"}]}]}]},
     r"qas\[0\]: no answers"),
    ({"data": [{"paragraphs": [{"context": CONTEXT, "qas": [GOOD, GOOD]}]}]},
     r"qas\[1\]: a second question has the id 'q1'"),
])
def test_another_format_is_named_with_the_place(tmp_path, content, message):
    with pytest.raises(UserError, match=message):
        read(tmp_path, content=content)
