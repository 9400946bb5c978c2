"""The command: mistakes are one line, and a run is served until a signal."""

import dataclasses
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from electra_tf.apps.demo import demo
from electra_tf.checkpoints import formats
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from tests import command_flags, tiny_networks
from tests.apps.serving import running

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def signals():
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def saved(networks, directory, form):
    formats.write(networks, storage.path(directory), form)
    return str(directory)


def refused(*arguments):
    with command_flags.defined(demo.define), pytest.raises(UserError) as error:
        command_flags.call(demo.main, "--port=0", *arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_mistakes_are_one_line(tmp_path):
    assert "--model_dir is needed" in refused()
    assert "holds no checkpoint" in refused(f"--model_dir={tmp_path}")
    assert "an address of this machine" in refused(
        f"--model_dir={tmp_path}", "--host=203.0.113.1")


def test_a_discriminator_alone_is_refused(tmp_path):
    networks = tiny_networks.pretrained()
    alone = dataclasses.replace(networks, weights={
        name: value for name, value in networks.weights.items()
        if not name.startswith("generator")})
    path = saved(alone, tmp_path / "run", formats.Format.RUN)
    assert "hasn't a generator and a discriminator" in refused(f"--model_dir={path}")


@pytest.mark.slow
@pytest.mark.parametrize("form", list(formats.Format))
def test_networks_of_every_format_are_shown_until_a_signal(tmp_path, form):
    path = saved(tiny_networks.pretrained(), tmp_path / "model", form)
    process = subprocess.Popen(
        [sys.executable, "-m", "electra_tf.apps.demo.demo", "--port=0", f"--model_dir={path}"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+", process.stdout.readline())[0]
        status, answer = running.Client(address, "none").send(
            "POST", "/replace", json.dumps({"sentence": "word1 word2", "mask_rate": 0.5,
                                            "temperature": 1, "seed": 1}))
        assert status == 200 and len(json.loads(answer)["tokens"]) == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.communicate()
