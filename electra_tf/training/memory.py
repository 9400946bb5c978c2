"""Refuses a step that can't fit, before anything is allocated.

On a CPU nothing else would: the system grants memory that it hasn't, and kills the process later
without a word.
"""

import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.config.runtime import RuntimeConfig
from electra_tf.modeling.flops import EncoderShape
from electra_tf.platform.errors import UserError
from electra_tf.training.activation_memory import (
    least_activation_bytes,
    physical_bytes,
    state_bytes,
)
from electra_tf.training.failures import SMALLER_STEPS

_GB = 1e9


def require_room(model: ModelConfig, runtime: RuntimeConfig, strategy: tf.distribute.Strategy, *,
                 length: int, batch: int) -> None:
    """Compares the least that a training run takes with the memory of the machine.

    Args:
        model: of the discriminator or the encoder; a generator isn't counted.
        runtime: how a batch is split.
        strategy: where the run computes; weights are made on the machine, wherever they go then.
        length: L.
        batch: examples of a step, over all replicas.

    Raises:
        UserError: even the least doesn't fit.
    """
    there = physical_bytes()
    weights = state_bytes(model.parameters)
    if weights > there:
        raise UserError(
            f"a network of {model.parameters:,} weights takes {weights / _GB:,.0f} GB with its "
            f"optimizer's state; this machine has {there / _GB:,.0f}. Take a smaller model "
            "(model.hidden_size, model.num_layers, model.vocab_size).")
    on_cpu = strategy.extended.worker_devices[0].rpartition("/device:")[2].startswith("CPU")
    rows = -(-batch // runtime.gradient_accumulation_steps)
    needed = weights + least_activation_bytes(
        EncoderShape.of(model), rows, length, recompute=runtime.gradient_checkpointing)
    if on_cpu and needed > there:
        raise UserError(f"a step of {rows:,} rows of {length} tokens takes at least "
                        f"{needed / _GB:,.0f} GB; this machine has {there / _GB:,.0f}. "
                        f"{SMALLER_STEPS}")
