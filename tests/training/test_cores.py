"""A CPU's cores get parts of the batch; nothing else does."""

import pytest

from electra_tf.config.runtime import RuntimeConfig, Strategy, Xla
from electra_tf.training import cores


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    monkeypatch.setattr(cores, "usable_cores", lambda: 4)


@pytest.mark.parametrize(("rows", "limit", "expected"), [
    (32, 0, 4), (6, 0, 3), (1, 0, 1), (32, 3, 2)])
def test_parts_divide_the_batch_and_the_cores(rows, limit, expected):
    assert cores.prepare_cpu(RuntimeConfig(cpu_parts=limit), rows) == expected


@pytest.mark.parametrize("config", [
    RuntimeConfig(xla=Xla.ON), RuntimeConfig(distribution_strategy=Strategy.MIRRORED),
    RuntimeConfig(tpu="somewhere"), RuntimeConfig(deterministic=True)],
    ids=["xla", "replicas", "tpu", "deterministic"])
def test_whatever_else_computes_takes_the_batch_whole(config):
    assert cores.prepare_cpu(config, 32) == 1


def test_every_part_gets_its_share_of_the_threads(monkeypatch):
    given = {}
    for kind in ("inter", "intra"):
        monkeypatch.setattr(
            cores.tf.config.threading, f"set_{kind}_op_parallelism_threads",
            lambda count, kind=kind: given.update({kind: count}))
    cores.prepare_cpu(RuntimeConfig(cpu_parts=2), 32)
    assert given == {"inter": 4, "intra": 2}
