"""What can't be compiled or exported is said in a line, before anything is traced."""

import os
import signal

import pytest

from electra_tf.apps.stablehlo import compile_environment, compile_step, run_step
from electra_tf.apps.stablehlo.compile_environment import Cores
from electra_tf.platform.errors import UserError
from tests import command_flags


def compiles(*given):
    with command_flags.defined(compile_step.define):
        command_flags.call(compile_step.main, *given)


def trains(*given):
    with command_flags.defined(run_step.define):
        command_flags.call(run_step.main, *given)


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.setattr(compile_environment, "ask", lambda form, *flags: Cores(
        topology="v5e:2x4", kind="TPU v5 lite", count=8))


@pytest.mark.parametrize(("given", "said"), [
    ((), "--topology or --export is needed"),
    (("--topology=v5e:2x4", "--export=a.stablehlo"), "give one of them"),
    (("--export=a.stablehlo",), "--data_dir is needed"),
    (("--export=a.mlir", "--data_dir=here", "--model_dir=there"), r"ends in \.stablehlo"),
    (("--export=gs://b/a.stablehlo", "--data_dir=here", "--model_dir=there"),
     "must be a path of this machine"),
    (("--topology=v5e:2x4",), "no /nowhere/python: run `make compile-env`"),
])
def test_what_cant_be_compiled_or_exported_is_refused(monkeypatch, given, said):
    monkeypatch.setenv("COMPILE_PYTHON", "/nowhere/python")
    with pytest.raises(UserError, match=said):
        compiles(*given)


def test_a_compiler_without_memory_is_one_line(monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -KILL $$\n")
    python.chmod(0o755)
    monkeypatch.setenv("COMPILE_PYTHON", str(python))
    with pytest.raises(UserError, match="the compiler was killed, most likely for want of memory"):
        compiles("--topology=v5e:2x4")


def test_a_batch_that_cores_cant_share_is_refused_before_it_is_traced(eight_cores):
    with pytest.raises(UserError, match=(
            r"--train_batch_size \(training\.train_batch_size\)=100 can't be split over the 8 "
            r"cores of v5e:2x4\. Take a multiple of 8, for example 96")):
        compiles("--topology=v5e:2x4", "--train_batch_size=100")


def killed(*_args):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_without_memory_is_one_line(eight_cores, monkeypatch):
    monkeypatch.setattr(compile_step, "_write_lifted", killed)
    with pytest.raises(UserError, match="was killed, most likely for want of memory"):
        compiles("--topology=v5e:2x4")


@pytest.mark.slow
def test_a_length_past_the_positions_is_refused(eight_cores):
    with pytest.raises(UserError, match="model.max_position_embeddings=128"):
        compiles("--topology=v5e:2x4", "--model_size=tiny", "--max_seq_length=512")


@pytest.mark.parametrize(("given", "said"), [
    (("--step=a.stablehlo", "--data_dir=b"), "--state is needed"),
    (("--step=a.stablehlo", "--data_dir=b", "--state=c"), r"--state must end in \.npz"),
    (("--step=a.stablehlo", "--data_dir=b", "--state=c.npz"), "no jax here; run .*compile-env")])
def test_training_says_what_it_needs(given, said):
    with pytest.raises(UserError, match=said):
        trains(*given)
