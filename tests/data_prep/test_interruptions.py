"""Real processes that are killed or interrupted: the same command ends with the same bytes."""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

from tests.data_prep.reading import contents
from tests.support.python_process import own_lines

ROOT = pathlib.Path(__file__).parents[2]
BEAM = "--runner=DirectRunner"
pytestmark = pytest.mark.slow


@pytest.fixture
def command(corpus, vocab_file, tmp_path):
    """A build of shards of 1,000 bytes in the directory "killed"."""
    return [sys.executable, "-m", "data_prep.build_pretraining_data", f"--input={corpus}/*.txt",
            f"--vocab_file={vocab_file}", f"--output_dir={tmp_path}/killed", "--max_seq_length=32",
            "--shard_text_bytes=1000", "--held_out_fraction=0.1"]


def start(command):
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, start_new_session=True)


def wait_for(condition):
    deadline = time.monotonic() + 180
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.002)
    assert condition()


def receipts(directory):
    return list(directory.glob(".finished-*"))


def has_processes(session):
    """Tells whether a process of a session lives."""
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                return True
    return False


def end_of(process, status=0):
    """Waits for the end; returns the lines on stderr other than progress."""
    out, errors = process.communicate(timeout=120)
    assert process.returncode == status, errors
    assert status == 0 or out == ""
    return [line for line in own_lines(errors) if "% read" not in line]


@pytest.mark.parametrize("flag", ["--num_workers=2", BEAM])
def test_a_build_killed_five_times_ends_with_the_same_bytes(build, command, tmp_path, flag):
    """SIGKILL to all of its processes, at moments that are drawn: some before the first shard."""
    build("whole", shard_text_bytes=1000)
    draw, killed = random.Random(0), tmp_path / "killed"
    for _ in range(5):
        more, before = draw.randrange(12), len(receipts(killed))
        process = start([*command, flag])
        wait_for(lambda least=before + more: len(receipts(killed)) >= least)
        time.sleep(draw.random() * (0.02 if more else 2))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert not (killed / "manifest.json").exists()
    assert end_of(start([*command, flag])) == []
    assert contents(killed) == contents(tmp_path / "whole")


@pytest.mark.parametrize(("flag", "send", "number"), [
    ("--num_workers=2", os.kill, signal.SIGTERM), ("--num_workers=2", os.killpg, signal.SIGINT),
    (BEAM, os.killpg, signal.SIGTERM), (BEAM, os.killpg, signal.SIGINT)])
def test_a_signal_ends_a_build_in_one_line_and_keeps_finished_shards(
        build, command, tmp_path, flag, send, number):
    """To the process alone, as `kill` sends it, or to its workers too, as a terminal does."""
    stopped = tmp_path / "killed"
    process = start([*command, flag])
    wait_for(lambda: len(receipts(stopped)) >= 2)
    send(process.pid, number)
    (line,) = end_of(process, 128 + number)
    assert line.startswith("interrupted; the finished shards are kept")
    assert line.endswith(flag)
    wait_for(lambda: not has_processes(process.pid))
    finished = {path: path.stat().st_mtime_ns for path in stopped.glob("*.tfrecord")
                if (stopped / f".finished-{path.stem}.json").exists()}
    assert len(finished) >= 2
    assert not [*stopped.glob(".unfinished-*"), *stopped.glob(".lock"), *stopped.glob(".beam")]
    build("killed", shard_text_bytes=1000)
    assert finished == {path: path.stat().st_mtime_ns for path in finished}


def test_the_command_printed_by_a_build_that_overwrites_keeps_finished_shards(
        build, command, tmp_path):
    build("whole", shard_text_bytes=1000)
    build("killed", shard_text_bytes=1000, max_seq_length=16)  # Another build, to be replaced.
    stopped = tmp_path / "killed"
    process = start([*command, "--overwrite", "--num_workers=2"])
    wait_for(lambda: not (stopped / "manifest.json").exists() and len(receipts(stopped)) >= 2)
    process.send_signal(signal.SIGTERM)
    (line,) = end_of(process, 143)
    finished = {path: path.stat().st_mtime_ns for path in stopped.glob("*.tfrecord")
                if (stopped / f".finished-{path.stem}.json").exists()}
    typed = line.partition("builds the others: ")[2]
    subprocess.run(["bash", "-c", typed], cwd=ROOT, check=True, capture_output=True)
    assert len(finished) >= 2
    assert finished == {path: path.stat().st_mtime_ns for path in finished}
    assert contents(stopped) == contents(tmp_path / "whole")


def test_a_portable_runner_makes_the_same_records(build, command, tmp_path):
    """Beam's own job server, over gRPC as those of Flink, Spark and Prism."""
    build("whole", shard_text_bytes=1000)
    port_file = tmp_path / "port"
    server = subprocess.Popen(
        [sys.executable, "-m", "apache_beam.runners.portability.local_job_service_main",
         f"--port_file={port_file}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: port_file.exists() and port_file.read_text())
        assert end_of(start([
            *command, "--runner=PortableRunner", "--beam_options=--job_endpoint=localhost:"
            f"{port_file.read_text()} --environment_type=LOOPBACK"])) == []
    finally:
        server.kill()
        server.wait()
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
