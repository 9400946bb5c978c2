"""The command refuses wrong flags, and finishes running requests after a signal."""

import concurrent.futures
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from electra_tf.apps.serving import serve
from electra_tf.apps.serving.settings import ServerConfig
from electra_tf.core.setting_flags import define_flags
from tests.support import command_flags, running
from tests.support.refusals import refused


def test_wrong_directories_and_taken_ports_are_refused(tmp_path):
    with (command_flags.defined(lambda: define_flags(ServerConfig)),
          socket.create_server(("127.0.0.1", 0)) as taken):
        port = taken.getsockname()[1]
        for arguments, words in (
                (["--port=0"], "--model_dir must be"),
                (["--port=0", f"--model_dir={tmp_path}"], "contains no version"),
                (["--port=0", "--model_dir=gs://bucket/model"], "--model_dir"),
                ([f"--port={port}", f"--model_dir={tmp_path}"],
                 f"can't listen at --host=127.0.0.1 --port={port}: Address already in use")):
            with refused(words):
                command_flags.call(serve.main, *arguments)


@pytest.mark.slow
@pytest.mark.parametrize(("stop", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_lets_running_requests_finish(models, stop, status):
    process = subprocess.Popen(
        [sys.executable, "-m", "electra_tf.apps.serving.serve", "--port=0",
         f"--model_dir=other={models / 'numbers'}"], cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        client = running.Client(re.match(r"other, version 3: (http://\S+) ", line)[1], "other")
        # Custom ops: this process has imported nothing but the server.
        assert client.rows("tokens", ["ab", "x a"]) == [[0, 1], [2, 0]]
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            slow = thread.submit(client.rows, "slow", ["a"])  # The first one is slower still.
            time.sleep(0.15)
            process.send_signal(stop)
            assert not slow.done()
            assert slow.result()[0]["text"] == "a"
        assert process.wait(timeout=20) == status
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.communicate()
