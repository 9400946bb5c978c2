"""What TensorFlow says when a step can't be computed, in words that help."""

import contextlib
import re
from collections.abc import Iterator

import tensorflow as tf

from electra_tf.platform.errors import UserError

SMALLER_STEPS = ("Take a smaller --train_batch_size; or keep it and split every step, "
                 "--gradient_accumulation_steps=4 for example; or add --gradient_checkpointing.")
_PLACES = ("Graph execution error", "Detected at node", "File ", "Hint", "[[", "(", "<stack")
"""How lines of a message begin that are about the graph."""
_DISK = re.compile("no space left|quota|file too large", re.IGNORECASE)
_OF_RECORDS = re.compile("the records|its manifest|a shard|parse serialized proto|Feature: ")
"""What our own checks of records say within the graph."""


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turns failures of training that a user can mend into one line; also a decorator.

    Raises:
        UserError: a batch doesn't fit into memory, the disk is full, or a shard is damaged.
    """
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        reason = _reason(error)
        if _DISK.search(reason):
            raise UserError(f"the disk is full: {reason}; make room, and the same command goes on "
                            "from its last checkpoint.") from error
        raise UserError(f"the memory is full: {reason}. {SMALLER_STEPS}") from error
    except tf.errors.DataLossError as error:
        raise UserError(f"the records are damaged: {_reason(error)}; copy them again or build them "
                        "again. --set runtime.verify_checksums=true names the shard at the start."
                        ) from error
    except tf.errors.InvalidArgumentError as error:
        reason = _reason(error)
        if not _OF_RECORDS.search(reason):
            raise
        raise UserError(f"the records are damaged: {reason}. `python -m electra_tf.apps.inspection."
                        "inspect_records --data_dir=DIR` names the file and the record.") from error


def _reason(error: tf.errors.OpError) -> str:
    """Returns what a message says first, without TensorFlow's graph and its place in our files."""
    ours = re.search(r"assertion failed: \[(.*?)\]", error.message)
    if ours:
        return ours[1]
    text = re.sub(r"\{\{.*?\}\}", "", error.message.split("[Op:")[0])
    said = [line.strip() for line in text.splitlines() if not line.strip().startswith(_PLACES)]
    return " ".join(filter(None, said))[:200].rstrip(". ")
