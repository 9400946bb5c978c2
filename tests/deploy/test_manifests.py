"""The files of docs/deploy start the program with its own flags in a valid cluster."""

import os
import pathlib
import subprocess

import pytest
import yaml
from absl import flags

from electra_tf.pretraining import command
from electra_tf.training import workers
from tests.support import command_flags, text_files

DEPLOY = pathlib.Path(__file__).parents[2] / "docs" / "deploy"
FAKES = {
    "scontrol": "echo host1; echo host2",
    "srun": 'shift; for index in 0 1; do SLURM_PROCID=$index "$@"; done',
    ".venv/bin/python": 'echo $TF_CONFIG; echo "$@" >&2',
}


@pytest.fixture
def faked(tmp_path):
    """A directory with stand-ins for Slurm and the program, which print their arguments."""
    for name, text in FAKES.items():
        text_files.write(tmp_path / name, f"#!/usr/bin/env bash\n{text}\n").chmod(0o755)
    return tmp_path


def containers(name: str) -> list[dict]:
    """The containers of all jobs in a manifest."""
    documents = list(yaml.safe_load_all((DEPLOY / name).read_text()))
    if name == "vertex.yaml":
        return [pool["containerSpec"] for pool in documents[0]["workerPoolSpecs"]]
    return [container for document in documents if document["kind"] == "Job"
            for container in document["spec"]["template"]["spec"]["containers"]]


@pytest.mark.parametrize("name", sorted(path.name for path in DEPLOY.glob("*.yaml")))
def test_flags_of_a_manifest_are_flags_of_the_program(name):
    with command_flags.defined(command.define):
        known = set(flags.FLAGS)
    jobs = containers(name)
    assert jobs
    for container in jobs:
        words = " ".join(container["args"]).split()
        assert "run_pretraining.py" in words
        names = {word[2:].partition("=")[0] for word in words[words.index("run_pretraining.py"):]
                 if word.startswith("--")}
        assert {"data_dir", "model_dir", "model_size"} <= names <= known


def test_slurm_tasks_receive_their_index_and_the_arguments(faked):
    done = subprocess.run(
        ["bash", DEPLOY / "slurm.sh", "--model_dir=a b", "--model_size=base"], cwd=faked,
        env=os.environ | {"PATH": f"{faked}:{os.environ['PATH']}", "SLURM_JOB_NODELIST": "x"},
        capture_output=True, text=True, check=True)
    clusters = [workers.parse(line) for line in done.stdout.splitlines()]
    assert [cluster.task.index for cluster in clusters] == [0, 1]
    assert all(cluster.cluster == {"worker": ["host1:2222", "host2:2222"]} for cluster in clusters)
    assert done.stderr == "run_pretraining.py --model_dir=a b --model_size=base\n" * 2


@pytest.mark.parametrize("index", [0, 3])
def test_a_pod_receives_the_addresses_of_all_pods(faked, index):
    container, = containers("kubernetes.yaml")
    program = container["args"][0].replace("exec python", "exec .venv/bin/python")
    done = subprocess.run(
        [*container["command"], program], cwd=faked, capture_output=True, text=True, check=True,
        env=os.environ | {"JOB_COMPLETION_INDEX": str(index)} | {
            pair["name"]: pair["value"] for pair in container["env"]})
    pod = workers.parse(done.stdout)
    assert pod.cluster == {"worker": [f"electra-{number}.electra:2222" for number in range(4)]}
    assert pod.task.index == index
