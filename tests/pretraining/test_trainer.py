"""Steps one by one and in a loop of the graph: the same numbers."""

import numpy as np
import pytest

from electra_tf.data.pipeline import training_batches
from electra_tf.pretraining.trainer import Trainer
from tests import tiny_run

STEPS = 7


def trained(records, counts, *, in_loops, **changes):
    """Runs pieces of so many steps; returns what each piece reports, and all state."""
    run = tiny_run.run_on(records, model__num_layers=1, **changes)
    state = tiny_run.state_of(run)
    batches = run.strategy.distribute_datasets_from_function(
        lambda context: training_batches(
            run.records, pad_id=0, seed=1, window_examples=1000, global_batch_size=8,
            first_step=0, last_step=STEPS, context=context))
    trainer = Trainer(run.strategy, tiny_run.train_step(run, state), batches, in_loops=in_loops)
    totals = []
    for count in counts:
        trainer.run(count)
        totals.append(trainer.totals())
    return totals, [variable.numpy() for variable in state.variables]


@pytest.mark.parametrize("changes", [
    {}, {"runtime__distribution_strategy": "mirrored"}], ids=["one device", "mirrored"])
def test_a_loop_of_the_graph_computes_what_single_steps_do(records, changes):
    expected, weights = trained(records, [1, 4, 2], in_loops=False, **changes)
    totals, looped = trained(records, [1, 4, 2], in_loops=True, **changes)
    assert totals == expected
    for value, other in zip(looped, weights, strict=True):
        np.testing.assert_array_equal(value, other)
