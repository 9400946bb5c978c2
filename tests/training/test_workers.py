"""What TF_CONFIG may say, and what is said of one that can't be a cluster."""

import json

import pytest

from electra_tf.core.errors import UserError
from electra_tf.training import workers

TWO = {"worker": ["one:2222", "two:2222"]}


def text(jobs: object = TWO, kind: object = "worker", index: object = 0) -> str:
    return json.dumps({"cluster": jobs, "task": {"type": kind, "index": index}})


@pytest.mark.parametrize(("jobs", "kind", "index", "others"), [
    (TWO, "worker", 1, ["one:2222"]),
    ({"chief": ["a:1"], "worker": ["b:1", "[::1]:9"]}, "worker", 1, ["a:1", "b:1"]),
    ({"chief": ["a:1"]}, "chief", 0, []), (TWO, "worker", "1", ["one:2222"]),
    ({"chief": ["a:1"], "evaluator": ["e:1"]}, "chief", 0, []),
    (TWO | {"evaluator": ["e:1", "f:1"]}, "worker", 0, ["two:2222"]),
])
def test_a_cluster_knows_its_task_and_the_others(jobs, kind, index, others):
    cluster = workers.parse(text(jobs, kind, index))
    assert workers.other_addresses(cluster) == others
    assert (cluster.task_type, cluster.task_id) == (kind, int(index))
    assert "evaluator" not in cluster.cluster_spec().jobs


@pytest.mark.parametrize(("value", "problem"), [
    (text({"chief": ["a:1", "b:1"], "worker": ["c:1"]}, "chief"), "the cluster has a job chief"),
    (text(TWO | {"ps": ["c:1"]}), r"parameter servers \(the job ps\) are not supported; leave"),
    (text({"master": ["c:1"]}, "master"), "the job master is named chief since TensorFlow 2"),
    (text(TWO | {"evaluator": ["c:1"]}, "evaluator"), "task.type evaluator does not train; run"),
    (text(TWO | {"helper": ["c:1"]}), "the cluster has a job chief of one process at most"),
    (text({"worker": ["one:70000"]}), "'one:70000' must be host:port"),
    (text({"chief": ["a:1"], "worker": ["a:1"]}), "a:1 is listed twice"),
    (text(index=2), "the cluster has no task.type 'worker' with task.index 2"),
])
def test_what_no_cluster_can_be_is_refused(value, problem):
    with pytest.raises(UserError, match=f"^TF_CONFIG: {problem}"):
        workers.parse(value)


@pytest.mark.parametrize("value", [
    "\udcff\udcfe",  # Bytes that are not UTF-8, as Python has them in the environment.
    "", "{}", text({"worker": "one:2222"}), '{"cluster": {}, "cluster": {}}'])
def test_what_is_no_description_is_answered_with_an_example(value):
    with pytest.raises(UserError, match="for example {\"cluster\""):
        workers.parse(value)


@pytest.mark.parametrize("value", [
    None, "", " ", "{}", '{"cluster": {}}', '{"cluster": null, "task": {}}',
    '{"task": {"type": "chief", "index": 0}}', '{"environment": "cloud", "model_dir": "runs"}'])
def test_a_variable_without_a_cluster_means_one_device(monkeypatch, value):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if value is not None:
        monkeypatch.setenv("TF_CONFIG", value)
    assert workers.cluster() is None
    monkeypatch.setenv("TF_CONFIG", '{"cluster": [], "task": {}}')  # No single device.
    with pytest.raises(UserError, match="TF_CONFIG"):
        workers.cluster()
