"""SIGTERM and Ctrl-C in real processes, also in those that inherited that SIGINT is ignored."""

import signal
import subprocess
import sys
import time

import pytest

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
IGNORING_SIGINT = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]


def started(body, *, ignoring=False, deaf_seconds=20.0):
    """A process that runs `body` inside of `command_line.run` and has said "ready"."""
    program = "\n".join([
        "import sys, time", "from electra_tf.platform import command_line, signals",
        "def ready(): print('ready', flush=True)",
        f"signals.DEAF_SECONDS = {deaf_seconds}", "def main():",
        *(f"    {line}" for line in body.strip().splitlines()),
        "command_line.run(main, summary='', groups={})"])
    process = subprocess.Popen(
        [*(IGNORING_SIGINT if ignoring else []), sys.executable, "-c", program],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


def ended(process):
    """Exit status and what was written since."""
    out, errors = process.communicate(timeout=20)
    return process.returncode, out + errors


@pytest.mark.parametrize("ignoring", [False, True])
@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_a_signal_ends_a_command_in_one_line(number, status, ignoring):
    process = started("ready()\ntime.sleep(20)", ignoring=ignoring)
    process.send_signal(number)
    assert ended(process) == (status, "interrupted.\n")


@pytest.mark.parametrize("ignoring", [False, True])
@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_work_that_looks_for_a_signal_ends_where_it_is_good_to(number, status, ignoring):
    process = started("""
with signals.StopRequest() as stop:
    ready()
    while stop.number is None:
        time.sleep(0.01)
    raise signals.Interrupted(stop.number, 'stopped at step 3.')""", ignoring=ignoring)
    process.send_signal(number)
    assert ended(process) == (status, "stopped at step 3.\n")


def test_a_command_inside_of_a_library_is_ended():
    process = started("import hashlib\nready()\nhashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)",
                      deaf_seconds=1.0)
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (143, "interrupted.\n")


def test_cleaning_up_may_take_its_time():
    process = started("try:\n    ready()\n    time.sleep(20)\nfinally:\n    time.sleep(2)\n"
                      "    print('clean')", deaf_seconds=0.5)
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (143, "clean\ninterrupted.\n")


CLEANS_UP = """
try:
    ready()
    time.sleep(20)
finally:
    time.sleep(20)"""
IN_ONE_LONG_CALL = """
import hashlib
with signals.StopRequest():
    ready()
    hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)"""


@pytest.mark.parametrize("body", [CLEANS_UP, IN_ONE_LONG_CALL])
@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_a_second_signal_ends_at_once(body, number, status):
    process = started(body)
    process.send_signal(number)
    time.sleep(0.8)
    assert process.poll() is None
    process.send_signal(number)
    assert ended(process) == (status, "ended at once.\n")


def test_a_signal_that_a_launcher_sends_twice_is_one():
    process = started("""
with signals.StopRequest() as stop:
    ready()
    time.sleep(1)
    raise signals.Interrupted(stop.number, 'stopped in order.')""")
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
    assert ended(process) == (143, "stopped in order.\n")


def test_work_that_does_not_heed_a_signal_in_time_is_ended():
    process = started("""
with signals.StopRequest(grace_seconds=0.6, late='not stopped within 0.6 s.'):
    ready()
    time.sleep(20)""")
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (143, "not stopped within 0.6 s.\n")
    assert 0.5 < time.monotonic() - begin < 5


def test_without_a_signal_everything_is_as_before():
    process = started("""
import signal, threading
with signals.StopRequest():
    assert threading.active_count() == 3
with signals.left_to_the_system():
    pass
assert threading.active_count() == 2
ready()
time.sleep(20)""")
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (143, "interrupted.\n")


def test_a_signal_that_other_code_handles_is_not_counted():
    process = started("""
import signal
heard = []
signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
ready()
while len(heard) < 2:
    time.sleep(0.01)
print(len(heard))""")
    process.send_signal(signal.SIGTERM)
    time.sleep(0.8)
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (0, "2\n")


def test_a_library_cannot_keep_a_signal_for_itself():
    process = started("""
import ctypes
with signals.left_to_the_system():
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    libc.signal(15, 1)  # SIG_IGN, as a library below Python might.
ready()
time.sleep(20)""")
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (143, "interrupted.\n")


WHILE_NO_PYTHON_RUNS = """
import ctypes
with signals.left_to_the_system():
    ready()
    ctypes.PyDLL(None).poll(None, 0, 20_000)  # It doesn't let go of the interpreter."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_command_while_no_python_runs(number):
    process = started(WHILE_NO_PYTHON_RUNS)
    time.sleep(0.2)
    process.send_signal(number)
    assert ended(process) == (-number, "")
