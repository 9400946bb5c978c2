"""Real processes: answers, deaths, delays, what peers' workers import, and what ours answer."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from benchmarks.harness.turns import BenchmarkCase, System, Turns
from benchmarks.harness.worker import Worker, WorkerFailed, reason_of_death
from benchmarks.pretraining import cases
from benchmarks.pretraining.__main__ import SYSTEMS
from benchmarks.serving import models
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import sources, tiny_networks


@pytest.fixture
def start(request):
    """Starts Python with arguments as a worker that is closed at the end of the test."""
    def start(*arguments, timeout=30, **environment):
        worker = Worker([sys.executable, *arguments], timeout=timeout,
                        environment=os.environ | environment)
        request.addfinalizer(worker.close)
        return worker

    return start


ECHO = """
import os, sys
for line in sys.stdin:
    print("a library says hello")
    print('{"pid": %d, "got": %s}' % (os.getpid(), line.strip()), flush=True)
"""


def state_of(pid):
    """The letter of /proc/PID/stat: T for stopped."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_a_worker_answers_and_is_stopped_between_its_turns(start):
    worker = start("-c", ECHO)
    pid = worker.ask({"steps": 1})["pid"]
    deadline = time.monotonic() + 10
    while state_of(pid) != "T" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert state_of(pid) == "T"
    assert worker.ask({"steps": 2}) == {"pid": pid, "got": {"steps": 2}}
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkerFailed, match="killed by SIGKILL"):
        worker.ask({})
    worker.close()
    assert not pathlib.Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(("program", "timeout", "reason"), [
    ("input(); raise ValueError('no such shape')", 30, "^ValueError: no such shape$"),
    ("import os; input(); os.kill(os.getpid(), 9)", 30, "^killed by SIGKILL"),
    ("import time; time.sleep(60)", 0.2, "no answer within 0.2 s"),
])
def test_a_death_tells_its_reason(start, program, timeout, reason):
    with pytest.raises(WorkerFailed, match=reason):
        start("-c", program, timeout=timeout).ask({})


@pytest.mark.parametrize(("errors", "reason"), [
    ("W0000 a warning\n\n", "W0000 a warning"),
    ("", "ended with status 1"),
    ("Traceback ...\na.b.InvalidArgumentError: in layer x\ncannot add\nArguments:\n  * y\n",
     "InvalidArgumentError: in layer x cannot add"),
    ("KeyError: 1\nDuring handling\nRuntimeError: late\n", "RuntimeError: late"),
])
def test_the_reason_is_the_last_error_with_the_line_after_it(errors, reason):
    assert reason_of_death(1, errors) == reason


def test_workers_of_the_peers_environment_import_nothing_that_it_lacks():
    workers = [name for name in sources.modules() if name.startswith("benchmarks.")
               and name.endswith((".hugging_face", ".matmuls"))]
    # matmuls has TensorFlow inside a function.
    _, libraries = sources.closure(*workers, inside_functions=lambda name: False)
    assert len(workers) == 6 and libraries == {"numpy", "torch", "transformers", "tokenizers"}


def replies(start, module, *requests):
    """Starts a worker's module and returns its replies to requests."""
    worker = start("-m", "benchmarks.harness.worker", f"benchmarks.{module}", timeout=300,
                   OMP_NUM_THREADS="1")
    return [worker.ask(request) for request in requests]


@pytest.mark.slow
def test_our_worker_trains_a_toy(start):
    ours = next(system for system in SYSTEMS if system.name == "ours-float32")
    hello, first, later = replies(start, "pretraining.ours", {
        "workload": dataclasses.asdict(cases.workload_of("toy")), **ours.settings},
        {"steps": 1}, {"steps": 3})
    assert hello["label"].startswith("float32, XLA o")
    assert first["loss"] == pytest.approx(41.57, abs=1.0)  # ln 1000 + 50 ln 2
    assert later["loss"] < first["loss"]
    assert first["seconds"] > later["seconds"] > 0 and later["peak_bytes"] > 100e6


@pytest.mark.slow
def test_our_worker_fine_tunes_and_predicts(start, tmp_path):
    pretrained.write(tiny_networks.pretrained(), tmp_path / "encoder", Format.RUN)
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text("sentence\tlabel\na\t0\nb\t1\nc\t0\nd\t1\n")
    hello, *turns = replies(start, "finetuning.ours", {
        "task": "sst2", "encoder": str(tmp_path / "encoder"), "train": str(tmp_path / "train.tsv"),
        "dev": str(tmp_path / "dev.tsv"), "max_seq_length": 16, "examples": 3, "batch": 2,
        "precision": "float32"}, {"what": "train"}, {"what": "infer"})
    assert hello["label"] == "float32" and all(turn["rows"] == 3 for turn in turns)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings", "tokens"), [
    ("ours", {"packing": "full"}, 120), ("model_garden", {}, None)])
