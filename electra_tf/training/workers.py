"""The cluster of several processes that share every step."""

import contextlib
import dataclasses
import os

import tensorflow as tf

from electra_tf.core import strict_json
from electra_tf.core.errors import UserError, shown

VARIABLE = "TF_CONFIG"
_EXAMPLE = ('{"cluster": {"worker": ["host1:2222", "host2:2222"]}, '
            '"task": {"type": "worker", "index": 0}}')


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
        own_address = self.cluster[self.task.type][self.task.number]
        return [address for addresses in self.cluster.values() for address in addresses
                if address != own_address]


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
    # Jobs of other kinds of training.
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

    # Distinct addresses, and a task that is one of the processes.
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
