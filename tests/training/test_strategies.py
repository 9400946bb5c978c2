"""Strategies, and one line where the hardware is missing."""

import pytest
import tensorflow as tf

from electra_tf.config.runtime import RuntimeConfig, Strategy
from electra_tf.platform.errors import UserError, note_once
from electra_tf.training import strategies
from electra_tf.training.strategies import create_strategy


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
    ({"tpu": "local"}, None, "--tpu=local: this TensorFlow was built without TPUs"),
    ({"tpu": "grpc://127.0.0.1:99999999"}, None, "can't be reached"),
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
