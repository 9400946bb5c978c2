"""What the command refuses, and which systems it picks."""

import pathlib
import subprocess
import sys

import pytest

from benchmarks.pretraining import systems
from benchmarks.pretraining.systems import Role
from electra_tf.platform.errors import UserError

ROOT = pathlib.Path(__file__).parents[2]


def names(*beginnings, peers=True):
    return [system.name for system in systems.chosen(beginnings, with_peers_environment=peers)
            if system.role is not Role.RATE]


def test_systems_are_picked_by_the_beginning_of_their_names():
    assert names("ours-b", "mg-float32") == [
        "ours-bfloat16", "ours-bfloat16-no-xla", "mg-float32", "mg-float32-xla"]
    assert len(names()) == 11
    with pytest.raises(UserError, match="--systems: nothing begins with 'jax'"):
        names("ours", "jax")


def test_without_their_environment_the_peers_in_pytorch_are_left_out():
    assert not any(name.startswith("hf") for name in names(peers=False))
    assert {"ours-bfloat16", "mg-float32"} <= set(names(peers=False))


def test_the_rates_are_always_measured():
    def rates(peers):
        return [system.name for system in systems.chosen(["ours"], with_peers_environment=peers)
                if system.role is Role.RATE]
    assert len(rates(True)) == 4
    assert rates(False) == ["rate-tensorflow-bfloat16", "rate-tensorflow-float32"]


@pytest.mark.parametrize(("flag", "error"), [
    ("--cases=small-64", "error: no case is named 'small-64'. There are small-128, small-512, "
                         "base-128, toy, and SIZE-BxL, such as base-8x512, or SIZE-BxL-recompute "
                         "with gradient checkpointing.\n"),
    ("--output_dir=/dev/null/a", "error: cannot write /dev/null/a: Not a directory; a part of this "
                                 "path is a file: choose another directory.\n"),
])
def test_a_wrong_flag_is_one_line(flag, error):
    done = subprocess.run([sys.executable, "-m", "benchmarks.pretraining", flag], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, error)
