"""The cluster of several processes that share every step, and facts that they exchange."""

import contextlib
import dataclasses
import itertools
import os
import signal
from collections.abc import Iterator, Sequence

import tensorflow as tf

from electra_tf.platform import strict_json
from electra_tf.platform.command_line import same_command
from electra_tf.platform.errors import Abandoned, UserError, shown, tensorflow_reason
from electra_tf.platform.signals import STOPPING, StopRequest

VARIABLE = "TF_CONFIG"
_EXAMPLE = ('{"cluster": {"worker": ["host1:2222", "host2:2222"]}, '
            '"task": {"type": "worker", "index": 0}}')
_LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError,
         tf.errors.CancelledError, tf.errors.InternalError)
"""TensorFlow's errors if another process doesn't answer: 1 to 3 s after it was killed, 11 s after
it was stopped."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Task:
    __pydantic_config__ = strict_json.OPEN
    type: str
    index: int | str

    @property
    def number(self) -> int:
        """Returns the index, which some launchers write as text; -1 for other text."""
        return int(self.index) if str(self.index).isdecimal() else -1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cluster:
    """The processes that share every step, and the one that runs here."""

    __pydantic_config__ = strict_json.OPEN
    cluster: dict[str, list[str]]
    task: _Task

    @property
    def resolver(self) -> tf.distribute.cluster_resolver.ClusterResolver:
        """Returns the cluster as TensorFlow's strategies take it."""
        return tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(self.cluster), task_type=self.task.type,
            task_id=self.task.number, rpc_layer="grpc")

    @property
    def others(self) -> list[str]:
        """Addresses of all processes but this one, for which TensorFlow waits up to an hour."""
        own = self.cluster[self.task.type][self.task.number]
        return [address for addresses in self.cluster.values() for address in addresses
                if address != own]


def cluster() -> Cluster | None:
    """Returns the cluster of TF_CONFIG, or None for one device.

    As for TensorFlow's resolver, an empty variable and one without a cluster mean one device, and
    an evaluator is no part of the cluster that trains. A `UserError` refuses an invalid value.
    """
    text = os.environ.get(VARIABLE, "")
    with contextlib.suppress(strict_json.Unreadable):  # `parse` names the problem.
        content = strict_json.parse(os.fsencode(text)) if text.strip() else {}
        if isinstance(content, dict) and content.get("cluster") in (None, {}):
            return None
    return parse(text)


def parse(text: str) -> Cluster:
    """Returns the cluster that TF_CONFIG describes; a `UserError` refuses an invalid one."""
    try:
        cluster = strict_json.loads(os.fsencode(text), Cluster)
    except strict_json.Unreadable as error:
        raise UserError(
            "Several workers need the environment variable TF_CONFIG in each of them, for example "
            f"{_EXAMPLE}: {error}. Received: {shown(text)}") from None
    cluster.cluster.pop("evaluator", None)
    problem = _problem(cluster.cluster, cluster.task)
    if problem:
        raise UserError(f"TF_CONFIG: {problem}. Received: {shown(text)}")
    return cluster


def _problem(jobs: dict[str, list[str]], task: _Task) -> str:
    if task.type == "evaluator":
        return ("task.type evaluator does not train; run --mode=eval in a process without "
                "TF_CONFIG")
    if "master" in jobs:
        return "the job master is named chief since TensorFlow 2; rename it, in task.type too"
    if "ps" in jobs:
        return ("parameter servers (the job ps) are not supported; leave the job out, and give "
                "every chief and worker its own process")
    if jobs.keys() - {"chief", "worker"} or len(jobs.get("chief", ())) > 1:
        return "the cluster has a job chief of one process at most, a job worker, and no others"
    addresses = [address for names in jobs.values() for address in names]
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            return f"{shown(address)} must be host:port"
        if addresses.count(address) > 1:
            return f"{address} is listed twice"
    if not 0 <= task.number < len(jobs.get(task.type, ())):
        return f"the cluster has no task.type {shown(task.type)} with task.index {task.index}"
    return ""


def has_several_workers(strategy: tf.distribute.Strategy) -> bool:
    """Returns True if other processes take part in every step."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Returns True in the one process that writes and reports."""
    resolver = strategy.cluster_resolver
    return resolver is None or not resolver.task_type or resolver.task_type == "chief" or (
        resolver.task_type == "worker" and resolver.task_id == 0
        and "chief" not in resolver.cluster_spec().jobs)


@contextlib.contextmanager
def report_lost_worker(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Converts TensorFlow's errors about another worker to `Abandoned` or a `UserError`."""
    try:
        yield
    except _LOST as error:
        if not has_several_workers(strategy):
            raise
        if "joining a group with size" in error.message:
            raise UserError("TF_CONFIG names another number of workers here than at another "
                            "worker. Give the same cluster to all.") from error
        raise Abandoned(
            f"another worker ended or can't be reached ({tensorflow_reason(error, 160)}), so this "
            "one ends too. To go on from the newest checkpoint, on every worker: "
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
        received = self.any([stop.number == number for number in STOPPING])
        return max(itertools.compress(STOPPING, received), default=None)
