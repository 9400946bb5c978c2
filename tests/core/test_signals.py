"""SIGTERM and Ctrl-C in real processes, also in those that inherited that SIGINT is ignored."""

import signal
import subprocess
import sys
import time

import pytest

IGNORING_SIGINT = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
LONG_CALL = "hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)"


def started(body, *, ignoring=False, interrupt_seconds=20.0):
    """A process that runs `body` inside of `command_line.run` and has said "ready"."""
    program = "\n".join([
        "import ctypes, hashlib, signal, sys, threading, time",
        "from electra_tf.core import command_line, signals",
        "def ready(): print('ready', flush=True)",
        f"signals.INTERRUPT_SECONDS = {interrupt_seconds}", "def main():",
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


CONVERTED = """
try:
    ready()
    time.sleep(20)
except signals.Interrupted as error:
    raise {}('Exception encountered when calling layer') from error"""


@pytest.mark.parametrize(("number", "status", "ignoring"), [
    (signal.SIGINT, 130, False), (signal.SIGINT, 130, True), (signal.SIGTERM, 143, False)])
@pytest.mark.parametrize(("body", "line"), [
    ("ready()\ntime.sleep(20)", "interrupted."),
    (CONVERTED.format("RuntimeError"), "interrupted."),
    (CONVERTED.format("SystemError"), "interrupted."),
    ("""
with signals.StopRequest() as stop:
    ready()
    while stop.number is None:
        time.sleep(0.01)
    raise signals.Interrupted(stop.number, 'stopped at step 3.')""", "stopped at step 3.")],
    ids=["interrupted", "in TensorFlow", "in a library in C", "asked to stop"])
def test_a_signal_ends_a_command_in_one_line(body, line, number, status, ignoring):
    process = started(body, ignoring=ignoring)
    process.send_signal(number)
    assert ended(process) == (status, f"{line}\n")


@pytest.mark.parametrize(("body", "interrupt_seconds", "output"), [
    (f"ready()\n{LONG_CALL}", 1.0, "interrupted.\n"),
    ("try:\n    ready()\n    time.sleep(20)\nfinally:\n    time.sleep(2)\n    print('clean')", 1.0,
     "clean\ninterrupted.\n"),
    ("""
with signals.StopRequest(grace_seconds=0.6, late='not stopped within 0.6 s.'):
    ready()
    time.sleep(20)""", 20.0, "not stopped within 0.6 s.\n"),
    ("""
with signals.default_signal_handlers():
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    libc.signal(15, 1)  # SIG_IGN, as a library below Python might.
ready()
time.sleep(20)""", 20.0, "interrupted.\n"),
    ("""
with signals.StopRequest():
    assert threading.active_count() == 3
with signals.default_signal_handlers():
    pass
assert threading.active_count() == 2
ready()
time.sleep(20)""", 20.0, "interrupted.\n")],
    ids=["inside of a library", "cleaning up", "too late", "ignored by a library", "as before"])
def test_sigterm_ends_a_command_in_time(body, interrupt_seconds, output):
    process = started(body, interrupt_seconds=interrupt_seconds)
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (143, output)
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize("body", [
    "try:\n    ready()\n    time.sleep(20)\nfinally:\n    time.sleep(20)",
    f"with signals.StopRequest():\n    ready()\n    {LONG_CALL}"], ids=["cleaning up", "long call"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_ends_at_once(body, number, status):
    process = started(body)
    process.send_signal(number)
    time.sleep(0.8)
    assert process.poll() is None
    process.send_signal(number)
    assert ended(process) == (status, "ended at once.\n")


@pytest.mark.parametrize(("body", "pause", "end"), [
    ("""
with signals.StopRequest() as stop:
    ready()
    time.sleep(1)
    raise signals.Interrupted(stop.number, 'stopped in order.')""", 0.05,
     (143, "stopped in order.\n")),
    ("""
heard = []
signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
ready()
while len(heard) < 2:
    time.sleep(0.01)""", 0.8, (0, ""))], ids=["sent twice by a launcher", "handled by other code"])
def test_two_signals_that_do_not_end_a_command_at_once(body, pause, end):
    process = started(body)
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
        time.sleep(pause)
    assert ended(process) == end


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_command_while_no_python_runs(number):
    process = started("""
with signals.default_signal_handlers():
    ready()
    ctypes.PyDLL(None).poll(None, 0, 20_000)  # It doesn't let go of the interpreter.""")
    time.sleep(0.2)
    process.send_signal(number)
    assert ended(process) == (-number, "")
