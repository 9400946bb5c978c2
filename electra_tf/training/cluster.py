"""The variable TF_CONFIG, checked before TensorFlow waits for a cluster that can't come to be."""

import dataclasses
import os
import socket
import sys

from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError, shown

VARIABLE = "TF_CONFIG"
CONNECT_SECONDS = 2
_EXAMPLE = ('{"cluster": {"worker": ["host1:2222", "host2:2222"]}, '
            '"task": {"type": "worker", "index": 0}}')
_JOBS = ("chief", "worker")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Task:
    __pydantic_config__ = strict_json.OPEN
    type: str
    index: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cluster:
    """The processes that share every step, and which of them this is."""

    __pydantic_config__ = strict_json.OPEN
    cluster: dict[str, list[str]]
    task: _Task

    @property
    def others(self) -> list[str]:
        """Addresses of all processes but this one."""
        own = self.cluster[self.task.type][self.task.index]
        return [address for addresses in self.cluster.values() for address in addresses
                if address != own]


def parse(text: str) -> Cluster:
    """Returns what TF_CONFIG describes.

    Raises:
        UserError: it isn't set, no JSON, or no cluster that can train.
    """
    try:
        cluster = strict_json.loads(os.fsencode(text), Cluster)
    except strict_json.Unreadable as error:
        raise UserError(
            "Several workers need the environment variable TF_CONFIG in each of them, for example "
            f"{_EXAMPLE}: {error}. Received: {shown(text)}") from None
    problem = _problem(cluster)
    if problem:
        raise UserError(f"TF_CONFIG: {problem}. Received: {shown(text)}")
    return cluster


def _problem(config: Cluster) -> str:
    jobs, task = config.cluster, config.task
    unknown = [job for job in jobs if job not in _JOBS]
    if unknown:
        return (f"{shown(unknown[0])} takes no part in this training; only chief and worker do")
    if len(jobs.get("chief", ())) > 1:
        return "cluster.chief lists several; a cluster has one at most"
    if not any(jobs.values()):
        return "cluster lists nobody"
    addresses = [address for names in jobs.values() for address in names]
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            return f"{shown(address)} must be host:port"
        if addresses.count(address) > 1:
            return f"{address} stands there twice"
    if not 0 <= task.index < len(jobs.get(task.type, ())):
        return (f"task.type {shown(task.type)} with index {task.index} is none of the cluster's, "
                + ", ".join(f"{len(names)} {job}" for job, names in jobs.items()))
    return ""


def announce_waiting(cluster: Cluster) -> None:
    """Says on stderr whom TensorFlow will wait for: it lets no Python run meanwhile, up to an hour.

    Nothing is said if all others listen already.
    """
    absent = [address for address in cluster.others if not _listens(address)]
    if absent:
        print(f"note: waiting for {', '.join(absent)}: each has to run this command, with the same "
              "cluster and its own task in TF_CONFIG", file=sys.stderr, flush=True)


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except OSError:
        return False
    return True
