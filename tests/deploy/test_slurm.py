"""The script for Slurm starts the program in a valid cluster."""

import os
import pathlib
import subprocess

import pytest

from electra_tf.training import workers
from tests.support import text_files

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


def test_slurm_tasks_receive_their_index_and_the_arguments(faked):
    done = subprocess.run(
        ["bash", DEPLOY / "slurm.sh", "--model_dir=a b", "--model_size=base"], cwd=faked,
        env=os.environ | {"PATH": f"{faked}:{os.environ['PATH']}", "SLURM_JOB_NODELIST": "x"},
        capture_output=True, text=True, check=True)
    clusters = [workers.parse(line) for line in done.stdout.splitlines()]
    assert [cluster.task_id for cluster in clusters] == [0, 1]
    assert all(cluster.cluster_spec().as_dict() == {"worker": ["host1:2222", "host2:2222"]}
               for cluster in clusters)
    assert done.stderr == "run_pretraining.py --model_dir=a b --model_size=base\n" * 2
