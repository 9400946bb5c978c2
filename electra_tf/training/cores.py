"""What the cores of a single CPU do, in training and in answering.

TensorFlow spreads an op over all cores and waits for the last one, again for every op. Parts of
the batch side by side, each of whose ops runs on cores of its own, wait for nobody: 14 % more
tokens/s for ELECTRA-Small at batch 32 and L = 128 on two cores.
"""

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from electra_tf.config.runtime import RuntimeConfig, Xla
from electra_tf.platform.machine import usable_cores
from electra_tf.training.strategies import is_one_cpu

MAX_PARTS = 4
"""More aren't worth it: every part has gradients of its own for all weights."""


def prepare_cpu(config: RuntimeConfig, rows: int) -> int:
    """Makes TensorFlow fit for training on a single CPU, if that is where a run goes.

    Threads can be set only before TensorFlow's first op; after it the parts compute the same,
    with less of a gain. TensorFlow's own rewriting of graphs is switched off: it delays the first
    step by 4 s and gains nothing, as what it would fuse is fused already (`modeling/fused.py`).

    Returns:
        A divisor of `rows`, the examples of a micro-batch: parts to compute side by side. 1 if
        there are several devices, a GPU, XLA, which compiles the whole batch, or if every bit has
        to be the same again.
    """
    if config.xla is Xla.ON or config.deterministic or not is_one_cpu(config):
        return 1
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    cores = usable_cores()
    parts = largest_divisor(rows, config.cpu_parts or min(cores, MAX_PARTS))
    if parts > 1:
        with contextlib.suppress(RuntimeError):  # TensorFlow has its threads already.
            tf.config.threading.set_inter_op_parallelism_threads(max(parts, cores))
            tf.config.threading.set_intra_op_parallelism_threads(max(1, cores // parts))
    return parts


@contextlib.contextmanager
def graph_rewriting() -> Iterator[None]:
    """Lets TensorFlow rewrite graphs, which `modeling/inference.py` is written for."""
    setting = "disable_meta_optimizer"
    before = tf.config.optimizer.get_experimental_options().get(setting, False)
    tf.config.optimizer.set_experimental_options({setting: False})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({setting: before})


def largest_divisor(number: int, limit: int) -> int:
    """Returns the largest divisor of `number` up to `limit`.

    >>> largest_divisor(30, 4)
    3
    """
    return max(divisor for divisor in range(1, limit + 1) if number % divisor == 0)
