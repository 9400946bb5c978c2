"""The cluster of several processes that share every step."""

import contextlib
import functools
import os

import tensorflow as tf

from electra_tf.core import strict_json
from electra_tf.core.errors import UserError, shown

VARIABLE = "TF_CONFIG"
Resolver = tf.distribute.cluster_resolver.SimpleClusterResolver
_EXAMPLE = ('{"cluster": {"worker": ["host1:2222", "host2:2222"]}, '
            '"task": {"type": "worker", "index": 0}}')


class _Task(strict_json.OpenObject):
    type: str
    index: int | str  # Some launchers write it as text.


class _Cluster(strict_json.OpenObject):
    cluster: dict[str, list[str]]
    task: _Task


def cluster() -> Resolver | None:
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


@functools.cache  # Runs of one process share a strategy of the cluster.
def parse(text: str) -> Resolver:
    """Returns the cluster that TF_CONFIG describes; a `UserError` refuses an invalid one."""
    try:
        content = strict_json.loads(os.fsencode(text), _Cluster)
    except strict_json.Unreadable as error:
        raise UserError(
            "Several workers need the environment variable TF_CONFIG in each of them, for example "
            f"{_EXAMPLE}: {error}. Received: {shown(text)}") from None
    content.cluster.pop("evaluator", None)
    if problem := _problem(content.cluster, content.task):
        raise UserError(f"TF_CONFIG: {problem}. Received: {shown(text)}")
    return Resolver(tf.train.ClusterSpec(content.cluster), task_type=content.task.type,
                    task_id=int(content.task.index), rpc_layer="grpc")


def other_addresses(cluster: Resolver) -> list[str]:
    """Returns the addresses of all processes but this one."""
    jobs = cluster.cluster_spec().as_dict()
    own_address = jobs[cluster.task_type][cluster.task_id]
    return [address for addresses in jobs.values() for address in addresses
            if address != own_address]


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
    index = int(task.index) if str(task.index).isdecimal() else -1
    if not 0 <= index < len(jobs.get(task.type, ())):
        return f"the cluster has no task.type {shown(task.type)} with task.index {task.index}"
    return ""
