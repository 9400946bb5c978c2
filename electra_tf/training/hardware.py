"""Devices and threads of a run, in one way for all programs that train or predict."""

from typing import Any

import tensorflow as tf

from electra_tf.platform.errors import UserError
from electra_tf.training.assembly import Config
from electra_tf.training.cores import prepare_cpu
from electra_tf.training.devices import resolve_precision
from electra_tf.training.strategies import create_strategy


def prepare(config: Config) -> tuple[tf.distribute.Strategy, dict[str, Any]]:
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
    return strategy, {"runtime.cpu_parts": parts,
                      "training.precision": resolve_precision(training.precision, strategy)}
