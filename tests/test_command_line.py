"""How a command ends: a mistake and Ctrl-C are one line each."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("body", "status", "line"), [
    ("raise command_line.UserError('no file a.txt.')", 1, "error: no file a.txt."),
    ("os.kill(os.getpid(), signal.SIGINT)", 130, "interrupted."),
    ("pass", 0, "")])
def test_an_end_is_one_line(body, status, line):
    program = f"""
import os, signal, sys
from electra_tf import command_line
def main():
    {body}
command_line.run(main, summary="", groups={{}})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr.strip()) == (status, line)
