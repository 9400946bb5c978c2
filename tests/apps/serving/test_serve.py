"""The command: mistakes are one line, and a signal lets running requests finish."""

import concurrent.futures
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from electra_tf.apps.serving import serve, settings
from electra_tf.platform.errors import UserError
from electra_tf.platform.setting_text import define_flags
from tests import command_flags
from tests.apps.serving import running, string_models

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "numbers"
    string_models.save_numbers(path / "3")
    return path


def refused(*arguments):
    with (command_flags.defined(lambda: define_flags(settings.ServerConfig)),
          pytest.raises(UserError) as error):
        command_flags.call(serve.main, *arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture(autouse=True)
def signals():
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_mistakes_are_one_line(tmp_path):
    assert "--model_dir must be" in refused()
    assert "contains no version" in refused(f"--model_dir={tmp_path}")
    assert "--model_dir" in refused("--model_dir=gs://bucket/model")


def started(*arguments):
    """The process and a client for it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "electra_tf.apps.serving.serve", "--port=0", *arguments], cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    name, version, address = re.match(r"(\w+), version (\d+): (http://\S+) ", line).groups()
    return process, running.Client(address, name), version


@pytest.mark.slow
@pytest.mark.parametrize(("stop", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_lets_running_requests_finish(model_dir, stop, status):
    process, client, version = started(f"--model_dir=other={model_dir}")
    try:
        assert (client.path, version) == ("/v1/models/other", "3")
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
