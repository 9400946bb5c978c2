"""How much memory a training step takes at least, and how much a machine has."""

import os
import pathlib

from electra_tf.modeling.flops import EncoderShape

BYTES_PER_WEIGHT = 16
"""A weight, its gradient and two moments of Adam, in float32."""
_CGROUP = pathlib.Path("/sys/fs/cgroup/memory.max")


def state_bytes(weights: int) -> int:
    """Returns what weights, gradients and the optimizer's moments take together."""
    return BYTES_PER_WEIGHT * weights


def least_activation_bytes(shape: EncoderShape, rows: int, sequence_length: int, *,
                           recompute: bool) -> int:
    """Returns a lower bound of what an encoder keeps for the gradient.

    Only what no implementation can leave out: per layer its input, queries, keys and values, what
    attention gives, and the feed-forward layer's inner vector, in 16 bits. With `recompute` only
    the inputs of the layers.

    Args:
        shape: of the encoder.
        rows: examples computed at once.
        sequence_length: L.
        recompute: as `--gradient_checkpointing`.
    """
    values = shape.hidden_size if recompute else 5 * shape.hidden_size + shape.intermediate_size
    return 2 * rows * sequence_length * shape.num_layers * values


def physical_bytes() -> int:
    """Returns the memory that this process can use: the machine's, or its container's."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _CGROUP.read_text().strip() if _CGROUP.exists() else "max"
    return min(memory, int(limit)) if limit.isdigit() else memory
