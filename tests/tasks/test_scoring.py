"""Rows' results become examples' predictions, in order, and are scored where the truth is known."""

import numpy as np
import pytest

from electra_tf.config.finetuning import TaskConfig
from electra_tf.tasks import scoring
from electra_tf.tasks.answers import Context, Questions, Window
from electra_tf.tasks.examples import Answer, QuestionExample, TaggedExample, TextExample


def texts(*labels):
    return [TextExample(key=f"k{number}", texts=("x",), label=label)
            for number, label in enumerate(labels)]


def test_classes():
    results = [{"logits": np.array(logits, np.float32)} for logits in ([2, 0], [0, 1], [0, 0.5])]
    scored = scoring.score_classes(
        texts("0", "1", "0"), results, labels=("0", "1"), words=("no", "yes"),
        metrics=["accuracy"])
    assert scored.scores == {"accuracy": pytest.approx(2 / 3)}
    assert [record["prediction"] for record in scored.records] == ["no", "yes", "yes"]
    assert scored.records[0]["probability"] == pytest.approx(1 / (1 + np.exp(-2)))
    assert scored.records[1]["key"] == "k1"
    unknown = scoring.score_classes(texts(None), results[:1], labels=("0", "1"),
                                    words=("no", "yes"), metrics=["accuracy"])
    assert (unknown.scores, unknown.records[0]["prediction"]) == ({}, "no")


def test_numbers():
    results = [{"predictions": np.float32(value)} for value in (1.0, 3.0, 8.0)]
    scored = scoring.score_numbers(texts(1.0, 2.0, 3.0), results, metrics=["spearman"])
    assert scored.scores == {"spearman": pytest.approx(1.0)}
    assert scored.records[2] == {"key": "k2", "prediction": 8.0}
    assert scoring.score_numbers(texts(None), results[:1], metrics=["spearman"]).scores == {}


def test_tags_of_a_sentence_in_several_rows_are_joined():
    examples = [TaggedExample(key="1", words=("a", "b", "c"), tags=("B-X", "I-X", "O")),
                TaggedExample(key="2", words=("d",), tags=("B-X",))]
    results = [{"tags": np.array([1, 2, 0, 0])}, {"tags": np.array([0, 2])},
               {"tags": np.array([0, 1])}]
    scored = scoring.score_tags(examples, results, origins=[(0, 0), (0, 2), (1, 0)],
                                tags=("O", "B-X", "I-X"))
    assert [record["prediction"] for record in scored.records] == [["B-X", "I-X", "O"], ["O"]]
    assert scored.scores["recall"] == pytest.approx(1 / 2)
    assert scored.scores["precision"] == 1.0


CONTEXT = "Denver won"


def asked(*kinds):
    """Questions about the same two words, with or without an answer, or not known."""
    given = {"answer": ((Answer(text="Denver", start=0),), False), "none": ((), True),
             "unknown": ((), False)}
    return [QuestionExample(key=f"q{number}", question="Who?", context=CONTEXT,
                            answers=given[kind][0], is_impossible=given[kind][1])
            for number, kind in enumerate(kinds)]


def said(*logits):
    """Every row finds "Denver", and its logit of "impossible" is given; None for no such head."""
    beams = {"start_log_probs": np.array([-1.0]), "start_index": np.array([3]),
             "end_log_probs": np.array([[-1.0]]), "end_index": np.array([[3]])}
    return [beams | ({} if logit is None else {"impossible": np.float32(logit)})
            for logit in logits]


def score(examples, results, threshold=None):
    context = Context(np.array([5, 6]), np.array([0, 7]), np.array([6, 10]))
    questions = Questions(
        rows=[], contexts=[context] * len(examples), windows=[
            Window(example=number, first=0, position=3, is_best=np.array([True, True]))
            for number in range(len(examples))])
    return scoring.score_answers(examples, questions, results, TaskConfig(), threshold)


def test_the_threshold_is_searched_where_the_truth_is_known():
    scored = score(asked("answer", "none", "answer"), said(-3.0, 2.0, -1.0))
    assert scored.scores["f1"] == scored.scores["exact_match"] == 1.0
    assert -1.0 <= scored.scores["threshold"] < 2.0
    assert [record["prediction"] for record in scored.records] == ["Denver", "", "Denver"]
    assert scored.records[0]["n_best"] == [
        {"text": "Denver", "start": 0, "log_probability": -2.0}]


def test_a_given_threshold_is_kept():
    scored = score(asked("answer", "none"), said(-3.0, 2.0), threshold=-4.0)
    assert [record["prediction"] for record in scored.records] == ["", ""]
    assert scored.scores["f1"] == pytest.approx(1 / 2)
    assert "threshold" not in scored.scores


def test_without_the_head_or_the_truth_there_is_always_an_answer_or_googles_threshold():
    assert score(asked("answer", "none"), said(None, None)).scores["f1"] == pytest.approx(1 / 2)
    unknown = score(asked("unknown", "unknown"), said(-3.0, -2.0))
    assert unknown.scores == {}
    assert [record["prediction"] for record in unknown.records] == ["Denver", ""]  # -2.75.
