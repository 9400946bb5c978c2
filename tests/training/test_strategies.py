"""Strategies, precision and the parts of a batch fit the devices; missing ones are one line."""

from types import SimpleNamespace

import pytest
import tensorflow as tf

from electra_tf.config.pretraining import Precision
from electra_tf.config.runtime import RuntimeConfig, Strategy, Xla
from electra_tf.core.errors import UserError, note_once
from electra_tf.pretraining.steps import steps_per_loop
from electra_tf.training import strategies
from electra_tf.training.devices import device_name, resolve_precision, use_xla
from electra_tf.training.strategies import create_strategy, prepare_cpu


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    monkeypatch.setattr(strategies, "usable_cores", lambda: 4)


@pytest.mark.parametrize(("changes", "rows", "parts"), [
    ({}, 32, 4), ({}, 6, 3), ({}, 1, 1), ({"cpu_parts": 3}, 32, 2), ({"xla": Xla.ON}, 32, 1),
    ({"distribution_strategy": Strategy.MIRRORED}, 32, 1), ({"tpu": "somewhere"}, 32, 1),
    ({"deterministic": True}, 32, 1)])
def test_parts_divide_the_batch_and_a_cpus_cores_if_nothing_else_does(changes, rows, parts):
    assert prepare_cpu(RuntimeConfig(**changes), rows) == parts


def test_every_part_gets_its_share_of_the_threads(monkeypatch):
    configured = {}
    for kind in ("inter", "intra"):
        monkeypatch.setattr(
            tf.config.threading, f"set_{kind}_op_parallelism_threads",
            lambda count, kind=kind: configured.update({kind: count}))
    prepare_cpu(RuntimeConfig(cpu_parts=2), 32)
    assert configured == {"inter": 4, "intra": 2}


def test_an_earlier_run_of_the_process_leaves_graphs_as_a_new_process_has_them():
    for changes, rewritten in (({}, False), ({"deterministic": True}, True), ({}, False)):
        prepare_cpu(RuntimeConfig(**changes), 32)
        options = tf.config.optimizer.get_experimental_options()
        assert options["disable_meta_optimizer"] is not rewritten


def test_a_cpu_has_no_xla_unless_asked_for_and_an_explicit_precision_stays():
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    assert device_name(strategy) == "CPU"
    assert [use_xla(choice, strategy) for choice in (Xla.AUTO, Xla.ON, Xla.OFF)] == [
        False, True, False]
    assert resolve_precision(Precision.FLOAT16, strategy) is Precision.FLOAT16
    assert resolve_precision(Precision.AUTO, strategy) in (Precision.FLOAT32, Precision.BFLOAT16)


@pytest.mark.parametrize(("capability", "auto"), [
    ((7, 0), Precision.FLOAT32), ((8, 0), Precision.BFLOAT16)])
def test_bfloat16_is_for_gpus_that_multiply_it(monkeypatch, capability, auto):
    details = {"device_name": "Some GPU", "compute_capability": capability}
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["a GPU"])
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda gpu: details)
    strategy = SimpleNamespace(extended=SimpleNamespace(worker_devices=("/device:GPU:0",)))
    assert resolve_precision(Precision.AUTO, strategy) is auto
    if auto is Precision.BFLOAT16:
        assert resolve_precision(Precision.BFLOAT16, strategy) is Precision.BFLOAT16
    else:
        with pytest.raises(UserError, match="Some GPU has no bfloat16"):
            resolve_precision(Precision.BFLOAT16, strategy)


@pytest.mark.parametrize(("device", "configured", "steps"), [
    ("TPU", 0, 20), ("TPU", 5, 5), ("GPU", 0, 1), ("CPU", 0, 1), ("CPU", 7, 7)])
def test_a_tpu_runs_several_steps_at_a_time_unless_told_otherwise(device, configured, steps):
    strategy = SimpleNamespace(extended=SimpleNamespace(worker_devices=(f"/device:{device}:0",)))
    assert steps_per_loop(RuntimeConfig(steps_per_loop=configured), strategy) == steps


@pytest.mark.parametrize("changes", [
    {"num_replicas": 2}, {"distribution_strategy": Strategy.MIRRORED}])
def test_the_runs_of_a_process_may_sum_tensors_of_different_shapes(changes):
    """The stages of a run and the tasks of a command ask for a strategy each."""
    for size in (2, 3):
        strategy = create_strategy(RuntimeConfig(**changes, log_every_steps=size))

        def sum_ones(size=size):
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.ones([size]))

        sums = tf.function(lambda run=strategy.run, ones=sum_ones: run(ones))()
        assert [part.numpy().tolist() for part in strategy.experimental_local_results(sums)] == [
            [2.0] * size] * 2


def test_one_device_is_the_default_and_replicas_are_logical_cpus():
    assert create_strategy(RuntimeConfig()).num_replicas_in_sync == 1
    assert create_strategy(RuntimeConfig(num_replicas=2)).num_replicas_in_sync == 2
    strategy = create_strategy(RuntimeConfig(distribution_strategy=Strategy.MIRRORED))
    assert strategy.num_replicas_in_sync == len(tf.config.list_logical_devices("CPU")) == 2


@pytest.mark.parametrize(("changes", "variable", "words"), [
    ({"num_replicas": 3}, None, "--num_replicas=3, but this process began with 2 CPU"),
    ({"num_replicas": 2}, '{"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}}',
     "--num_replicas splits the CPU of a single process"),
    ({"distribution_strategy": Strategy.MULTI_WORKER_MIRRORED}, "nonsense", "TF_CONFIG"),
    ({"num_gpus": 9}, None, "--num_gpus=9, but this machine has 0"),
    ({"distribution_strategy": Strategy.TPU}, None, "needs --tpu"),
    ({"tpu": "local"}, None, "--tpu=local: this TensorFlow was built without TPU support"),
    ({"tpu": "grpc://127.0.0.1:1"}, None, "--tpu=grpc://127.0.0.1:1 can't be reached"),
])
def test_hardware_that_isnt_there_is_one_line(monkeypatch, changes, variable, words):
    tf.config.list_logical_devices()
    if variable is not None:
        monkeypatch.setenv("TF_CONFIG", variable)
    with pytest.raises(UserError, match=words):
        create_strategy(RuntimeConfig(**changes))


def test_a_gpu_that_stays_unused_is_noted_once_or_refused(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(strategies, "_DRIVER", tmp_path)  # It is there.
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    note_once.cache_clear()
    create_strategy(RuntimeConfig())
    create_strategy(RuntimeConfig())
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("note: this machine has NVIDIA's driver") and "cuda.lock" in line
    create_strategy(RuntimeConfig(num_gpus=0))
    assert capsys.readouterr().err == ""
    with pytest.raises(UserError, match="--num_gpus=2, but this machine has NVIDIA.*nvidia-smi"):
        create_strategy(RuntimeConfig(num_gpus=2))
    note_once.cache_clear()
