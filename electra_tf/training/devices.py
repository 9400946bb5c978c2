"""The devices of a strategy: their kind, precision and compiler."""

import os
from collections.abc import Callable

import tensorflow as tf

from electra_tf.config.runtime import Precision, Xla
from electra_tf.modeling.fused import cpu_multiplies_bfloat16
from electra_tf.platform.errors import UserError

POLICIES = {Precision.FLOAT32: "float32", Precision.BFLOAT16: "mixed_bfloat16",
            Precision.FLOAT16: "mixed_float16"}
"""Keras mixed-precision policy of each precision."""


def resolve_precision(precision: Precision, strategy: tf.distribute.Strategy) -> Precision:
    """Returns `precision`, or for AUTO the one in which the strategy's devices multiply fastest.

    A `UserError` refuses bfloat16 on GPUs that have no units for it.
    """
    kind = device_type(strategy)
    bfloat16 = kind != "CPU" or cpu_multiplies_bfloat16()
    if kind == "GPU":
        bfloat16 = all(
            tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0))
            >= (8, 0) for gpu in tf.config.list_physical_devices("GPU"))
    if precision is Precision.BFLOAT16 and kind == "GPU" and not bfloat16:
        raise UserError(
            f"--precision=bfloat16: {device_name(strategy)} multiplies no bfloat16 (NVIDIA's GPUs "
            "do from compute capability 8.0 on). Give --precision=float16 or float32, or leave it "
            "out.")
    if precision is not Precision.AUTO:
        return precision
    return Precision.BFLOAT16 if bfloat16 else Precision.FLOAT32


def use_xla(choice: Xla, strategy: tf.distribute.Strategy) -> bool:
    """Returns True if XLA compiles the training step.

    On the CPU XLA computes bfloat16 matmuls in float32, which is slower than oneDNN. A TPU strategy
    compiles the step by itself.
    """
    return choice is Xla.ON or (choice is Xla.AUTO and device_type(strategy) == "GPU")


def device_name(strategy: tf.distribute.Strategy) -> str:
    """Returns the model of the strategy's devices as the driver names it, or "CPU"."""
    kind = device_type(strategy)
    if kind == "GPU":
        gpu = tf.config.list_physical_devices("GPU")[0]
        return tf.config.experimental.get_device_details(gpu).get("device_name", "GPU")
    if kind == "TPU":
        # TPU VMs set it, for example to "v4-8" or "v5litepod-4".
        generation = os.environ.get("TPU_ACCELERATOR_TYPE", "").split("-")[0]
        return f"TPU {generation.replace('litepod', 'e')}".strip()
    return kind


def device_type(strategy: tf.distribute.Strategy) -> str:
    """Returns "CPU", "GPU" or "TPU"."""
    return tf.DeviceSpec.from_string(strategy.extended.worker_devices[0]).device_type


def distributed(strategy: tf.distribute.Strategy,
                batches: Callable[[tf.distribute.InputContext], tf.data.Dataset]
                ) -> tf.distribute.DistributedDataset:
    """Returns a strategy's batches; one CPU reads them without a buffer for each device.

    Such a buffer has an autotuner, and freeing an autotuner can take TensorFlow a minute.
    """
    one_cpu = device_type(strategy) == "CPU" and strategy.num_replicas_in_sync == 1
    return strategy.distribute_datasets_from_function(batches, tf.distribute.InputOptions(
        experimental_fetch_to_device=False) if one_cpu else None)
