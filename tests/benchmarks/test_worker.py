"""Real processes: answers, deaths, delays, and what peers' workers import."""

import ast
import os
import pathlib
import signal
import sys
import time

import pytest

from benchmarks.harness.worker import Worker, WorkerFailed, reason_of_death
from tests.layering import sources


@pytest.fixture
def start():
    workers = []

    def started(program, timeout=30):
        workers.append(Worker([sys.executable, "-c", program], timeout=timeout,
                              environment=dict(os.environ)))
        return workers[-1]

    yield started
    for worker in workers:
        worker.close()


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
    worker = start(ECHO)
    pid = worker.ask({"steps": 1})["pid"]
    deadline = time.monotonic() + 10
    while state_of(pid) != "T" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert state_of(pid) == "T"
    assert worker.ask({"steps": 2}) == {"pid": pid, "got": {"steps": 2}}
    worker.close()
    assert not pathlib.Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(("program", "timeout", "reason"), [
    ("input(); raise ValueError('no such shape')", 30, "^ValueError: no such shape$"),
    ("import os; input(); os.kill(os.getpid(), 9)", 30, "^killed by SIGKILL"),
    ("import time; time.sleep(60)", 0.2, "no answer within 0.2 s"),
])
def test_a_death_tells_its_reason(start, program, timeout, reason):
    with pytest.raises(WorkerFailed, match=reason):
        start(program, timeout).ask({})


def test_a_worker_that_died_between_turns_is_found(start):
    worker = start(ECHO)
    os.kill(worker.ask({})["pid"], signal.SIGKILL)
    with pytest.raises(WorkerFailed, match="killed by SIGKILL"):
        worker.ask({})


@pytest.mark.parametrize(("errors", "reason"), [
    ("W0000 a warning\n\n", "W0000 a warning"),
    ("", "ended with status 1"),
    ("Traceback ...\na.b.InvalidArgumentError: in layer x\ncannot add\nArguments:\n  * y\n",
     "InvalidArgumentError: in layer x cannot add"),
    ("KeyError: 1\nDuring handling\nRuntimeError: late\n", "RuntimeError: late"),
])
def test_the_reason_is_the_last_error_with_the_line_after_it(errors, reason):
    assert reason_of_death(1, errors) == reason


PEERS = ("pretraining.matmuls", "pretraining.hugging_face", "data_prep.hugging_face",
         "finetuning.hugging_face", "serving.hugging_face", "time_to_quality.hugging_face")


def modules_of(name):
    """What a module imports at its top; matmuls has TensorFlow inside a function."""
    for node in sources.tree(sources.modules()[name]).body:
        if isinstance(node, ast.ImportFrom):
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from (inside & sources.modules().keys()) or [node.module]
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_workers_of_the_peers_environment_import_nothing_that_it_lacks():
    seen, waiting = set(), [f"benchmarks.{name}" for name in PEERS]
    while waiting:
        new = set(modules_of(waiting.pop())) - seen
        seen |= new
        waiting += new & sources.modules().keys()
    libraries = {name.split(".")[0] for name in seen - sources.modules().keys()}
    assert libraries - sys.stdlib_module_names == {"numpy", "torch", "transformers", "tokenizers"}
    assert {"benchmarks.harness.worker", "benchmarks.pretraining.workload"} <= seen
