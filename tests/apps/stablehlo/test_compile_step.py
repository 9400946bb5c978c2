"""What can't be compiled or exported is said in a line, before anything is traced."""

import os
import signal

import pytest

from electra_tf.apps.stablehlo import compile_environment, compile_step, run_step
from electra_tf.apps.stablehlo.report import Cores
from electra_tf.platform.errors import UserError
from tests import command_flags


@pytest.fixture
def compiles():
    with command_flags.defined(compile_step.define):
        yield lambda *given: command_flags.call(compile_step.main, *given)


@pytest.fixture
def trains():
    with command_flags.defined(run_step.define):
        yield lambda *given: command_flags.call(run_step.main, *given)


@pytest.mark.parametrize(("given", "said"), [
    ((), "--topology or --export is needed"),
    (("--take_back=a.npz",), "--topology or --export is needed"),
    (("--topology=v5e:2x4", "--export=a.stablehlo"), "give one of them"),
    (("--export=a.stablehlo",), "--data_dir is needed"),
    (("--export=a.stablehlo", "--data_dir=here"), "--model_dir is needed"),
    (("--export=a.mlir", "--data_dir=here", "--model_dir=there"), r"ends in \.stablehlo"),
    (("--export=gs://b/a.stablehlo", "--data_dir=here", "--model_dir=there"),
     "must be a path of this machine"),
    (("--topology=v5e:2x4", "--model_size=giant"), "tiny, small, base, large"),
    (("--topology=v5e:2x4", "--train_batch_size=none"), "training.train_batch_size"),
])
def test_flags_that_dont_go_together_are_refused(compiles, monkeypatch, given, said):
    monkeypatch.setenv("COMPILE_PYTHON", "/nowhere/python")
    with pytest.raises(UserError, match=said):
        compiles(*given)


def test_a_missing_environment_is_said_with_the_fix(compiles, monkeypatch):
    monkeypatch.setenv("COMPILE_PYTHON", "/nowhere/python")
    with pytest.raises(UserError, match="no /nowhere/python: run `make compile-env`"):
        compiles("--topology=v5e:2x4")


def test_a_compiler_without_memory_is_one_line(compiles, monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -KILL $$\n")
    python.chmod(0o755)
    monkeypatch.setenv("COMPILE_PYTHON", str(python))
    with pytest.raises(UserError, match="the compiler was killed, most likely for want of memory"):
        compiles("--topology=v5e:2x4")


def test_a_batch_that_cores_cant_share_is_refused_before_it_is_traced(compiles, monkeypatch):
    monkeypatch.setattr(compile_environment, "ask", lambda form, *flags: Cores(
        topology="v5e:2x4", kind="TPU v5 lite", count=8))
    with pytest.raises(UserError, match=(
            r"--train_batch_size \(training\.train_batch_size\)=100 can't be split over the 8 "
            r"cores of v5e:2x4\. Take a multiple of 8, for example 96")):
        compiles("--topology=v5e:2x4", "--train_batch_size=100")


def killed(*_args):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_without_memory_is_one_line(compiles, monkeypatch):
    monkeypatch.setattr(compile_environment, "ask", lambda form, *flags: Cores(
        topology="v5e:2x4", kind="TPU v5 lite", count=8))
    monkeypatch.setattr(compile_step, "_write_lifted", killed)
    with pytest.raises(UserError, match="was killed, most likely for want of memory"):
        compiles("--topology=v5e:2x4")


def test_a_length_past_the_positions_is_refused(compiles, monkeypatch):
    monkeypatch.setattr(compile_environment, "ask", lambda form, *flags: Cores(
        topology="v5e:2x4", kind="TPU v5 lite", count=8))
    with pytest.raises(UserError, match="model.max_position_embeddings=128"):
        compiles("--topology=v5e:2x4", "--model_size=tiny", "--max_seq_length=512")


@pytest.mark.parametrize(("given", "said"), [
    ((), "--step is needed"), (("--step=a.stablehlo",), "--data_dir is needed"),
    (("--step=a.stablehlo", "--data_dir=b"), "--state is needed"),
    (("--step=a.stablehlo", "--data_dir=b", "--state=c"), r"--state must end in \.npz"),
    (("--step=a.stablehlo", "--data_dir=b", "--state=gs://c/d.npz"), "path of this machine")])
def test_training_says_what_it_needs(trains, given, said):
    with pytest.raises(UserError, match=said):
        trains(*given)


def test_without_jax_the_other_python_is_named(trains):
    with pytest.raises(UserError, match="no jax here; run this command with the Python of "
                                        "`make compile-env`"):
        trains("--step=a.stablehlo", "--data_dir=b", "--state=c.npz")
