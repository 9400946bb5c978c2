"""Two real workers: a signal to one stops both at one step, and neither outlives the other."""

import contextlib
import signal
import socket
import time

import pytest

from tests.support import processes
from tests.support.processes import free_address, newest

pytestmark = pytest.mark.slow

FLAGS = ("--num_train_steps=100000", "--save_checkpoints_steps=20", "--log_every_steps=20",
         "--sample_every_steps=0")


@contextlib.contextmanager
def training(records, model_dir, *flags):
    """Two workers that have saved a checkpoint; none is left afterwards."""
    cluster, before = [free_address(), free_address()], newest(model_dir)
    workers = [processes.start_worker(records, model_dir, cluster, index, *FLAGS, *flags)
               for index in range(2)]
    try:
        processes.wait_for_checkpoint(model_dir, before, workers)
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def said(errors):
    """Lines on stderr, without the one that a worker that comes first says it waits by."""
    return [line for line in errors.splitlines() if not line.startswith("note: waiting for ")]


def test_a_signal_to_one_worker_stops_both_at_one_step(records, tmp_path):
    """To the worker that doesn't report, then, when both are started again, to the chief."""
    model_dir, step = tmp_path / "model", 0
    for receiver, number, status in (1, signal.SIGTERM, 143), (0, signal.SIGINT, 130):
        with training(records, model_dir) as workers:
            begin = time.monotonic()
            workers[receiver].send_signal(number)
            outputs = [worker.communicate(timeout=30) for worker in workers]
            assert time.monotonic() - begin < 30
        assert [worker.returncode for worker in workers] == [status, status]
        assert f"steps    {step:,} done" in outputs[0][0]
        step = newest(model_dir)
        (stopped,) = said(outputs[0][1])
        assert stopped.startswith(f"stopped by {number.name} at step {step:,} of 100,000; its "
                                  "checkpoint is saved. To go on from there: ")
        assert (outputs[1][0], said(outputs[1][1])) == ("", [])


@pytest.mark.parametrize(("number", "lost"), [
    (signal.SIGKILL, 1), (signal.SIGKILL, 0), (signal.SIGSTOP, 0)])
def test_a_worker_that_is_lost_is_told_of_in_one_line(records, tmp_path, number, lost):
    with training(records, tmp_path / "model") as workers:
        workers[lost].send_signal(number)
        _, errors = workers[1 - lost].communicate(timeout=60)
        assert workers[1 - lost].returncode == 1
    (line,) = said(errors)
    assert line.startswith("error: another worker ended or can't be reached (")
    assert "To continue from the newest checkpoint, run on every worker: " in line
    assert line.endswith("multi_worker_mirrored")


def test_a_worker_that_nobody_joins_is_ended_by_ctrl_c(records, tmp_path):
    """SIGTERM is TensorFlow's at that time, which only notes it and lets no Python run."""
    cluster = [free_address(), free_address()]
    worker = processes.start_worker(records, tmp_path / "model", cluster, 1, *FLAGS)
    try:
        while not listens(cluster[1]) and worker.poll() is None:
            time.sleep(0.1)
        time.sleep(2)
        worker.send_signal(signal.SIGINT)
        out, errors = worker.communicate(timeout=60)
        assert out == ""
        assert errors == (f"note: waiting for {cluster[0]}: each has to run this command, with the "
                          "same cluster and its own task in TF_CONFIG\n")
        assert worker.returncode == -signal.SIGINT  # As the system does it: 130 in a shell.
    finally:
        worker.kill()


def listens(address):
    host, port = address.split(":")
    with contextlib.suppress(OSError):
        socket.create_connection((host, int(port)), timeout=1).close()
        return True
    return False


def test_a_worker_that_waits_in_vain_ends_after_the_grace_period(records, tmp_path):
    with training(records, tmp_path / "model", "--grace_seconds=3") as workers:
        workers[1].send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        begin = time.monotonic()
        workers[0].send_signal(signal.SIGTERM)
        _, errors = workers[0].communicate(timeout=30)
        assert 2 < time.monotonic() - begin < 6
        assert workers[0].returncode == 143
    (line,) = said(errors)
    assert line.startswith("the workers did not agree on a last step within --grace_seconds=3, ")
