"""The devices of a run, in one way for all programs that train or predict, and their precision."""

import os
from typing import Any

import tensorflow as tf

from electra_tf.config.runtime import Precision, Xla
from electra_tf.modeling.fused import cpu_multiplies_bfloat16
from electra_tf.platform import native_logging
from electra_tf.platform.errors import UserError
from electra_tf.training.cores import prepare_cpu
from electra_tf.training.step import Settings
from electra_tf.training.strategies import create_strategy

POLICIES = {
    Precision.FLOAT32: "float32",
    Precision.BFLOAT16: "mixed_bfloat16",
    Precision.FLOAT16: "mixed_float16",
}
"""Keras mixed-precision policy of each precision."""


def prepare(config: Settings) -> tuple[tf.distribute.Strategy, dict[str, Any]]:
    """Sets up threads and devices; TensorFlow takes them only before its first op.

    Returns:
        The strategy, and the settings that were left to choose automatically.

    Raises:
        UserError: devices that can't be reached, or a batch that can't be split over them.
    """
    training, runtime = config.training, config.runtime
    if runtime.deterministic:
        tf.config.experimental.enable_op_determinism()
    steps = runtime.gradient_accumulation_steps
    parts = prepare_cpu(runtime, training.train_batch_size // steps)
    strategy = create_strategy(runtime)
    replicas, batch = strategy.num_replicas_in_sync, training.train_batch_size
    if batch % (replicas * steps):
        nearest = max(replicas * steps, batch // (replicas * steps) * replicas * steps)
        raise UserError(
            f"--train_batch_size={batch} can't be split over {replicas} replicas times {steps} "
            f"micro-batches. Take a multiple of {replicas * steps}, for example {nearest}.")
    with native_logging.stderr_closed():  # XLA reports its first compilation in Abseil's log.
        tf.function(tf.identity, jit_compile=True)(tf.constant(0.0))
    return strategy, {"runtime.cpu_parts": parts,
                      "training.precision": resolve_precision(training.precision, strategy)}


def resolve_precision(precision: Precision, strategy: tf.distribute.Strategy) -> Precision:
    """Returns `precision`, AUTO replaced by what the strategy's devices multiply fastest.

    Raises:
        UserError: bfloat16 for GPUs that have no units for it.
    """
    if precision is Precision.BFLOAT16 and device_type(strategy) == "GPU" and (
            not _multiplies_bfloat16(strategy)):
        raise UserError(
            f"--precision=bfloat16: {device_name(strategy)} multiplies no bfloat16 (NVIDIA's GPUs "
            "do from compute capability 8.0 on). Give --precision=float16 or float32, or leave it "
            "out.")
    if precision is not Precision.AUTO:
        return precision
    return Precision.BFLOAT16 if _multiplies_bfloat16(strategy) else Precision.FLOAT32


def use_xla(choice: Xla, strategy: tf.distribute.Strategy) -> bool:
    """Tells whether to compile the train step with XLA.

    On the CPU XLA computes bfloat16 products in float32, which is slower than oneDNN without
    XLA. A TPU strategy compiles by itself.
    """
    if choice is not Xla.AUTO:
        return choice is Xla.ON
    return device_type(strategy) == "GPU"


def device_name(strategy: tf.distribute.Strategy) -> str:
    """Returns the model of the strategy's devices as the driver names it, or "CPU"."""
    kind = device_type(strategy)
    if kind == "GPU":
        gpu = tf.config.list_physical_devices("GPU")[0]
        return tf.config.experimental.get_device_details(gpu).get("device_name", "GPU")
    if kind == "TPU":
        # Set on TPU VMs, for example "v4-8" or "v5litepod-4".
        generation = os.environ.get("TPU_ACCELERATOR_TYPE", "").split("-")[0]
        return f"TPU {generation.replace('litepod', 'e')}".strip()
    return kind


def runs_on_one_cpu(strategy: tf.distribute.Strategy) -> bool:
    """Tells whether a strategy has a single CPU and nothing else."""
    return strategy.num_replicas_in_sync == 1 and device_type(strategy) == "CPU"


def device_type(strategy: tf.distribute.Strategy) -> str:
    """Returns CPU, GPU or TPU."""
    devices = strategy.extended.worker_devices
    return tf.DeviceSpec.from_string(devices[0]).device_type


def _multiplies_bfloat16(strategy: tf.distribute.Strategy) -> bool:
    kind = device_type(strategy)
    if kind == "TPU":
        return True
    if kind == "GPU":
        capabilities = [
            tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0))
            for gpu in tf.config.list_physical_devices("GPU")]
        return all(capability >= (8, 0) for capability in capabilities)
    return cpu_multiplies_bfloat16()
