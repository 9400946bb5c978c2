"""Averages of weights equal NumPy's, on any number of replicas, and readers of a run use them."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints.weights import read_checkpoint
from electra_tf.core import storage
from electra_tf.training.step import WeightAverage
from tests.end_to_end import commands
from tests.support import processes
from tests.support.refusals import refused


@pytest.mark.parametrize("replicas", [1, 2])
def test_an_average_is_the_mean_and_then_decays(replicas):
    strategy = (tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(replicas)])
                if replicas > 1 else tf.distribute.OneDeviceStrategy("CPU:0"))
    with strategy.scope():
        weight = tf.Variable([5.0, -3.0], name="a/kernel",
                             aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
        average = WeightAverage(0.96, [weight])

    def replica_step(step, delta):
        weight.assign_add(delta)
        average.update(step)

    run = tf.function(lambda *arguments: strategy.run(replica_step, arguments), autograph=False)
    expected, value = np.zeros(2), np.array([5.0, -3.0])
    random = np.random.default_rng(0)
    for step in range(60):
        delta = random.normal(size=2)
        value = value + delta
        run(tf.constant(step, tf.int64), tf.constant(delta, tf.float32))
        if step < 10:
            expected = value
        elif (step + 1) % 10 == 0:  # 1 - 0.96^10 is 0.335.
            share = max(1 - 0.96**10, 10 / (step + 1))
            expected = (1 - share) * expected + share * value
        np.testing.assert_allclose(average.averages[0], expected, rtol=1e-5)
    before = weight.numpy()
    with contextlib.suppress(KeyError), average.in_use():
        np.testing.assert_array_equal(weight, average.averages[0])
        raise KeyError
    np.testing.assert_array_equal(weight, before)


def test_evaluations_and_other_runs_use_averages_and_say_so(records, tmp_path, capsys):
    run, other = tmp_path / "run", tmp_path / "other"
    flags = ("--set=optimizer.average_decay=0.9", "--num_train_steps=24")
    commands.train(records, run, *flags)
    trained = processes.state(run)
    weights, step = read_checkpoint(storage.path(run))
    printed = capsys.readouterr()
    assert step == 24 and "averages over training steps" in printed.err + printed.out
    averages = [value for name, value in trained.items() if name.startswith("average/averages/")]
    names = [name for name, weight in weights.items()
             if any(np.array_equal(weight, average) for average in averages)]
    assert len(names) == len(averages) == len(weights)
    commands.pretrain(f"--data_dir={records}", f"--model_dir={other}", *commands.OFTEN,
                      f"--init_checkpoint={run}", "--num_train_steps=1", "--learning_rate=1e-9")
    begun, _ = read_checkpoint(storage.path(other))
    for name, value in weights.items():
        np.testing.assert_allclose(begun[name], value, rtol=0, atol=1e-6)
    with refused("optimizer.average_decay must be 0 in fine-tuning"):
        commands.finetune("--task=cola", "--data_dir=none", f"--init_checkpoint={run}",
                          "--model_dir=none", "--set=optimizer.average_decay=0.9")
