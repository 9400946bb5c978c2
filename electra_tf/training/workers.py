"""Several processes that share every step: who reports, what they agree on, and if one is lost."""

import contextlib
import re
from collections.abc import Iterator, Sequence

import tensorflow as tf

from electra_tf.platform.command_line import same_command
from electra_tf.platform.errors import Abandoned, UserError

_LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError,
         tf.errors.CancelledError, tf.errors.InternalError)
"""What TensorFlow raises where another process is needed and doesn't answer: 1 to 3 s after it was
killed, 11 s after it was stopped."""


def has_several_workers(strategy: tf.distribute.Strategy) -> bool:
    """Tells whether other processes take part in every step."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Tells whether this process is the one that writes and reports."""
    resolver = strategy.cluster_resolver
    return resolver is None or not resolver.task_type or resolver.task_type == "chief" or (
        resolver.task_type == "worker" and resolver.task_id == 0
        and "chief" not in resolver.cluster_spec().jobs)


@contextlib.contextmanager
def loss_of_a_worker_named(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Turns TensorFlow's errors about another worker, in the block, into one line.

    Raises:
        Abandoned: another worker ended or doesn't answer.
        UserError: workers that were given clusters of different sizes.
    """
    try:
        yield
    except _LOST as error:
        if not has_several_workers(strategy):
            raise
        if "joining a group with size" in error.message:
            raise UserError("TF_CONFIG names another number of workers here than at another "
                            "worker. Give the same cluster to all.") from error
        raise Abandoned(
            f"another worker ended or can't be reached ({_reason(error)}), so this one ends too. "
            f"To go on from the newest checkpoint, on every worker: {same_command()}") from error


def _reason(error: tf.errors.OpError) -> str:
    """Returns the part of the message that says what happened to the connection."""
    text = error.message.split("aborted by:")[-1]
    return " ".join(re.split(r"Additional GRPC|The error could be", text)[0].split())[-160:].strip()


class Agreement:
    """Lets all workers go on from the same facts.

    It costs one all-reduce of a few numbers per question, and nothing where there is one worker.
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        """Takes the strategy that the workers share."""
        self._strategy = strategy
        self._several = has_several_workers(strategy)
        self._sum = tf.function(self._replicas_sum, autograph=False)

    def any(self, facts: Sequence[bool]) -> list[bool]:
        """Returns of each fact whether it is so for any worker; all have to ask the same."""
        if not self._several:
            return list(facts)
        return [count > 0 for count in self._sum(tf.constant(facts, tf.float32)).numpy()]

    def _replicas_sum(self, facts: tf.Tensor) -> tf.Tensor:
        def replica(values):
            return tf.distribute.get_replica_context().all_reduce(
                tf.distribute.ReduceOp.SUM, tf.identity(values))  # A tensor of this device.

        total = self._strategy.run(replica, args=(facts,))
        return self._strategy.experimental_local_results(total)[0]
