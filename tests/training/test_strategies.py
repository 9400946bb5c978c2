import dataclasses
import os
import socket
from types import SimpleNamespace

import pytest
import tensorflow as tf

from electra_tf.config.pretraining import Precision
from electra_tf.config.runtime import RuntimeConfig, Strategy, Xla
from electra_tf.platform.errors import UserError
from electra_tf.training import cuda
from electra_tf.training.devices import (
    device_name,
    resolve_precision,
    steps_per_loop,
    use_xla,
)
from electra_tf.training.strategies import create_strategy


def with_strategy(kind: Strategy, **changes) -> RuntimeConfig:
    return dataclasses.replace(RuntimeConfig(), distribution_strategy=kind, **changes)


def test_auto_takes_one_device_on_a_machine_without_gpus():
    assert create_strategy(with_strategy(Strategy.AUTO)).num_replicas_in_sync == 1


def test_mirrored_uses_every_logical_cpu():
    strategy = create_strategy(with_strategy(Strategy.MIRRORED))
    assert strategy.num_replicas_in_sync == len(tf.config.list_logical_devices("CPU")) == 2


def test_the_cpu_is_split_into_replicas():
    strategy = create_strategy(RuntimeConfig(num_replicas=2))
    assert strategy.num_replicas_in_sync == 2


def test_replicas_past_the_devices_that_tensorflow_began_with_are_refused():
    tf.config.list_logical_devices()
    with pytest.raises(UserError, match="--num_replicas=3, but this process began with 2 CPU"):
        create_strategy(RuntimeConfig(num_replicas=3))


@pytest.mark.parametrize(("changes", "given"), [
    ({"tpu": "local"}, "tpu"), ({"num_gpus": 2}, "num_gpus"),
    ({"distribution_strategy": Strategy.ONE_DEVICE}, "distribution_strategy")])
def test_replicas_of_a_cpu_and_other_devices_do_not_go_together(changes, given):
    with pytest.raises(UserError, match=rf"runtime.num_replicas must be 0 when {given} is given"):
        RuntimeConfig(num_replicas=2, **changes)


def test_replicas_of_a_cpu_and_several_processes_do_not_go_together(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{}")
    with pytest.raises(UserError, match="--num_replicas splits the CPU of a single process"):
        create_strategy(RuntimeConfig(num_replicas=2))


def test_a_tpu_that_answers_something_else_is_one_line(monkeypatch, capfd):
    def connect(resolver):
        os.write(2, b"E0000 context_distributed_manager.cc: status: 404\n")
        raise tf.errors.UnimplementedError(
            None, None, "status: 404\nAdditional GRPC error information from remote target: more")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr(tf.config, "experimental_connect_to_cluster", connect)
        name = f"grpc://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(UserError, match=r"can't be reached: status: 404\. Check the name"):
            create_strategy(RuntimeConfig(tpu=name))
    assert capfd.readouterr().err == ""


def test_a_tensorflow_without_tpus_is_named():
    with pytest.raises(UserError, match="--tpu=local: this TensorFlow was built without TPUs"):
        create_strategy(RuntimeConfig(tpu="local"))


def test_more_gpus_than_there_are_is_refused():
    with pytest.raises(UserError, match="--num_gpus=9, but this machine has 0"):
        create_strategy(with_strategy(Strategy.ONE_DEVICE, num_gpus=9))


@pytest.mark.parametrize("text", ["", "nonsense", "{}", '{"cluster": {"worker": []}}'])
def test_multi_worker_without_a_cluster_is_refused(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(UserError, match="TF_CONFIG"):
        create_strategy(with_strategy(Strategy.MULTI_WORKER_MIRRORED))


def test_a_tpu_that_nobody_serves_is_one_line():
    with socket.socket() as listener:  # Reserves a port without listening on it.
        listener.bind(("127.0.0.1", 0))
        address = f"grpc://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(UserError) as error:
            create_strategy(RuntimeConfig(tpu=address))
    assert f"--tpu={address} can't be reached" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("address", ["grpc://127.0.0.1:port", "grpc://127.0.0.1:99999999"])
def test_a_malformed_tpu_address_is_one_line(address):
    with pytest.raises(UserError, match="can't be reached"):
        create_strategy(RuntimeConfig(tpu=address))


def test_the_tpu_strategy_needs_a_tpu():
    with pytest.raises(UserError, match="needs --tpu"):
        create_strategy(with_strategy(Strategy.TPU))


def test_an_explicit_precision_stays_and_auto_is_resolved():
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
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
        with pytest.raises(UserError, match="Some GPU multiplies no bfloat16"):
            resolve_precision(Precision.BFLOAT16, strategy)


@pytest.mark.parametrize(("device", "given", "steps"), [
    ("TPU", 0, 20), ("TPU", 5, 5), ("GPU", 0, 1), ("CPU", 0, 1), ("CPU", 7, 7)])
def test_a_tpu_runs_several_steps_at_a_time_unless_told_otherwise(device, given, steps):
    strategy = SimpleNamespace(extended=SimpleNamespace(worker_devices=(f"/device:{device}:0",)))
    assert steps_per_loop(RuntimeConfig(steps_per_loop=given), strategy) == steps


@pytest.fixture
def driver(monkeypatch, tmp_path):
    """NVIDIA's driver is there, and TensorFlow finds no GPU."""
    monkeypatch.setattr(cuda, "_DRIVER", tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    cuda.note_unused_gpu.cache_clear()
    yield
    cuda.note_unused_gpu.cache_clear()


@pytest.mark.parametrize(("missing", "words"), [
    (["libcudnn.so.9"], "libcudnn.so.9 can't be loaded; `pip install --require-hashes -r "
                        "requirements/cuda.lock`"),
    ([], "CUDA's libraries are there; `nvidia-smi`")])
def test_a_gpu_that_stays_unused_is_noted_once_or_refused(driver, monkeypatch, capsys, missing,
                                                          words):
    monkeypatch.setattr(cuda, "missing_libraries", lambda: missing)
    create_strategy(RuntimeConfig())
    create_strategy(RuntimeConfig())
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("note: this machine has NVIDIA's driver") and words in line
    create_strategy(RuntimeConfig(num_gpus=0))
    assert capsys.readouterr().err == ""
    with pytest.raises(UserError, match=f"--num_gpus=2, but this machine has NVIDIA.*{words}"):
        create_strategy(RuntimeConfig(num_gpus=2))


def test_a_gpu_that_is_hidden_isnt_missed(driver, monkeypatch, capsys):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    create_strategy(RuntimeConfig())
    assert capsys.readouterr().err == ""


def test_libraries_of_wheels_and_of_the_system_count(monkeypatch, tmp_path):
    folder = tmp_path / "nvidia" / "cudnn" / "lib"
    folder.mkdir(parents=True)
    (folder / "libcudnn.so.9").touch()
    monkeypatch.setattr(cuda, "LIBRARIES", ("libcudnn.so.9", "libc.so.6", "libnowhere.so.1"))
    monkeypatch.setattr(cuda.site, "getsitepackages", lambda: [str(tmp_path)])
    assert cuda.missing_libraries() == ["libnowhere.so.1"]


def test_xla_is_off_on_the_cpu_unless_asked_for():
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    assert device_name(strategy) == "CPU"
    assert not use_xla(Xla.AUTO, strategy)
    assert use_xla(Xla.ON, strategy)
    assert not use_xla(Xla.OFF, strategy)
