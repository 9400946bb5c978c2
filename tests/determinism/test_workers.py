"""Workers that share every batch train what one process trains."""

import json
import os
import socket
import subprocess

import numpy as np
import pytest

from tests.determinism import processes

FLAGS = ("--train_batch_size=12", "--num_train_steps=10", "--save_checkpoints_steps=5",
         "--log_every_steps=5", "--sample_every_steps=0", "--eval_steps=1")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_workers_train_what_one_process_trains(records, tmp_path, count):
    alone, together = tmp_path / "alone", tmp_path / "together"
    single = processes.run(processes.command(records, alone, *FLAGS))
    assert single.returncode == 0, single.stderr
    cluster = {"worker": [f"127.0.0.1:{free_port()}" for _ in range(count)]}
    workers = [
        subprocess.Popen(
            processes.command(records, together, *FLAGS,
                              "--distribution_strategy=multi_worker_mirrored"),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=os.environ | {"TF_CONFIG": json.dumps(
                {"cluster": cluster, "task": {"type": "worker", "index": index}})})
        for index in range(count)]
    outputs = [worker.communicate(timeout=300)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * count, "\n".join(outputs)
    assert "step 10/10" in outputs[0]
    for output in outputs[1:]:
        assert "step" not in output  # Only the chief reports.
    expected = processes.state(alone)
    for name, value in processes.state(together).items():
        if name.startswith("model/"):
            np.testing.assert_allclose(value, expected[name], rtol=0, atol=1e-4, err_msg=name)
