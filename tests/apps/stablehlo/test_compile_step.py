"""What can't be compiled or exported is said in a line, before anything is traced."""

import os
import signal

import pytest

from electra_tf.apps.stablehlo import ahead_of_time, compile_step, run_step
from electra_tf.platform.errors import UserError
from tests import command_flags


def compiles(*given):
    with command_flags.defined(compile_step.define):
        command_flags.call(compile_step.main, *given)


def trains(*given):
    with command_flags.defined(run_step.define):
        command_flags.call(run_step.main, *given)


@pytest.fixture
def possible(monkeypatch):
    """Any topology can share any batch."""
    monkeypatch.setattr(compile_step, "_ahead_of_time", lambda *_given: None)


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


def killed(*_args):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_without_memory_is_one_line(possible, monkeypatch):
    monkeypatch.setattr(compile_step, "_write_lifted", killed)
    with pytest.raises(UserError, match="was killed, most likely for want of memory"):
        compiles("--topology=v5e:2x4")


@pytest.mark.parametrize(("given", "said"), [
    (("--step=a.stablehlo", "--data_dir=b"), "--state is needed"),
    (("--step=a.stablehlo", "--data_dir=b", "--state=c"), r"--state must end in \.npz"),
    (("--step=a.stablehlo", "--data_dir=b", "--state=c.npz"), "no jax here; run .*compile-env")])
def test_training_says_what_it_needs(given, said):
    with pytest.raises(UserError, match=said):
        trains(*given)


@pytest.mark.parametrize(("said", "problem"), [
    ("RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. "
     "Used 28.50G of 15.48G hbm. Exceeded hbm capacity by 13.02G.\n\nTotal hbm usage",
     "does not fit: 28.50G of 15.48G HBM per core"),
    ("RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries "
     "(19.00G) exceeds available HBM (15.48G).", "does not fit: 19.00G of 15.48G HBM per core"),
    ("UNIMPLEMENTED: the op\n  sort", "UNIMPLEMENTED: the op sort")])
def test_why_a_step_doesnt_compile_is_a_line(said, problem):
    assert ahead_of_time.problem(said) == problem
