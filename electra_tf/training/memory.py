"""Refuses a step that can't fit: the system would grant the memory and kill the process later."""

import os
import pathlib

import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.config.runtime import RuntimeConfig
from electra_tf.platform.errors import UserError
from electra_tf.training.failures import SMALLER_STEPS

BYTES_PER_WEIGHT = 16
"""A weight, its gradient and two moments of Adam, in float32."""
_CGROUP = pathlib.Path("/sys/fs/cgroup/memory.max")
_GB = 1e9


def require_room(model: ModelConfig, runtime: RuntimeConfig, strategy: tf.distribute.Strategy, *,
                 length: int, batch: int) -> None:
    """Compares the least that a run takes, without a generator, with the machine's memory.

    `batch` is the examples of a step over all replicas, `length` is L.

    Raises:
        UserError: even the least doesn't fit.
    """
    there = physical_bytes()
    weights = BYTES_PER_WEIGHT * model.parameters
    if weights > there:
        raise UserError(
            f"a network of {model.parameters:,} weights takes {weights / _GB:,.0f} GB with its "
            f"optimizer's state; this machine has {there / _GB:,.0f}. Take a smaller model "
            "(model.hidden_size, model.num_layers, model.vocab_size).")
    on_cpu = strategy.extended.worker_devices[0].rpartition("/device:")[2].startswith("CPU")
    rows = -(-batch // runtime.gradient_accumulation_steps)
    needed = weights + least_activation_bytes(
        model, rows, length, recompute=runtime.gradient_checkpointing)
    if on_cpu and needed > there:
        raise UserError(f"a step of {rows:,} rows of {length} tokens takes at least "
                        f"{needed / _GB:,.0f} GB; this machine has {there / _GB:,.0f}. "
                        f"{SMALLER_STEPS}")


def least_activation_bytes(config: ModelConfig, rows: int, sequence_length: int, *,
                           recompute: bool) -> int:
    """Returns a lower bound of what an encoder keeps for the gradient.

    Only what no implementation can leave out: per layer its input, queries, keys and values, what
    attention gives, and the feed-forward layer's inner vector, in 16 bits. With `recompute` only
    the inputs of the layers.
    """
    values = config.hidden_size if recompute else 5 * config.hidden_size + config.intermediate_size
    return 2 * rows * sequence_length * config.num_layers * values


def physical_bytes() -> int:
    """Returns the memory that this process can use: the machine's, or its container's."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _CGROUP.read_text().strip() if _CGROUP.exists() else "max"
    return min(memory, int(limit)) if limit.isdigit() else memory
