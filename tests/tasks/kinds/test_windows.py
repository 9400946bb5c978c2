"""Texts over the limit are read as `--long_texts` says, in training, prediction and exports."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import expit, softmax

from electra_tf.config.finetuning import LongTexts, TaskConfig
from electra_tf.data.buckets import Row
from electra_tf.export.servable import trace
from electra_tf.finetuning import loop, predict
from electra_tf.finetuning.predict import Predictor
from electra_tf.tasks.kinds import windows
from electra_tf.tasks.task import Kind, TextExample
from electra_tf.training import failures
from tests.support.refusals import refused
from tests.support.served_models import Example, example, unlinked_ops
from tests.support.tiny_task import run_of, task_of

WORDS = "the cafes won in who ? ( 1999 a b bc".split()
DRAW = np.random.default_rng(0)
TEXTS = [" ".join(DRAW.choice(WORDS, size)) for size in (0, 3, 40, 9, 10, 25, 100, 11)]
WINDOWS = {"task__long_texts": "windows", "task__doc_stride": 4}


def network(kind, **changes):
    """A tiny network with rows of 12 tokens, and texts or pairs that it reads."""
    served = example(kind, **changes)
    pairs = zip(TEXTS, reversed(TEXTS), strict=True)
    return served, [TextExample(key=str(number), texts=pair[:len(served.spec.text_columns)])
                    for number, pair in enumerate(pairs)]


def outputs_of(records):
    return np.array([[*record["probabilities"].values()] if "probabilities" in record
                     else [record["prediction"]] for record in records])


POOLINGS = [(Kind.CLASSIFICATION, "mean"), (Kind.CLASSIFICATION, "max"),
            (Kind.CLASSIFICATION, "log_odds"), (Kind.REGRESSION, "mean"), (Kind.REGRESSION, "max"),
            (Kind.MULTILABEL, "mean")]


@pytest.mark.parametrize(("kind", "pooling"), POOLINGS)
def test_outputs_of_windows_are_pooled_as_numpy_does(kind, pooling):
    served, examples = network(kind, **WINDOWS, task__window_pooling=pooling)
    columns = [tf.constant(column) for column in zip(*(e.texts for e in examples), strict=True)]
    tokens, owner, _ = served.row_encoder.encode_in_windows(*columns, stride=4)
    logits = served.model.head(served.model.encoder.first(*tokens)).numpy().astype(np.float64)
    expected = []
    for number in range(len(examples)):
        of_windows = logits[owner == number]
        if kind == Kind.MULTILABEL:
            expected.append(expit(of_windows).mean(axis=0))
        elif pooling == "max":
            expected.append(of_windows.max(axis=0))
        elif kind == Kind.REGRESSION or pooling == "log_odds":
            expected.append(of_windows.mean(axis=0))
        else:
            expected.append(np.log(softmax(of_windows, axis=1).mean(axis=0)))
    finish = {Kind.CLASSIFICATION: lambda logits: softmax(logits, axis=1),
              Kind.REGRESSION: lambda logits: 2.0 * logits + 3.0}.get(kind, np.array)
    predicted = outputs_of(served.predicted(examples))
    np.testing.assert_allclose(predicted, finish(np.array(expected)), atol=1e-5)
    if pooling == "mean" and kind != Kind.CLASSIFICATION:
        require_exported(served, examples, predicted)


def test_heads_and_tails_of_pairs_are_read_by_exports():
    served, examples = network(Kind.REGRESSION, task__long_texts="head_tail")
    require_exported(served, examples, outputs_of(served.predicted(examples)))


def require_exported(served, examples, predicted):
    """Fails unless an export answers strings as predictions do, with ops that Serving links."""
    task = served.served()
    answer = trace(task.answer, task.columns, tf.string, [None])
    assert unlinked_ops(answer.graph.as_graph_def()) == set()
    for some in (examples, examples[:1], []):
        columns = {name: tf.constant([e.texts[number] for e in some], tf.string)
                   for number, name in enumerate(task.columns)}
        answers = answer(**columns)
        actual = answers.get("probabilities", answers.get("score")).numpy()
        assert len(actual) == len(some)
        if some:
            np.testing.assert_allclose(
                actual.reshape([len(some), -1]), predicted[:len(some)], atol=1e-5)


def test_texts_that_fit_train_the_same_weights_in_windows(tmp_path):
    task, weights, logits = task_of(16, lengths=(9,)), [], []
    for way in ("truncate", "windows"):
        run = run_of(tmp_path / way, training__num_train_epochs=1, task__long_texts=way,
                     runtime__cpu_parts=1, runtime__deterministic=True)
        loop.train(run, task, None)
        model = run.trained_model()
        weights.append([variable.numpy() for variable in model.variables])
        logits.append([result["logits"] for result in Predictor(run, model).predict(
            run.encode(task.train).rows)])
    for first, second in zip(*weights, strict=True):
        np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(*logits, atol=1e-6)


@pytest.mark.slow
def test_windows_learn_a_word_that_the_first_row_lacks(tmp_path, capsys, monkeypatch):
    task = task_of(60, lengths=(28,))
    run = run_of(tmp_path, task__max_seq_length=12, task__long_texts="windows",
                 task__max_windows=4, runtime__gradient_accumulation_steps=2)
    results = loop.train(run, task, None)
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note")]
    # [CLS], 28 words and [SEP]; windows of 10 words that begin 6 apart.
    assert [note.split()[1] for note in notes] == ["train:", "dev:"]
    assert all("60 of 60 rows are longer" in note and "12 tokens" in note and "30)" in note
               for note in notes)
    assert results.best.scores["dev"]["accuracy"] > 0.9
    model, rows = run.trained_model(), run.encode(task_of(9).train).rows
    on_cores = Predictor(run, model).predict(rows)
    monkeypatch.setattr(predict, "device_type", lambda strategy: "GPU")  # Static shapes.
    for result, expected in zip(Predictor(run, model).predict(rows), on_cores, strict=True):
        np.testing.assert_allclose(result["logits"], expected["logits"], atol=1e-5)


def test_calls_with_few_texts_give_the_same_rows(monkeypatch):
    served, examples = network(Kind.REGRESSION, **WINDOWS)
    parts = []
    for limit in (10**6, 1000):  # All texts in one call, or two in each.
        monkeypatch.setattr(windows, "_CHARACTERS", limit)
        parts.append(windows.encode(
            [e.texts for e in examples], served.row_encoder, served.config.task))
    for first, second in zip(*(rows for rows, _ in parts), strict=True):
        assert first.ids.tolist() == second.ids.tolist()
        assert first.padding_mask.tolist() == second.padding_mask.tolist()
    assert parts[0][1].tolist() == parts[1][1].tolist()


def test_training_reads_evenly_spaced_windows():
    rows = [Row(np.arange(size)[:, np.newaxis] * [1, 1], np.zeros([size, 2]), {},
                padding_mask=np.ones([size, 2], bool)) for size in (1, 3, 9)]
    config = TaskConfig(long_texts=LongTexts.WINDOWS, max_windows=3)
    limited, notes = windows.limit_windows(rows, config)
    assert [row.ids[:, 0].tolist() for row in limited] == [[0], [0, 1, 2], [0, 4, 8]]
    assert all(len(row.padding_mask) == len(row.segment_ids) == len(row.ids) for row in limited)
    assert notes == ["6 of 13 windows are left out: training reads --max_windows=3 of a text, "
                     "evenly spaced (most: 9)"]
    assert windows.limit_windows(rows[:2], config)[1] == []


def test_memory_is_that_of_the_windows_of_a_step(monkeypatch):
    run, steps = run_of(task__max_seq_length=12, task__long_texts="windows"), []
    monkeypatch.setattr(failures, "require_memory", lambda *_, **step: steps.append(step))
    run.training_rows(run.encode(task_of(8, lengths=(3, 28)).train))
    assert steps == [{"length": 12, "batch": 8 * 4}]


@pytest.mark.parametrize(("kind", "changes", "message"), [
    ("classification", {"doc_stride": 11}, "--doc_stride=11 .* at most 10"),
    ("regression", {"doc_stride": 10}, "--doc_stride=10 .* at most 9"),  # A pair.
    ("regression", {"window_pooling": "log_odds"}, "mean or max"),
    ("classification", {"long_texts": "truncate", "window_pooling": "max"},
     "--window_pooling .* --long_texts=windows.* 'max'"),
    ("classification", {"long_texts": "head_tail", "max_windows": 2},
     "--max_windows .* --long_texts=windows"),
    ("tagging", {}, "--long_texts .*tagging"),
    ("tagging", {"long_texts": "truncate"}, "--doc_stride .*tagging"),
    ("question_answering", {"long_texts": "head_tail"}, "--long_texts .*question_answering")])
def test_windows_that_do_not_fit_are_refused(kind, changes, message):
    settings = {"long_texts": "windows", "doc_stride": 4} | changes
    with refused(message):
        Example(Kind(kind), **{f"task__{name}": value for name, value in settings.items()})
