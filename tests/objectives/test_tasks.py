"""What fine-tuning minimises is what its definitions say, and padding has no part in it."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.data.buckets import Row, make_batch
from tests.support import golden_files, named_arrays
from tests.support.golden_batch import RNG
from tests.support.tiny_networks import task_objective

CONFIG = ModelConfig(vocab_size=30, embedding_size=8, hidden_size=16, num_layers=2, num_heads=2,
                     intermediate_size=32, max_position_embeddings=32, hidden_dropout=0.0,
                     attention_dropout=0.0)


def rows(**targets):
    """Three rows of 9, 5 and 12 tokens; `targets`: name -> values, one per row."""
    numbers = np.random.default_rng(3)
    made = []
    for index, length in enumerate((9, 5, 12)):
        ids = numbers.integers(5, 30, length).astype(np.int32)
        segments = (np.arange(length) >= length // 2).astype(np.int32)
        own = {name: np.asarray(values[index]) for name, values in targets.items()}
        of_words = {name: value for name, value in own.items() if value.ndim}
        made.append(Row(ids, segments, {
            name: value for name, value in own.items() if not value.ndim}, of_words))
    return made


def run(objective, examples, *, batch_size=3, length=16, training=True, model=None):
    model = model or objective.build_model(CONFIG, seed=0, policy="float32")
    batch = tf.nest.map_structure(
        tf.constant, make_batch(examples, batch_size, (length,), pad_id=0))
    inputs, denominators = objective.prepare_inputs(batch, RNG)
    return objective.compute(model, inputs, RNG, training=training), denominators, model


CASES = {
    "classification": (
        task_objective("classification", 3, dropout=0.0),
        rows(label=np.array([0, 2, 1], np.int32)), 3),
    "regression": (
        task_objective("regression", scale=5.0, dropout=0.0),
        rows(label=np.array([0.0, 1.0, 0.64], np.float32)), 3),
    "tagging": (
        task_objective("tagging", 4, dropout=0.0),
        rows(first_piece=[np.array(places, np.int32) for places in ([1, 2, 5], [1], [1, 3, 4, 9])],
             tag=[np.array(tags, np.int32) for tags in ([0, 1, 2], [3], [0, 0, 3, 1])]), 8),
    "questions": (
        task_objective("question_answering"),
        rows(start=np.array([5, 0, 7], np.int32), end=np.array([6, 0, 7], np.int32),
             impossible=np.array([0, 1, 0], np.float32)), 3),
}


@pytest.mark.parametrize("name", CASES)
def test_padding_and_missing_rows_change_nothing(name):
    objective, examples, count = CASES[name]
    output, denominators, model = run(objective, examples, length=12)
    padded, more_weights, _ = run(objective, examples, batch_size=5, length=20, model=model)
    assert float(denominators["loss"]) == float(more_weights["loss"]) == count
    np.testing.assert_allclose(
        padded.loss_sums["loss"], output.loss_sums["loss"], rtol=1e-5)
    assert float(output.loss_sums["loss"]) > 0.1


def test_the_loss_of_classes_is_their_cross_entropy():
    objective, examples, _ = CASES["classification"]
    output, _, _ = run(objective, examples)
    logits = output.per_example["logits"].numpy()
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = -np.log(shares[np.arange(3), [0, 2, 1]]).sum()
    assert float(output.loss_sums["loss"]) == pytest.approx(expected, rel=1e-5)
    accuracy = output.metrics["accuracy"]
    assert float(accuracy.total) == (logits.argmax(axis=1) == [0, 2, 1]).sum()
    assert float(accuracy.weight) == 3


def test_the_loss_of_numbers_is_their_squared_error():
    objective, examples, _ = CASES["regression"]
    output, _, _ = run(objective, examples)
    expected = np.square(output.per_example["predictions"] - [0.0, 1.0, 0.64]).sum()
    assert float(output.loss_sums["loss"]) == pytest.approx(expected, rel=1e-5)


def test_the_loss_of_tags_by_sentence_is_googles():
    """Of the golden sentences the loss is theirs, a sum over words; we divide by the sentences."""
    inputs = golden_files.load_part("finetune_encoder", "input")
    rows_of_golden = []
    for index, length in enumerate(inputs["input_mask"].sum(axis=1)):
        words = inputs["chunk_labels_mask"][index] > 0
        rows_of_golden.append(Row(
            inputs["input_ids"][index, :length], inputs["segment_ids"][index, :length], {}, {
                "first_piece": inputs["chunk_labeled_positions"][index, words],
                "tag": inputs["chunk_labels"][index, words]}))
    objective = task_objective("tagging", 25, dropout=0.0, tagging_loss_by_sentence=True)
    model = objective.build_model(golden_files.finetuned_config(), seed=0, policy="float32")
    named_arrays.assign(model.variables, golden_files.load_part("finetune_encoder", "weight")
                        | golden_files.load_part("finetune_chunk_eval", "weight"))
    output, denominators, _ = run(objective, rows_of_golden, batch_size=4, length=40, model=model)
    assert float(denominators["loss"]) == 4
    golden = golden_files.load_part("finetune_chunk_eval", "output")
    np.testing.assert_allclose(output.loss_sums["loss"], golden["loss"].sum(), rtol=1e-5)
    by_words = task_objective("tagging", 25, dropout=0.0)
    _, denominators, _ = run(by_words, rows_of_golden, batch_size=4, length=40, model=model)
    assert float(denominators["loss"]) == inputs["chunk_labels_mask"].sum()


def test_answers_lie_in_the_second_segment_or_at_cls():
    objective, examples, _ = CASES["questions"]
    output, _, _ = run(objective, examples, training=False)
    per_example = {name: value.numpy() for name, value in output.per_example.items()}
    assert per_example["start_index"].shape == (3, 16)  # The beam is no wider than the row.
    for index, example in enumerate(examples):
        likely = per_example["start_index"][index][per_example["start_log_probs"][index] > -500]
        assert set(likely.tolist()) == {0, *np.flatnonzero(example.segment_ids).tolist()}
    assert per_example["impossible"].shape == (3,)
