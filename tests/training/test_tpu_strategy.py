"""A run is put together and traced under `TPUStrategy`, from records to the loop on the cores."""

import collections

import numpy as np
import pytest

from electra_tf.data.buckets import make_batch
from electra_tf.finetuning import loop
from electra_tf.finetuning.predict import Predictor
from electra_tf.pretraining.multi_worker import has_several_workers, is_chief
from electra_tf.pretraining.steps import compile_steps
from electra_tf.training import strategies
from tests.support import tiny_run
from tests.support.tiny_task import run_of, task_of
from tests.training import fake_tpu

CORES = 2
REFUSED = {"AsString", "StringFormat", "EagerPyFunc", "StatelessShuffle", "DecodeRaw",
           "DenseBincount"}
"""Ops that TensorFlow doesn't lower for TPUs."""


@pytest.fixture
def make_run(records, tmp_path, monkeypatch):
    """A run as --tpu=local prepares it."""
    strategy = fake_tpu.strategy(monkeypatch)
    monkeypatch.setattr(strategies, "create_strategy", lambda runtime: strategy)
    return lambda **changes: tiny_run.run_on(
        records, tmp_path / "run", runtime__tpu="local", training__precision="bfloat16", **changes)


def on_the_cores(graph):
    """Counts ops that TPU cores are to compute, and all others of a graph with its functions."""
    cores, elsewhere = collections.Counter(), collections.Counter()
    definition = graph.as_graph_def()
    functions = {function.signature.name: function.node_def
                 for function in definition.library.function}

    def count(nodes, on_cores):
        for node in nodes:
            inside = on_cores or "_tpu_replicate" in node.attr
            (cores if inside else elsewhere)[node.op] += 1
            for value in node.attr.values():
                names = [value.func.name, *(function.name for function in value.list.func)]
                for name in filter(functions.__contains__, names):
                    count(functions[name], inside)

    count(definition.node, False)
    return cores, elsewhere


@pytest.mark.parametrize("objective", [
    "electra", pytest.param("electric", marks=pytest.mark.slow)])
def test_the_loop_of_steps_is_traced_for_the_cores(make_run, objective):
    run = make_run(objective__name=objective, model__num_layers=1)
    state = tiny_run.state_of(run)
    batches = run.strategy.distribute_datasets_from_function(
        lambda context: tiny_run.batches(run, 10, context))
    loop = compile_steps(tiny_run.train_step(run, state), batches,
                         in_loops=True).get_concrete_function()
    cores, host = on_the_cores(loop.graph)
    assert not REFUSED & set(cores)
    assert host["TPUReplicateMetadata"] + cores["TPUReplicateMetadata"] == 1
    assert host["IteratorGetNext"] == CORES
    assert cores["CrossReplicaSum"] >= len(state.model.trainable_variables)
    assert cores["ResourceApplyAdam"] == len(state.model.trainable_variables)
    assert not {op for op in host if op.startswith(("MatMul", "ResourceApply"))}


@pytest.mark.parametrize("part", ["training", "prediction"])
def test_fine_tuning_is_traced_for_the_cores(monkeypatch, part):
    run = run_of(strategy=fake_tpu.strategy(monkeypatch), model__num_layers=1,
                 runtime__tpu="local", training__precision="bfloat16")
    model, rows = run.build_model(1), run.encode(task_of(8, lengths=(3,)).train).rows
    compiled = (loop.compile_train_step(run, model, num_steps=10, seed=1) if part == "training"
                else Predictor(run, model)._compiled)
    batch = run.distributed(make_batch(rows, 8, [16], pad_id=0))
    cores, host = on_the_cores(compiled._function.get_concrete_function(batch).graph)
    assert cores["MatMul"] and not host["MatMul"] and not REFUSED & set(cores)
    assert bool(cores["ResourceApplyAdam"]) == (part == "training")


def test_a_core_gets_its_rows_of_the_global_batch(make_run):
    run = make_run()
    assert is_chief(run.strategy) and not has_several_workers(run.strategy)
    iterator = iter(run.strategy.distribute_datasets_from_function(
        lambda context: tiny_run.batches(run, 2, context)))
    for expected in tiny_run.batches(run, 2):
        rows = run.strategy.experimental_local_results(next(iterator).ids)
        assert [part.shape for part in rows] == [(8 // CORES, expected.ids.shape[1])] * CORES
        np.testing.assert_array_equal(np.concatenate(rows), expected.ids)
