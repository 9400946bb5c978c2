"""Workers that share every batch train what one process trains."""

import pytest

from tests.support import named_arrays, processes

FLAGS = ("--train_batch_size=12", "--num_train_steps=10", "--save_checkpoints_steps=5",
         "--log_every_steps=5", "--sample_every_steps=0", "--eval_steps=1")


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_workers_train_what_one_process_trains(records, tmp_path, count):
    alone = processes.train(records, tmp_path / "alone", *FLAGS)
    together = tmp_path / "together"
    cluster = [processes.free_address() for _ in range(count)]
    workers = [processes.start_worker(records, together, cluster, index, *FLAGS)
               for index in range(count)]
    outputs = ["".join(worker.communicate(timeout=300)) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * count, "\n".join(outputs)
    assert "step 10/10" in outputs[0]
    for output in outputs[1:]:
        assert "step" not in output  # Only the chief reports.
    named_arrays.assert_close(processes.weights(together), processes.weights(alone), atol=1e-4)