def test_a_worker_makes_records(start, tmp_path, name, settings, tokens):
    Vocabulary((*SPECIAL_TOKENS, "some", "words")).save(tmp_path / "vocab.txt")
    (tmp_path / "text.txt").write_text("some words\nwords\n\n" * 40)
    _, reply = replies(start, f"data_prep.{name}", {
        "vocab_file": str(tmp_path / "vocab.txt"), "max_seq_length": 16, **settings},
        {"text": str(tmp_path / "text.txt")})
    assert reply["bytes"] > 1000 and reply.get("text_tokens") == tokens


@pytest.mark.slow
def test_our_worker_serves_what_the_export_writes(start, tmp_path):
    texts = {"4": ["a film"] * 32, "sst2": ["a good film", "films films", "dull"] * 11}
    models.write(tmp_path, Vocabulary((*SPECIAL_TOKENS, "a", "film", "##s", "good", "dull")),
                 size="tiny")
    _, answers, *turns = replies(
        start, "serving.ours", {"directory": str(tmp_path), "texts": texts, "precision": "float32"},
        {"case": "sst2", "batch": 0}, {"case": "4", "batch": 1}, {"case": "4", "batch": 32})
    assert [len(turn["calls"]) for turn in turns] == [32, 1]
    # One for each of the three sentences, but for the rounding that another batch brings.
    assert len({round(probability, 5) for probability in answers["probabilities"]}) == 3
    assert (tmp_path / "hugging_face" / "config.json").exists()


@pytest.mark.parametrize("alone", [False, True])
def test_an_interrupted_benchmark_ends_a_worker_that_starts(start, alone):
    workers = []

    def launch(_):
        workers.append(start("-c", "import time; time.sleep(60)"))
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        return workers[-1]

    turns = Turns(case=BenchmarkCase(name="toy", fields={}, turns={}, rounds=1), launch=launch)
    # A process that a shell started in the background ignores SIGINT.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            (turns.measure_alone if alone else turns.measure)([
                System(name="slow", title="slow", module="none")])
    finally:
        signal.signal(signal.SIGINT, handler)
    assert workers[0]._process.returncode == -signal.SIGKILL


BENCHMARK = """
from benchmarks.harness import command
from benchmarks.harness.turns import BenchmarkCase, System

SYSTEMS = [System(name=name, title=name, module="sleeping_system") for name in ("idle", "busy")]

def main():
    command.Bench(SYSTEMS).measure(
        BenchmarkCase(name="toy", fields={}, rounds=1, turns={"turn": {}}))

command.run(main, "Sleeps.", [], SYSTEMS)
"""
# The first worker waits, stopped, while the second one is busy for minutes.
SLEEPING_SYSTEM = """
import os, pathlib, time
from benchmarks.harness.worker import Ready

def prepare():
    number = len(list(pathlib.Path(os.environ["PIDS"]).iterdir()))
    pathlib.Path(os.environ["PIDS"], str(os.getpid())).touch()
    if number:
        time.sleep(600)
    return Ready(turn=dict)
"""


@pytest.mark.parametrize(("number", "status"), [
    (signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_benchmark_that_a_signal_ends_leaves_no_workers(tmp_path, number, status):
    pids = tmp_path / "pids"
    pids.mkdir()
    (tmp_path / "sleeping_system.py").write_text(SLEEPING_SYSTEM)
    root = pathlib.Path(__file__).parents[2]
    benchmark = subprocess.Popen(
        [sys.executable, "-c", BENCHMARK, f"--output_dir={tmp_path}"], cwd=root,
        env=os.environ | {"PIDS": str(pids), "PYTHONPATH": f"{root}:{tmp_path}"})
    wait_until(lambda: len(list(pids.iterdir())) == 2)
    workers = [int(path.name) for path in pids.iterdir()]
    benchmark.send_signal(number)
    assert benchmark.wait(30) == status
    wait_until(lambda: not any(map(is_running, workers)))


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(pid):
    try:
        return state_of(pid) != "Z"  # A container may have no process that reaps orphans.
    except (FileNotFoundError, ProcessLookupError):
        return False
