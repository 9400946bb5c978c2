"""The devices of all programs that train or predict, and their precision.

TensorFlow splits an op over all cores of a CPU and waits for the last core after every op. If each
core computes a part of the batch instead, none waits: 14 % more tokens/s for ELECTRA-Small at batch
32 and L = 128 on two cores.
"""

import contextlib
import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from electra_tf.config.runtime import Precision, RuntimeConfig, Xla
from electra_tf.modeling.fused import cpu_multiplies_bfloat16
from electra_tf.platform import native_logging
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import usable_cores
from electra_tf.training.step import Settings
from electra_tf.training.strategies import create_strategy, is_one_cpu

POLICIES = {Precision.FLOAT32: "float32", Precision.BFLOAT16: "mixed_bfloat16",
            Precision.FLOAT16: "mixed_float16"}
"""Keras mixed-precision policy of each precision."""
MAX_PARTS = 4
"""Each part has its own gradients for all weights; more parts are not faster."""
NO_REWRITING = "disable_meta_optimizer"
"""TensorFlow's option that turns off the rewriting of graphs."""


def prepare(config: Settings) -> tuple[tf.distribute.Strategy, dict[str, Any]]:
    """Sets up threads and devices; TensorFlow takes them only before its first op.

    Returns the strategy, and the values of automatic settings by name. A `UserError` refuses
    devices that can't be reached and a batch that can't be split over them.
    """
    training, runtime = config.training, config.runtime
    if runtime.deterministic:
        tf.config.experimental.enable_op_determinism()
    steps = runtime.gradient_accumulation_steps
    parts = prepare_cpu(runtime, training.train_batch_size // steps)
    strategy = create_strategy(runtime)
    replicas, batch = strategy.num_replicas_in_sync, training.train_batch_size
    if batch % (replicas * steps):
        raise UserError(
            f"--train_batch_size={batch} can't be split over {replicas} replicas times {steps} "
            f"micro-batches. Take a multiple of {replicas * steps}.")
    with native_logging.stderr_closed():  # XLA reports its first compilation in Abseil's log.
        tf.function(tf.identity, jit_compile=True)(tf.constant(0.0))
    return strategy, {"runtime.cpu_parts": parts,
                      "training.precision": resolve_precision(training.precision, strategy)}


def prepare_cpu(config: RuntimeConfig, rows: int) -> int:
    """Returns the number of parallel parts of a micro-batch, a divisor of its `rows`.

    It is 1 with several devices, a GPU, XLA, which compiles the whole batch, or determinism.
    Otherwise this sets up the CPU: threads, if TensorFlow has run no op, and no rewriting of
    graphs, which delays the first step by 4 s and only fuses what `modeling/fused.py` has fused.
    """
    if config.xla is Xla.ON or config.deterministic or not is_one_cpu(config):
        return 1
    tf.config.optimizer.set_experimental_options({NO_REWRITING: True})
    cores = usable_cores()
    parts = largest_divisor(rows, config.cpu_parts or min(cores, MAX_PARTS))
    if parts > 1:
        with contextlib.suppress(RuntimeError):  # TensorFlow has its threads already.
            tf.config.threading.set_inter_op_parallelism_threads(max(parts, cores))
            tf.config.threading.set_intra_op_parallelism_threads(max(1, cores // parts))
    return parts


def largest_divisor(number: int, limit: int) -> int:
    """Returns the largest divisor of `number` up to `limit`."""
    return max(divisor for divisor in range(1, limit + 1) if number % divisor == 0)


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
