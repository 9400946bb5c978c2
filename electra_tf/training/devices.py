"""The devices of a strategy: their kind, precision and compiler, and what is created on them."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import tensorflow as tf
import tf_keras

from electra_tf.config.model import ModelConfig
from electra_tf.config.optimization import OptimizerConfig
from electra_tf.config.runtime import Precision, Xla
from electra_tf.core.errors import UserError
from electra_tf.core.machine import cpu_multiplies_bfloat16
from electra_tf.modeling.initialization import initialize
from electra_tf.objectives.objective import Objective


class Settings(Protocol):
    """The sections of settings that training reads, in pre-training and in fine-tuning."""

    model: ModelConfig
    initialization: Any
    training: Any
    optimizer: OptimizerConfig
    runtime: Any


POLICIES = {Precision.FLOAT32: "float32", Precision.BFLOAT16: "mixed_bfloat16",
            Precision.FLOAT16: "mixed_float16"}
"""Keras mixed-precision policy of each precision."""


def resolve_precision(precision: Precision, strategy: tf.distribute.Strategy) -> Precision:
    """Returns `precision`, or for AUTO the one in which the strategy's devices multiply fastest.

    A `UserError` refuses bfloat16 on GPUs that have no units for it.
    """
    # TPUs have units for bfloat16, some CPUs and GPUs do.
    kind = device_type(strategy)
    bfloat16 = kind != "CPU" or cpu_multiplies_bfloat16()
    if kind == "GPU":
        bfloat16 = all(
            tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0))
            >= (8, 0) for gpu in tf.config.list_physical_devices("GPU"))
    if precision is Precision.BFLOAT16 and kind == "GPU" and not bfloat16:
        raise UserError(
            f"--precision=bfloat16: {device_name(strategy)} has no bfloat16 instructions (NVIDIA's "
            "GPUs have them from compute capability 8.0 on). Give --precision=float16 or float32, "
            "or leave it out.")
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
                ) -> tf.data.Dataset | tf.distribute.DistributedDataset:
    """Returns a strategy's batches; one CPU reads them without a buffer for each device.

    Such a buffer has an autotuner, and freeing an autotuner can take TensorFlow a minute, or hours
    if the system's clock is set back meanwhile.
    """
    if device_type(strategy) == "CPU" and strategy.num_replicas_in_sync == 1:
        return batches(tf.distribute.InputContext())
    return strategy.distribute_datasets_from_function(batches)


@contextlib.contextmanager
def temporary_variables() -> Iterator[None]:
    """Frees the memory of all variables that the block creates, after it.

    TensorFlow keeps a traced step, and with it the variables that it reads, until the process ends.
    Scopes of strategies have to be entered within the block.
    """
    created: list[tf.Variable] = []

    def create(next_creator: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
        created.append(next_creator(**arguments))
        return created[-1]

    with tf.variable_creator_scope(create):
        yield
    # The variables stay, with empty values.
    for variable in created:
        tf.raw_ops.AssignVariableOp(resource=variable.handle, value=tf.zeros([0], variable.dtype))


def build_model(objective: Objective, config: Settings, strategy: tf.distribute.Strategy, *,
                seed: int, cls_id: int) -> tf_keras.Model:
    """Creates an objective's networks on the devices, with their initial weights."""
    with strategy.scope():
        model = objective.build_model(
            config.model, seed=seed, policy=POLICIES[config.training.precision],
            recompute=config.runtime.gradient_checkpointing)
        initialize(model, config.initialization, cls_id)
    return model
