"""What a step computes doesn't depend on replicas, micro-batches, compiler or padding."""

import math

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.data.example import Batch
from electra_tf.training import step
from electra_tf.training.step import LossScale, concat_parts, sum_parts
from tests.support import named_arrays, tiny_records, tiny_run

STEPS = 4


def train(records, *, xla=False, steps=STEPS, **changes):
    """Runs a few steps; returns losses and statistics per step, and the final weights."""
    run = tiny_run.run_on(records, model__num_layers=1, **changes)
    state = tiny_run.state_of(run)
    batches = iter(run.strategy.distribute_datasets_from_function(
        lambda context: tiny_run.batches(run, steps, context)))
    call = tiny_run.step_function(run, state, xla=xla)
    return [means(call(next(batches))) for _ in range(steps)], tiny_run.weights(state)


def means(results):
    return {name: float(ratio.total) / max(float(ratio.weight), 1.0)
            for name, ratio in results.items()}


@pytest.fixture(scope="module")
def baseline(records):
    return train(records)


def assert_same(result, expected):
    for measured, reference in zip(result[0], expected[0], strict=True):
        assert measured == pytest.approx(reference, rel=1e-4)
    named_arrays.assert_close(result[1], expected[1], atol=3e-5)


ROWS = tf.range(24, dtype=tf.int64)


@pytest.mark.parametrize(("parts", "rounds", "expected"), [
    (1, 1, [list(range(24))]),
    (2, 1, [list(range(12)), list(range(12, 24))]),
    (2, 3, [[0, 3, 6, 9], [12, 15, 18, 21], [1, 4, 7, 10], [13, 16, 19, 22], [2, 5, 8, 11],
            [14, 17, 20, 23]]),
])
def test_a_part_has_consecutive_rows_and_a_round_every_nth_of_them(parts, rounds, expected):
    def positions(rows, first_row):
        return tf.reduce_sum(tf.one_hot(rows, 24, dtype=tf.int64), axis=0) * first_row

    seen = sum_parts(positions, ROWS, rounds=rounds, parts=parts).numpy().tolist()
    assert seen == [min(group) for row in range(24) for group in expected if row in group]


def test_concatenated_parts_keep_the_order_of_rows():
    rows = concat_parts(lambda rows, first_row: rows + 0 * first_row, ROWS, 4)
    assert rows.numpy().tolist() == list(range(24))


REPLICAS = {"runtime__distribution_strategy": "mirrored"}
RECOMPUTING = {"xla": True, "runtime__gradient_checkpointing": True, **REPLICAS}


def split(parts, rounds):
    return {"runtime__cpu_parts": parts, "runtime__gradient_accumulation_steps": rounds}


@pytest.mark.parametrize("changes", [REPLICAS, split(2, 2), *(
    pytest.param(changed, marks=pytest.mark.slow)
    for changed in (split(4, 1), split(1, 8), RECOMPUTING))], ids=str)
def test_replicas_parts_micro_batches_and_recomputing_change_nothing(records, baseline, changes):
    assert_same(train(records, **changes), baseline)


@pytest.mark.parametrize(("architecture", "changes"), [
    ("electra", REPLICAS | split(1, 2)), ("modernbert", split(2, 1))])
def test_replicas_and_micro_batches_change_nothing_with_muon(records, architecture, changes):
    muon = {"optimizer__name": "muon", "optimizer__muon_networks": "both",
            "model__architecture": architecture, "model__attention_window": 4}
    alone = train(records, **muon)
    # Five steps of Newton and Schulz multiply small singular values, and rounding, by 485.
    named_arrays.assert_close(train(records, **muon, **changes)[1], alone[1], atol=2e-3)
    assert alone[0][-1]["loss"] < alone[0][0]["loss"]


@pytest.mark.slow
def test_float16_finds_a_scale_at_which_gradients_are_finite(records, baseline):
    history, _ = train(records, steps=10, training__precision="float16")
    assert history[0]["loss"] == pytest.approx(baseline[0][0]["loss"], rel=0.01)
    assert math.isfinite(history[-1]["gradient_norm"])
    assert history[-1]["loss"] < history[0]["loss"]


