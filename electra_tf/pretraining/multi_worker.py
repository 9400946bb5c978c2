"""Exchanges facts and signals between workers; says which one reports and that one is lost."""

import contextlib
import itertools
import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.core.command_line import same_command
from electra_tf.core.errors import Abandoned, UserError, tensorflow_reason
from electra_tf.core.signals import STOPPING, StopRequest

_LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError,
         tf.errors.CancelledError, tf.errors.InternalError)
"""TensorFlow's errors if another process doesn't answer: 1 to 3 s after it was killed, 11 s after
it was stopped."""
_SETTINGS_LENGTH = 1 << 16  # Bytes of all settings, with room to spare.


def has_several_workers(strategy: tf.distribute.Strategy) -> bool:
    """Returns True if other processes take part in every step."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Returns True in the one process that writes and reports."""
    resolver = strategy.cluster_resolver
    return resolver is None or not resolver.task_type or resolver.task_type == "chief" or (
        resolver.task_type == "worker" and resolver.task_id == 0
        and "chief" not in resolver.cluster_spec().jobs)


def require_settings_of_chief(settings: Mapping[str, Any],
                              strategy: tf.distribute.Strategy) -> None:
    """Raises `Abandoned` on a worker with other settings than the chief's; all must call it."""
    if not has_several_workers(strategy):
        return
    # JSON as numbers, which TensorFlow can send, of the same length on all workers.
    own = json.dumps(settings).ljust(_SETTINGS_LENGTH).encode()
    (received,) = _from_chief([np.frombuffer(own, np.uint8).astype(np.int32)], strategy)
    own, chief = json.loads(own), json.loads(received.astype(np.uint8).tobytes())
    different = [f"{name} is {own.get(name)}, and {chief.get(name)} in the chief's run"
                 for name in sorted(own.keys() | chief) if own.get(name) != chief.get(name)]
    if different:
        raise Abandoned(f"this worker has other settings than the chief: {'; '.join(different)}. "
                        "Give all workers the same command and --model_dir.")


def copy_from_chief(variables: Sequence[tf.Variable], strategy: tf.distribute.Strategy) -> None:
    """Gives all workers the chief's values; all must call it together."""
    if has_several_workers(strategy):
        values = _from_chief([variable.numpy() for variable in variables], strategy)
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)


def _from_chief(values: Sequence[np.ndarray], strategy: tf.distribute.Strategy
                ) -> list[np.ndarray]:
    # TensorFlow sends the initial value of a new variable from the chief to all workers.
    with strategy.scope():
        return [tf.Variable(value, trainable=False).numpy() for value in values]


@contextlib.contextmanager
def report_lost_worker(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Converts TensorFlow's errors about another worker to `Abandoned` or a `UserError`."""
    try:
        yield
    except _LOST as error:
        if not has_several_workers(strategy):
            raise
        if "joining a group with size" in error.message:
            raise UserError("TF_CONFIG of this worker names more or fewer workers than another's. "
                            "Give all workers the same cluster.") from error
        raise Abandoned(
            f"another worker ended or can't be reached ({tensorflow_reason(error, 160)}), so this "
            "one ends too. To continue from the newest checkpoint, run on every worker: "
            + same_command()) from error


class Agreement:
    """An exchange of facts between all workers, by an all-reduce of a few numbers per call."""

    def __init__(self, strategy: tf.distribute.Strategy):
        self._strategy = strategy

        @tf.function(autograph=False)
        def sum_over_workers(facts: tf.Tensor) -> tf.Tensor:
            def replica(values):
                return tf.distribute.get_replica_context().all_reduce(
                    tf.distribute.ReduceOp.SUM, tf.identity(values))  # A tensor of this device.

            total = strategy.run(replica, args=(facts,))
            return strategy.experimental_local_results(total)[0]

        self._sum = sum_over_workers

    def any(self, facts: Sequence[bool]) -> list[bool]:
        """Returns for each fact if it is True in any worker; all workers must call it together."""
        if not has_several_workers(self._strategy):
            return list(facts)
        return [count > 0 for count in self._sum(tf.constant(facts, tf.float32)).numpy()]

    def received_signal(self, stop: StopRequest) -> signal.Signals | None:
        """Returns the signal that any worker received, the same one on all workers."""
        # A fact for each signal; of several, all workers take the one with the highest number.
        received = self.any([stop.number == number for number in STOPPING])
        return max(itertools.compress(STOPPING, received), default=None)
