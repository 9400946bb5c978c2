"""Sets up the devices of a program that trains or predicts: strategies and threads.

TensorFlow splits an op over all cores of a CPU and waits for the last core after every op. If each
core computes a part of the batch instead, none waits: 14 % more tokens/s for ELECTRA-Small at batch
32 and L = 128 on two cores.
"""

import contextlib
import functools
import os
import pathlib
import socket
from typing import Any

import tensorflow as tf

from electra_tf.config.runtime import RuntimeConfig, Strategy, Xla
from electra_tf.core import command_line, machine, signals
from electra_tf.core.errors import UserError, note_once, tensorflow_reason
from electra_tf.core.machine import usable_cores
from electra_tf.training import workers
from electra_tf.training.devices import Settings, resolve_precision
from electra_tf.training.step import largest_divisor

MAX_PARTS = 4  # Each part has its own gradients for all weights; more parts are not faster.
NO_REWRITING = "disable_meta_optimizer"
"""TensorFlow's option that turns off the rewriting of graphs."""
_DRIVER = pathlib.Path("/dev/nvidiactl")
# One strategy for all runs of a process: each numbers its sums from the same number, and TensorFlow
# refuses another shape with a number that was used.
_mirrored = functools.cache(tf.distribute.MirroredStrategy)
_multi_worker = functools.cache(tf.distribute.MultiWorkerMirroredStrategy)


