"""Rows' results become examples' predictions, in order, and are scored where the truth is known."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.finetuning import TaskConfig
from electra_tf.data.buckets import Row
from electra_tf.tasks.examples import Kind, QuestionExample, TaggedExample, TextExample
from electra_tf.tasks.kinds import answers, tagging
from electra_tf.tasks.kinds.answers import Contexts, Questions
from electra_tf.tasks.kinds.registry import KINDS
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.windows import Windows


def texts(*labels):
    return [TextExample(key=f"k{number}", texts=("x",), label=label)
            for number, label in enumerate(labels)]


def test_classes():
    # As GLUE's files write RTE's labels, and as people read them.
    spec = TaskSpec(name="sst2", kind="classification", labels=("0", "1"), metrics=("accuracy",))
    results = [{"logits": np.array(logits, np.float32)} for logits in ([2, 0], [0, 1], [0, 0.5])]
    scored = KINDS[Kind.CLASSIFICATION].score(spec, texts("0", "1", "0"), results)
    assert scored.scores == {"accuracy": pytest.approx(2 / 3)}
    assert [record["prediction"] for record in scored.records] == [
        spec.label_words[0], spec.label_words[1], spec.label_words[1]]
    assert scored.records[0]["probability"] == pytest.approx(1 / (1 + np.exp(-2)))
    assert scored.records[1]["key"] == "k1"
    assert [record["gold"] for record in scored.records] == ["negative", "positive", "negative"]
    assert sum(scored.records[1]["probabilities"].values()) == pytest.approx(1.0)
    unknown = KINDS[Kind.CLASSIFICATION].score(spec, texts(None), results[:1])
    assert (unknown.scores, unknown.records[0]["prediction"]) == ({}, spec.label_words[0])
    assert "gold" not in unknown.records[0]


def test_numbers():
    spec = TaskSpec(name="regression", kind="regression", metrics=("spearman",))
    results = [{"predictions": np.float32(value)} for value in (1.0, 3.0, 8.0)]
    scored = KINDS[Kind.REGRESSION].score(spec, texts(1.0, 2.0, 3.0), results)
    assert scored.scores == {"spearman": pytest.approx(1.0)}
    assert scored.records[2] == {"key": "k2", "texts": ["x"], "gold": 3.0, "prediction": 8.0}
    assert KINDS[Kind.REGRESSION].score(spec, texts(None), results[:1]).scores == {}


def test_tags_of_a_sentence_in_several_rows_are_joined():
    spec = TaskSpec(name="tagging", kind="tagging", labels=("O", "B-X", "I-X"), metrics=("f1",))
    examples = [TaggedExample(key="1", words=("a", "b", "c"), tags=("B-X", "I-X", "O")),
                TaggedExample(key="2", words=("d",), tags=("B-X",))]
    rows = [Row(np.zeros(4), np.zeros(4), {"tag": np.zeros(size)}) for size in (2, 1, 1)]
    results = [{"tags": np.array([1, 2, 0, 0])}, {"tags": np.array([0, 2])},
               {"tags": np.array([0, 1])}]
    scored = tagging.score(spec, examples, rows, results)
    assert [record["prediction"] for record in scored.records] == [["B-X", "I-X", "O"], ["O"]]
    assert scored.scores["recall"] == pytest.approx(1 / 2)
    assert scored.scores["precision"] == 1.0


CONTEXT = "Denver won"


def asked(*kinds):
    """Questions about the same two words, with or without an answer, or not known."""
    return [QuestionExample(key=f"q{number}", question="Who?", context=CONTEXT,
                            gold=("Denver",) if kind == "answer" else (),
                            is_impossible=kind == "none") for number, kind in enumerate(kinds)]


def said(*logits):
    """Every row finds "Denver", and its logit of "impossible" is given; None for no such head."""
    beams = {"start_log_probs": np.float32([-1.0]), "start_index": np.int32([3]),
             "end_log_probs": np.float32([[-1.0]]), "end_index": np.int32([[3]])}
    return [beams | ({} if logit is None else {"impossible": np.float32(logit)})
            for logit in logits]


def score(examples, results, threshold=None):
    count = len(examples)
    questions = Questions(
        rows=[None] * count, contexts=Contexts(tf.constant([CONTEXT]), tf.ragged.constant([[0, 7]]),
                                   tf.ragged.constant([[6, 10]]), tf.zeros(count, tf.int32)),
        windows=Windows(example=tf.range(count), first=tf.zeros(count, tf.int32),
                        sizes=tf.fill([count], 2), position=tf.fill([count], 3),
                        is_best=tf.fill([2 * count], True)))
    return answers.score(examples, [questions], results, TaskConfig(), threshold)


def test_the_threshold_is_searched_where_the_truth_is_known():
    scored = score(asked("answer", "none", "answer"), said(-3.0, 2.0, -1.0))
    assert scored.scores["f1"] == scored.scores["exact_match"] == 1.0
    assert -1.0 <= scored.scores["threshold"] < 2.0
    assert [record["prediction"] for record in scored.records] == ["Denver", "", "Denver"]
    assert {name: scored.records[1][name] for name in ("best_answer", "start", "score")} == {
        "best_answer": "Denver", "start": 0, "score": pytest.approx(np.exp(-2.0))}


def test_any_gold_text_is_right_wherever_the_answer_to_train_on_is():
    examples = [QuestionExample(key=key, question="Who?", context=CONTEXT, span=span, gold=gold)
                for key, span, gold in (("a", (7, 10), ("Broncos", "The Denver")),
                                        ("b", None, ("Broncos of Denver",)))]
    scored = score(examples, said(None, None))
    assert [record["prediction"] for record in scored.records] == ["Denver", "Denver"]
    # "Denver" is right for "a"; for "b" its precision is 1 and its recall 1/3: F1 1/2.
    assert scored.scores["exact_match"] == pytest.approx(1 / 2)
    assert scored.scores["f1"] == pytest.approx(3 / 4)


def test_rows_that_are_shorter_than_the_beam_have_narrower_ones():
    wide = {"start_log_probs": np.float32([-9.0, -1.0]), "start_index": np.int32([0, 3]),
            "end_log_probs": np.float32([[-9.0, -9.0], [-9.0, -1.0]]),
            "end_index": np.int32([[0, 0], [0, 4]]), "impossible": np.float32(-3.0)}
    scored = score(asked("answer", "answer"), [*said(-3.0), wide])
    assert [record["prediction"] for record in scored.records] == ["Denver", "Denver won"]


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
