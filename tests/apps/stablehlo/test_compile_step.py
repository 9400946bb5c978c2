"""What can't be compiled or exported is said in a line; the commands import what is installed."""

import os
import re
import signal

import pytest

from electra_tf.apps.stablehlo import compile_step, run_step
from electra_tf.platform.errors import UserError
from tests import command_flags
from tests.layering import sources

ENTRIES = ("electra_tf.apps.stablehlo.run_step", "electra_tf.apps.stablehlo.ahead_of_time",
           "benchmarks.accelerator.__main__", "benchmarks.accelerator.ours")
"""Commands of the compile environment, in which there is no TensorFlow."""


@pytest.mark.parametrize(("module", "given", "said"), [
    (compile_step, (), "--topology or --export is needed"),
    (compile_step, ("--topology=v5e:2x4", "--export=a.stablehlo"), "give one of them"),
    (compile_step, ("--export=a.stablehlo",), "--data_dir is needed"),
    (compile_step, ("--export=a.mlir", "--data_dir=here", "--model_dir=there"),
     r"ends in \.stablehlo"),
    (compile_step, ("--export=gs://b/a.stablehlo", "--data_dir=here", "--model_dir=there"),
     "must be a path of this machine"),
    (compile_step, ("--topology=v5e:2x4",), "no /nowhere/python: run `make compile-env`"),
    (run_step, ("--step=a.stablehlo", "--data_dir=b"), "--state is needed"),
    (run_step, ("--step=a.stablehlo", "--data_dir=b", "--state=c"), r"must end in \.npz"),
    (run_step, ("--step=a.stablehlo", "--data_dir=b", "--state=c.npz"),
     "no jax here; run .*compile-env"),
])
def test_what_cant_be_done_is_refused(monkeypatch, module, given, said):
    monkeypatch.setenv("COMPILE_PYTHON", "/nowhere/python")
    with pytest.raises(UserError, match=said):
        command_flags.run(module, *given)


def test_processes_without_memory_are_one_line(monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -KILL $$\n")
    python.chmod(0o755)
    monkeypatch.setenv("COMPILE_PYTHON", str(python))
    with pytest.raises(UserError, match="the compiler was killed, most likely because"):
        command_flags.run(compile_step, "--topology=v5e:2x4")
    with pytest.raises(UserError, match="was killed, most likely because memory ran out"):
        compile_step.in_a_process(killed)


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_commands_of_the_compile_environment_need_what_is_installed_there():
    text = (sources.ROOT / "requirements" / "compile.txt").read_text()
    installed = {{"absl-py": "absl"}.get(name, name.replace("-", "_"))
                 for name in re.findall(r"(?m)^([\w\-]+)==", text)}
    for entry in ENTRIES:
        # Elsewhere what is imported inside functions is for paths that are addresses.
        ours, libraries = sources.closure(entry, inside_functions=lambda name, entry=entry: (
            name == entry or name.startswith("electra_tf.apps.stablehlo.")))
        assert len(ours) > 10
        assert libraries <= installed, entry
    assert "tensorflow" in sources.closure("electra_tf.apps.stablehlo.lift")[1]
