"""Replicas or workers that share every batch train what one device trains."""

import signal
from pathlib import Path

import numpy as np
import pytest

from electra_tf.reporting.metrics_log import read_metrics
from tests.support import named_arrays, processes

STEPS = 60
# Nothing is sampled: rounding would choose another token now and then, and the curves would part.
FLAGS = ("--set=objective.name=mlm", "--train_batch_size=24", f"--num_train_steps={STEPS}",
         "--save_checkpoints_steps=15", "--log_every_steps=1", "--sample_every_steps=0",
         "--eval_steps=1")


@pytest.fixture(scope="module")
def alone(records, tmp_path_factory):
    return processes.train(records, tmp_path_factory.mktemp("alone") / "model", *FLAGS)


def losses(model_dir: Path) -> list[float]:
    return [record["loss"] for record in read_metrics(model_dir / "metrics.jsonl")
            if record["kind"] == "train"]


def assert_equal(model_dir: Path, expected: Path) -> None:
    """The same curve, and weights as close as sums in another order leave them after 60 steps."""
    np.testing.assert_allclose(losses(model_dir), losses(expected), rtol=1e-4)
    named_arrays.assert_close(
        processes.weights(model_dir), processes.weights(expected), atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 8])
def test_replicas_train_what_one_device_trains(records, alone, tmp_path, count):
    assert_equal(
        processes.train(records, tmp_path / "run", *FLAGS, f"--num_replicas={count}"), alone)


@pytest.mark.slow
def test_a_run_goes_on_with_another_number_of_replicas(records, alone, tmp_path):
    stopped = 0
    for count in (4, 2):
        status, line = processes.interrupted(
            records, tmp_path / "run", signal.SIGTERM, 0.0, *FLAGS, f"--num_replicas={count}")
        assert status == 143, line
        before, stopped = stopped, processes.step_of(tmp_path / "run")
        assert before < stopped < STEPS
    assert_equal(processes.train(records, tmp_path / "run", *FLAGS, "--num_replicas=3"), alone)


@pytest.mark.slow
def test_modernberts_layers_go_on_with_another_number_of_replicas(records, tmp_path):
    flags = (*FLAGS, "--set=model.architecture=modernbert", "--set=model.attention_window=4")
    status, line = processes.interrupted(
        records, tmp_path / "run", signal.SIGTERM, 0.0, *flags, "--num_replicas=2")
    assert status == 143, line
    assert 0 < processes.step_of(tmp_path / "run") < STEPS
    assert_equal(processes.train(records, tmp_path / "run", *flags, "--num_replicas=3"),
                 processes.train(records, tmp_path / "alone", *flags))


SHORT = ("--train_batch_size=12", "--num_train_steps=10", "--save_checkpoints_steps=5",
         "--log_every_steps=5", "--sample_every_steps=0", "--eval_steps=1")


@pytest.mark.slow
def test_workers_train_what_one_process_trains(records, tmp_path):
    count = 3
    expected = processes.train(records, tmp_path / "alone", *SHORT)
    together = tmp_path / "together"
    cluster = [processes.free_address() for _ in range(count)]
    workers = [processes.start_worker(records, together, cluster, index, *SHORT)
               for index in range(count)]
    outputs = ["".join(worker.communicate(timeout=300)) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * count, "\n".join(outputs)
    assert "step 10/10" in outputs[0]
    assert not any("step" in output for output in outputs[1:])  # Only the chief reports.
    named_arrays.assert_close(processes.weights(together), processes.weights(expected), atol=1e-4)


@pytest.mark.slow
def test_workers_begin_with_the_word_vectors_that_the_chief_counted(records, tmp_path):
    flags = (*SHORT, "--set=objective.name=mlm", "--set=optimizer.learning_rate=1e-20",
             "--set=initialization.word_vectors=cooccurrence")
    expected = processes.train(records, tmp_path / "alone", *flags)
    cluster = [processes.free_address() for _ in range(2)]
    workers = [processes.start_worker(records, tmp_path / f"{index}", cluster, index, *flags)
               for index in range(2)]
    outputs = ["".join(worker.communicate(timeout=300)) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], "\n".join(outputs)
    assert not (tmp_path / "1").exists()
    # With tiny updates, the losses depend on every worker's initial weights alone.
    np.testing.assert_allclose(losses(tmp_path / "0"), losses(expected), rtol=1e-6)


@pytest.mark.slow
def test_a_worker_that_lacks_the_checkpoint_goes_on_with_the_chiefs(records, alone, tmp_path):
    for end in (signal.SIGTERM, None):
        cluster = [processes.free_address() for _ in range(2)]
        workers = [processes.start_worker(records, tmp_path / f"{index}", cluster, index, *FLAGS)
                   for index in range(2)]
        if end:
            processes.wait_for_checkpoint(tmp_path / "0", 0, workers)
            workers[0].send_signal(end)
        outputs = ["".join(worker.communicate(timeout=300)) for worker in workers]
        assert [worker.returncode for worker in workers] == [143 if end else 0] * 2, outputs
        assert not end or 0 < processes.step_of(tmp_path / "0") < STEPS
    assert not (tmp_path / "1").exists()
    assert_equal(tmp_path / "0", alone)


@pytest.mark.slow
def test_a_worker_with_another_setting_than_the_chief_is_told_which(records, tmp_path):
    cluster = [processes.free_address() for _ in range(2)]
    workers = [processes.start_worker(records, tmp_path / "run", cluster, index, *SHORT,
                                      f"--set=optimizer.weight_decay=0.{index}")
               for index in range(2)]
    errors = [worker.communicate(timeout=300)[1].splitlines()[-1] for worker in workers]
    assert [worker.returncode for worker in workers] == [1, 1]
    assert errors[0].startswith("error: another worker ended")
    assert errors[1] == (
        "error: this worker has other settings than the chief: optimizer.weight_decay is 0.1, and "
        "0.0 in the chief's run. Give all workers the same command and --model_dir.")