@pytest.mark.slow
def test_an_overflow_that_no_scale_repairs_is_among_the_results(records, monkeypatch):
    # Scales 4 and 2 may be too large; at 1 nothing is left to lower.
    monkeypatch.setattr(LossScale, "INITIAL", 4.0)
    monkeypatch.setattr(step, "clip_factor_and_norm",
                        lambda gradients, _: (tf.constant(0.0), tf.constant(np.inf)))
    history, _ = train(records, training__precision="float16")
    assert [results["gradient_norm"] for results in history] == [0.0, 0.0, np.inf, np.inf]


def test_the_first_loss_is_that_of_guessing(records, baseline):
    # ln V for the generator, 50 ln 2 for the discriminator; 40 words here.
    first = baseline[0][0]
    assert first["generator_loss"] == pytest.approx(math.log(tiny_records.VOCABULARY.size), rel=.03)
    assert first["discriminator_loss"] == pytest.approx(math.log(2), rel=0.03)
    assert first["loss"] == pytest.approx(
        first["generator_loss"] + 50 * first["discriminator_loss"], rel=1e-5)


def test_a_step_that_isnt_finite_leaves_the_weights_which_the_average_begins_with(records):
    run = tiny_run.run_on(records, model__num_layers=1, optimizer__average_decay=0.9)
    state = tiny_run.state_of(run)
    state.model.discriminator.head.dense_1.bias.assign([np.nan])
    before = tiny_run.weights(state)
    results = tiny_run.step_function(run, state)(next(iter(tiny_run.batches(run, 1))))
    assert math.isnan(float(results["loss"].total))
    assert int(state.step) == 1
    named_arrays.assert_close(tiny_run.weights(state), before)
    with state.averaged():  # A first evaluation, or the mean of later steps, would read zeros.
        named_arrays.assert_close(tiny_run.weights(state), before)


def test_the_loss_scale_doubles_after_2000_steps_and_halves_after_overflow():
    scale = LossScale(enabled=True)
    scale.good_steps.assign(1998)
    for good, factor in ((1999, 2.0**15), (0, 2.0**16)):
        scale.update(tf.constant(True))
        assert float(scale.scale) == factor and int(scale.good_steps) == good
    scale.good_steps.assign(1998)
    scale.update(tf.constant(False))
    assert float(scale.scale) == 2.0**15 and int(scale.good_steps) == 0
    off = LossScale(enabled=False)
    off.update(tf.constant(False))
    assert float(off.scale) == 1.0
    for _ in range(20):
        scale.update(tf.constant(False))
    assert float(scale.scale) == 1.0


BATCH_TYPES = {"ids": tf.int32, "segment_ids": tf.int32, "padding_mask": tf.bool}
FLOAT32_OPS = {
    "Erf", "Exp", "Log", "Log1p", "Rsqrt", "Sqrt", "Softplus", "Sigmoid", "Tanh", "Square", "Sum",
    "Mean", "Cumsum", "L2Loss", "ResourceApplyAdam", "SparseSoftmaxCrossEntropyWithLogits"}
"""Not Softmax, whose kernel computes in float32 whatever it is given; not MatMul, which adds up in
float32."""


def test_no_sum_and_no_function_is_computed_in_bfloat16(records):
    run = tiny_run.run_on(records, training__precision="bfloat16")
    batch = Batch(*(tf.TensorSpec([8, tiny_records.LENGTH], BATCH_TYPES[name])
                    for name in Batch._fields))
    graph = tiny_run.step_function(
        run, tiny_run.state_of(run)).get_concrete_function(batch).graph.as_graph_def()
    nodes = [*graph.node, *(node for function in graph.library.function
                            for node in function.node_def)]
    types = {(node.op, tf.dtypes.as_dtype(node.attr["T"].type))
             for node in nodes if node.attr["T"].type}
    assert ("MatMul", tf.bfloat16) in types
    computed = {op for op, dtype in types if op in FLOAT32_OPS}
    assert {"Exp", "Log", "Square", "Rsqrt", "Sum", "L2Loss", "ResourceApplyAdam"} <= computed
    assert not {op for op, dtype in types if op in FLOAT32_OPS and dtype == tf.bfloat16}
