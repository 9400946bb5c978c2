"""Fine-tuning learns, freezes what it should, and answers in the order it was asked."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.overrides import override
from electra_tf.data.buckets import Row
from electra_tf.finetuning import predictor
from electra_tf.finetuning.finetuner import Finetuner, TrialSettings
from electra_tf.finetuning.predictor import Predictor
from tests.support.tiny_networks import task_objective

SETTINGS = {
    "model.vocab_size": 40, "model.embedding_size": 16, "model.hidden_size": 32,
    "model.num_layers": 2, "model.num_heads": 2, "model.intermediate_size": 64,
    "model.max_position_embeddings": 32, "task.max_seq_length": 32,
    "training.train_batch_size": 8, "training.num_train_epochs": 20,
    "optimizer.learning_rate": 2e-3, "optimizer.layerwise_decay": 1.0, "runtime.eval_batch_size": 8,
}


def task_of(objective, **changes):
    config = override(FinetuningConfig(), SETTINGS | {"runtime.log_every_seconds": 0.0} | {
        name.replace("__", "."): value for name, value in changes.items()})
    return TrialSettings(config=config, objective=objective, pad_id=0,
                         strategy=tf.distribute.OneDeviceStrategy("CPU:0"))


def model_of(task, policy="float32"):
    with task.strategy.scope():
        return task.objective.build_model(task.config.model, seed=1, policy=policy)


def sentences(count=60):
    """Rows of 5, 16 or 30 tokens; class 1 if word 7 is among them."""
    numbers = np.random.default_rng(1)
    rows = []
    for index in range(count):
        ids = numbers.integers(10, 40, numbers.choice([5, 16, 30])).astype(np.int32)
        ids[0] = 2
        if index % 2:
            ids[numbers.integers(1, len(ids))] = 7
        rows.append(Row(ids, np.zeros_like(ids), {"label": np.int32(index % 2)}))
    return rows


def of_one_length(count):
    """Rows of 5 tokens: one graph is traced."""
    return [Row(row.ids[:5], row.segment_ids[:5], row.targets) for row in sentences(count)]


def test_a_rule_is_learned_and_predicted_in_the_rows_order(monkeypatch):
    task, rows = task_of(task_objective("classification", 2)), sentences()
    model = model_of(task)
    losses = [end.loss for end in Finetuner(task, model, rows, seed=1).epochs()]
    assert len(losses) == 20
    assert losses[-1] < 0.3 < 0.6 < losses[0]
    on_one_cpu = Predictor(task, model).predict(rows)
    right = [found["logits"].argmax() == row.targets["label"]
             for found, row in zip(on_one_cpu, rows, strict=True)]
    assert np.mean(right) > 0.9
    for row, together in zip(rows[:3], on_one_cpu, strict=False):
        (alone,) = Predictor(task, model).predict([row])
        np.testing.assert_allclose(alone["logits"], together["logits"], atol=1e-5)
    monkeypatch.setattr(predictor, "runs_on_one_cpu", lambda strategy: False)
    for one, other in zip(Predictor(task, model).predict(rows), on_one_cpu, strict=True):
        np.testing.assert_allclose(one["logits"], other["logits"], atol=1e-5)


def test_a_seed_is_a_trial_and_the_same_seed_the_same_one():
    rows = of_one_length(20)
    task = task_of(task_objective("classification", 2), training__num_train_epochs=1)
    first, again, other = (
        next(Finetuner(task, model_of(task), rows, seed=seed).epochs()).loss for seed in (1, 1, 2))
    assert first == pytest.approx(again, rel=1e-6)
    assert abs(first - other) > 1e-6


def test_intervals_by_time_are_passing_and_change_no_other():
    task = task_of(task_objective("classification", 2), training__num_train_epochs=2,
                   runtime__log_every_steps=4, runtime__log_every_seconds=20.0)
    for tick, passing in ((0.0, []), (10.0, [2, 7])):
        clock = itertools.count(0.0, tick) if tick else itertools.repeat(0.0)
        ends = list(Finetuner(task, model_of(task), of_one_length(40), seed=1,
                              clock=lambda clock=clock: next(clock)).epochs())
        assert [end.step for end in ends if end.passing] == passing
        reported = [(end.step, end.loss) for end in ends if not end.passing]
        assert [step for step, _ in reported] == [4, 5, 8, 10]
        if not tick:
            alone = reported
            assert [end.step for end in ends if end.ends_epoch] == [5, 10]
    for (step, loss), (same, other) in zip(reported, alone, strict=True):
        assert (step, loss) == (same, pytest.approx(other, rel=1e-4))
