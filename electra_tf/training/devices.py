"""What the devices of a strategy are, and which number type suits them."""

import os

import tensorflow as tf

from electra_tf.config.pretraining import Precision
from electra_tf.config.runtime import RuntimeConfig, Xla
from electra_tf.modeling.fused import cpu_multiplies_bfloat16
from electra_tf.platform.errors import UserError

POLICIES = {
    Precision.FLOAT32: "float32",
    Precision.BFLOAT16: "mixed_bfloat16",
    Precision.FLOAT16: "mixed_float16",
}
"""Keras mixed-precision policy of each precision."""
TPU_STEPS = 20
"""A signal waits for them: at a second a step, which is slow, less than the 30 that a preempted
machine is given."""


def resolve_precision(precision: Precision, strategy: tf.distribute.Strategy) -> Precision:
    """Returns `precision`, AUTO replaced by what the strategy's devices multiply fastest.

    Raises:
        UserError: bfloat16 for GPUs that have no units for it.
    """
    if precision is Precision.BFLOAT16 and _device_type(strategy) == "GPU" and (
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
    return _device_type(strategy) == "GPU"


def steps_per_loop(runtime: RuntimeConfig, strategy: tf.distribute.Strategy) -> int:
    """Returns the steps that devices run, at most, without coming back to the program.

    One on a CPU or a GPU, which begins the next step while one is still running. A TPU waits for
    its host between two calls.
    """
    return runtime.steps_per_loop or (TPU_STEPS if _device_type(strategy) == "TPU" else 1)


def device_name(strategy: tf.distribute.Strategy) -> str:
    """Returns the model of the strategy's devices as the driver names it, or "CPU"."""
    kind = _device_type(strategy)
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
    return strategy.num_replicas_in_sync == 1 and _device_type(strategy) == "CPU"


def _device_type(strategy: tf.distribute.Strategy) -> str:
    devices = strategy.extended.worker_devices
    return tf.DeviceSpec.from_string(devices[0]).device_type


def _multiplies_bfloat16(strategy: tf.distribute.Strategy) -> bool:
    kind = _device_type(strategy)
    if kind == "TPU":
        return True
    if kind == "GPU":
        capabilities = [
            tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0))
            for gpu in tf.config.list_physical_devices("GPU")]
        return all(capability >= (8, 0) for capability in capabilities)
    return cpu_multiplies_bfloat16()