def setup_devices(config: Settings) -> tuple[tf.distribute.Strategy, dict[str, Any]]:
    """Sets up threads and devices; TensorFlow takes them only before its first op.

    Returns the strategy, and the values of automatic settings by name. A `UserError` refuses
    devices that can't be reached and a batch that can't be split over them.
    """
    # Threads first: TensorFlow takes them with its first op or device.
    training, runtime = config.training, config.runtime
    if runtime.deterministic:
        tf.config.experimental.enable_op_determinism()
    steps = runtime.gradient_accumulation_steps
    parts = prepare_cpu(runtime, training.train_batch_size // steps)
    strategy = create_strategy(runtime)

    # Every replica gets as many rows as the others in each micro-batch.
    replicas, batch = strategy.num_replicas_in_sync, training.train_batch_size
    if batch % (replicas * steps):
        raise UserError(
            f"--train_batch_size={batch} can't be split over {replicas} replicas times {steps} "
            f"micro-batches. Use a multiple of {replicas * steps}.")
    compile_silently()
    return strategy, {"runtime.cpu_parts": parts,
                      "training.precision": resolve_precision(training.precision, strategy)}


def compile_silently() -> None:
    """Compiles a function with XLA, which reports its first compilation in Abseil's log."""
    with machine.stderr_closed():
        tf.function(tf.identity, jit_compile=True)(tf.constant(0.0))


def prepare_cpu(config: RuntimeConfig, rows: int) -> int:
    """Returns the number of parallel parts of a micro-batch, a divisor of its `rows`.

    It is 1 with several devices, a GPU, XLA, which compiles the whole batch, or determinism.
    Otherwise this sets up the CPU: threads, if TensorFlow has run no op, and no rewriting of
    graphs, which delays the first step by 4 s and only fuses what `modeling/fused.py` has fused.
    """
    op_by_op = not (
        config.xla is Xla.ON or config.deterministic or _kind(config) is not Strategy.ONE_DEVICE
        or _gpu_names(config.num_gpus))
    # An earlier run of this process may have had other settings.
    tf.config.optimizer.set_experimental_options({NO_REWRITING: op_by_op})
    if not op_by_op:
        return 1

    # A thread for each part, and the remaining cores for the ops within it.
    cores = usable_cores()
    parts = largest_divisor(rows, config.cpu_parts or min(cores, MAX_PARTS))
    if parts > 1:
        with contextlib.suppress(RuntimeError):  # TensorFlow has its threads already.
            tf.config.threading.set_inter_op_parallelism_threads(max(parts, cores))
            tf.config.threading.set_intra_op_parallelism_threads(max(1, cores // parts))
    return parts


def create_strategy(config: RuntimeConfig) -> tf.distribute.Strategy:
    """Returns the strategy of the settings, or refuses missing devices with a `UserError`."""
    kind = _kind(config)
    if kind is Strategy.TPU:
        return _tpu(config.tpu)

    # Several processes, which TensorFlow waits for.
    if kind is Strategy.MULTI_WORKER_MIRRORED:
        cluster = workers.parse(os.environ.get(workers.VARIABLE, ""))
        if others := workers.other_addresses(cluster):
            note_once(f"waiting for {', '.join(others)}: each has to run this command, with the "
                      "same cluster and its own task in TF_CONFIG")
        with signals.default_signal_handlers():
            return _multi_worker(cluster)

    # Replicas on one CPU, split into logical devices.
    if config.num_replicas:
        if workers.cluster():
            raise UserError("--num_replicas splits the CPU of a single process; TF_CONFIG makes "
                            "this one of several. Leave either out.")
        cpu, *_ = tf.config.list_physical_devices("CPU")
        with contextlib.suppress(RuntimeError):  # TensorFlow has its devices already.
            tf.config.set_logical_device_configuration(
                cpu, [tf.config.LogicalDeviceConfiguration()] * config.num_replicas)
        names = _cpu_names()
        if len(names) < config.num_replicas:
            raise UserError(
                f"--num_replicas={config.num_replicas}, but this process began with {len(names)} "
                "CPU devices. Set it in a new process, before TensorFlow's first op.")
        return _mirrored(tuple(names[:config.num_replicas]))

    # The GPUs of this machine, or its CPU.
    gpus = _gpu_names(config.num_gpus)
    if kind is Strategy.MIRRORED:
        return _mirrored(tuple(gpus or _cpu_names()))
    return tf.distribute.OneDeviceStrategy(gpus[0] if gpus else "CPU:0")


def _kind(config: RuntimeConfig) -> Strategy:
    if config.distribution_strategy is not Strategy.AUTO:
        return config.distribution_strategy
    if config.tpu:
        return Strategy.TPU
    if config.num_replicas:
        return Strategy.MIRRORED
    if workers.cluster():
        return Strategy.MULTI_WORKER_MIRRORED
    return Strategy.MIRRORED if len(_gpu_names(config.num_gpus)) > 1 else Strategy.ONE_DEVICE


def _gpu_names(count: int) -> list[str]:
    """Returns the names of the first `count` GPUs of this machine; of all for -1."""
    names = [f"GPU:{index}" for index in range(len(tf.config.list_physical_devices("GPU")))]
    reason = "" if names else _why_no_gpu()
    if count < 0 and reason:
        note_once(f"{reason}. The run uses the CPU; --num_gpus=0 removes this note.")
    if count > len(names):
        reason = reason or f"this machine has {len(names)}. Ask for at most that many"
        raise UserError(f"--num_gpus={count}, but {reason}; --num_gpus=0 runs on the CPU.")
    return names if count < 0 else names[:count]


def _cpu_names() -> list[str]:
    """Returns the names of logical CPU devices: one, or as many as the CPU was split into."""
    return [f"CPU:{index}" for index in range(len(tf.config.list_logical_devices("CPU")))]


def _tpu(name: str) -> tf.distribute.Strategy:
    if not name:
        raise UserError('--distribution_strategy=tpu needs --tpu: a name, a grpc:// address, or '
                        '"local" on a TPU VM.')

    # TensorFlow would wait minutes for an address without a TPU.
    if name.startswith("grpc://"):
        host, _, port = name.removeprefix("grpc://").partition(":")
        try:
            socket.create_connection((host, int(port or 8470)), timeout=10).close()
        except (OSError, ValueError, OverflowError) as error:
            raise UserError(f"--tpu={name} can't be reached: {error}. Check the address and that "
                            "the TPU is running.") from error

    # The cores of a pod or of this machine, whose memory is cleared.
    try:
        with machine.stderr_closed():
            resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
            if name != "local":
                tf.config.experimental_connect_to_cluster(resolver)
            tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    except (ValueError, RuntimeError, OSError, ImportError, tf.errors.OpError) as error:
        if "No OpKernel was registered" in str(error):
            raise UserError(f"--tpu={name}: this TensorFlow was built without TPU support. In a "
                            "clone, `make tpu` replaces it; with the package, install "
                            "tensorflow-tpu 2.20 instead of tensorflow.") from error
        raise UserError(f"--tpu={name} can't be reached: {tensorflow_reason(error)}. Check the "
                        "name or address, the zone and that the TPU is running.") from error


def _why_no_gpu() -> str:
    """Returns what to do if TensorFlow finds no GPU; "" where none is expected."""
    if not _DRIVER.exists() or os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return ""
    return ("this machine has NVIDIA's driver, but TensorFlow finds no GPU: "
            f"`{command_line.pip_install('cuda')}` installs CUDA's libraries (in a clone's .venv "
            "`pip install --require-hashes -r requirements/cuda.lock`), and `nvidia-smi` shows if "
            "the driver works and is new enough for CUDA 12")
