"""Refusal of steps that don't fit into memory, and one-line reasons for failures of training."""

import contextlib
import os
import pathlib
import re
from collections.abc import Callable, Iterator

import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.config.runtime import RuntimeConfig
from electra_tf.core.errors import UserError, note, tensorflow_reason
from electra_tf.training.devices import device_type

BYTES_PER_WEIGHT = 16  # A weight, its gradient and two moments of Adam, in float32.
_CGROUP = pathlib.Path("/sys/fs/cgroup/memory.max")
_SMALLER_STEPS = ("Use a smaller --train_batch_size; or keep it and split every step, for example "
                  "with --gradient_accumulation_steps=4; or add --gradient_checkpointing.")
_DISK = re.compile("no space left|quota|file too large", re.IGNORECASE)
_OF_RECORDS = re.compile("the records|its manifest|a shard|Could not parse|Feature: |Key: ")
"""Texts of the checks of records in the graph."""


@contextlib.contextmanager
def explained(require_records: Callable[[], None] | None = None) -> Iterator[None]:
    """Converts failures of training that a user can repair to a `UserError`; also a decorator.

    `require_records` reads all records, and raises a `UserError` that names the damaged one.
    """
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        reason = tensorflow_reason(error)
        if _DISK.search(reason):
            raise UserError(f"the disk is full: {reason}; free space and run the command without "
                            "--restart, which continues from its last checkpoint.") from error
        raise UserError(f"the memory is full: {reason}. {_SMALLER_STEPS}") from error
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError, UnicodeDecodeError) as error:
        # TensorFlow's message can hold bytes of a record, which are not UTF-8.
        # An invalid argument that isn't a check of the records is a defect of the program.
        reason = tensorflow_reason(error)
        if isinstance(error, tf.errors.InvalidArgumentError) and not _OF_RECORDS.search(reason):
            raise

        # TensorFlow doesn't name the shard; reading all of them does.
        if require_records is not None:
            note("the records are damaged; reading all shards to find the damaged one")
            require_records()
        if not isinstance(error, tf.errors.DataLossError):
            raise
        raise UserError(f"the records are damaged: {reason}; copy them again or build them again. "
                        "--set runtime.verify_checksums=true names the shard at the start."
                        ) from error


def require_memory(model: ModelConfig, runtime: RuntimeConfig, strategy: tf.distribute.Strategy, *,
                   length: int, batch: int) -> None:
    """Refuses a step that can't fit; the system would grant the memory and kill the process later.

    A `UserError` refuses more than the machine's memory. The least that an encoder keeps for the
    gradient counts: of every layer the input, queries, keys, values, the output of attention and
    the feed-forward layer's inner vector, in 16 bits; with gradient checkpointing only the input.
    `batch` is the number of examples of a step over all replicas, `length` is L.
    """
    # The machine's memory, or the container's.
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _CGROUP.read_text().strip() if _CGROUP.exists() else "max"
    if limit.isdigit():
        memory = min(memory, int(limit))

    # The weights with the optimizer's state, on any device: the host holds them, too.
    weights = BYTES_PER_WEIGHT * model.parameters
    if weights > memory:
        raise UserError(
            f"a network of {model.parameters:,} weights takes {weights / 1e9:,.0f} GB "
            f"with its optimizer's state; this machine has {memory / 1e9:,.0f}. Use a "
            "smaller model (model.hidden_size, model.num_layers, model.vocab_size).")

    # Two bytes for each value of each layer that the gradient needs, in one micro-batch.
    rows = -(-batch // runtime.gradient_accumulation_steps)
    values = (model.hidden_size if runtime.gradient_checkpointing
              else 5 * model.hidden_size + (1 + model.is_modern) * model.intermediate_size)
    needed = weights + 2 * rows * length * model.num_layers * values
    if device_type(strategy) == "CPU" and needed > memory:
        raise UserError(f"a step of {rows:,} rows of {length} tokens takes at least "
                        f"{needed / 1e9:,.0f} GB; this machine has {memory / 1e9:,.0f}. "
                        f"{_SMALLER_STEPS}")
