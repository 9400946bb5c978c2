"""From settings to a `tf.distribute` strategy; one clear line where the hardware is missing."""

import os
import socket

import tensorflow as tf

from electra_tf import signals
from electra_tf.config.runtime import RuntimeConfig, Strategy
from electra_tf.errors import UserError, shown
from electra_tf.reading import strict_json

TPU_CONNECT_SECONDS = 10


def create_strategy(config: RuntimeConfig) -> tf.distribute.Strategy:
    """Returns the strategy that `config` asks for.

    Raises:
        UserError: no such TPU, too few GPUs, or a TF_CONFIG that doesn't describe a cluster.
    """
    kind = config.distribution_strategy
    if kind is Strategy.AUTO:
        kind = _choose(config)
    if kind is Strategy.TPU:
        return _tpu(config.tpu)
    if kind is Strategy.MULTI_WORKER_MIRRORED:
        return _multi_worker()
    gpus = _gpu_names(config.num_gpus)
    if kind is Strategy.MIRRORED:
        return tf.distribute.MirroredStrategy(gpus or _cpu_names())
    return tf.distribute.OneDeviceStrategy(gpus[0] if gpus else "CPU:0")


def is_one_cpu(config: RuntimeConfig) -> bool:
    """Tells whether `create_strategy` will choose a single CPU; starts no device."""
    kind = config.distribution_strategy
    if kind is Strategy.AUTO:
        kind = _choose(config)
    return kind is Strategy.ONE_DEVICE and not _gpu_names(config.num_gpus)


def _choose(config: RuntimeConfig) -> Strategy:
    if config.tpu:
        return Strategy.TPU
    if "TF_CONFIG" in os.environ:
        return Strategy.MULTI_WORKER_MIRRORED
    if len(_gpu_names(config.num_gpus)) > 1:
        return Strategy.MIRRORED
    return Strategy.ONE_DEVICE


def _gpu_names(wanted: int) -> list[str]:
    """Returns the first `wanted` GPUs of this machine; all for -1."""
    names = [f"GPU:{index}" for index in range(len(tf.config.list_physical_devices("GPU")))]
    if wanted > len(names):
        raise UserError(f"--num_gpus={wanted}, but this machine has {len(names)}. Ask for at most "
                        f"that many; --num_gpus=0 runs on the CPU.")
    return names if wanted < 0 else names[:wanted]


def _cpu_names() -> list[str]:
    """Logical CPU devices: one, unless the program split the CPU to try replicas out."""
    return [f"CPU:{index}" for index in range(len(tf.config.list_logical_devices("CPU")))]


def _multi_worker() -> tf.distribute.Strategy:
    text = os.environ.get("TF_CONFIG", "")
    try:
        cluster = strict_json.parse(text)["cluster"]["worker"]
    except (ValueError, KeyError, TypeError):
        raise UserError(
            "--distribution_strategy=multi_worker_mirrored needs the environment variable "
            'TF_CONFIG, for example {"cluster": {"worker": ["host1:2222", "host2:2222"]}, '
            f'"task": {{"type": "worker", "index": 0}}}}. Received: {shown(text)}') from None
    if not cluster:
        raise UserError("TF_CONFIG lists no workers under cluster.worker.")
    with signals.left_to_the_system():
        return tf.distribute.MultiWorkerMirroredStrategy()


def _tpu(name: str) -> tf.distribute.Strategy:
    if not name:
        raise UserError('--distribution_strategy=tpu needs --tpu: a name, a grpc:// address, or '
                        '"local" on a TPU VM.')
    _check_reachable(name)
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
        if name != "local":
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    except (ValueError, RuntimeError, OSError, ImportError, tf.errors.OpError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"--tpu={name} can't be reached: {reason}. Check the name or address, "
                        "the zone and that the TPU is running.") from error


def _check_reachable(name: str) -> None:
    """Tries a plain connection first: TensorFlow would wait for minutes."""
    if name == "local" or not name.startswith("grpc://"):
        return
    host, _, port = name.removeprefix("grpc://").partition(":")
    try:
        port_number = int(port or 8470)
        socket.create_connection((host, port_number), timeout=TPU_CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise UserError(f"--tpu={name} can't be reached: {error}. Check the address and that the "
                        "TPU is running.") from error
