"""Steps that are carried to an accelerator are found, and their state begins as a run's does."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.accelerator.__main__ import systems_of, workloads_of
from benchmarks.accelerator.state import initial_state
from benchmarks.harness.worker import ROOT
from electra_tf.apps.stablehlo.artefact import FORMAT_VERSION, Layout, StateValue
from electra_tf.apps.stablehlo.compile_step import compile_python
from electra_tf.platform.errors import UserError


def begun(name, shape=(4, 3), dtype="float32"):
    """The initial value of one tensor of the state."""
    value = StateValue(name=name, shape=shape, dtype=dtype, result=None)
    return initial_state(Layout(
        format_version=FORMAT_VERSION, sha256=hashlib.sha256(b"").hexdigest(), batch_size=2,
        num_train_steps=9, results=(), reading=None, batch=(), state=(value,)))[name]


def test_the_initial_state_is_that_of_a_run():
    for name in ("a/dense/kernel", "electra/embeddings/word_embeddings"):
        drawn = begun(name, (300, 200))
        # Of 60,000 draws the mean is within 5 of its standard errors, the deviation within 3 %.
        assert abs(drawn.mean()) < 5 * 0.02 / 60_000 ** 0.5
        assert drawn.std() == pytest.approx(0.02, rel=0.03)
    for name, expected in {
            "a/LayerNorm/gamma": 1, "loss_scale": 1, "a/LayerNorm/beta": 0, "a/dense/bias": 0,
            "generator_predictions/output_bias": 0, "a/dense/kernel/adam_m": 0,
            "a/LayerNorm/gamma/adam_v": 0}.items():
        np.testing.assert_array_equal(begun(name), np.full((4, 3), expected, np.float32))
    assert (begun("step", (), "int64"), begun("step", (), "int64").dtype) == (0, np.int64)
    with pytest.raises(ValueError, match="a/novelty"):
        begun("a/novelty")


def test_steps_are_found_the_smallest_first_or_as_asked(tmp_path):
    def names(*wanted):
        return [work.case for work in workloads_of(tmp_path, wanted)]

    with pytest.raises(UserError, match="has no step of any case; it has: none"):
        names()
    for case in ("base-4x128", "small-128x128"):
        (tmp_path / f"{case}.stablehlo").touch()
    assert names() == ["base-4x128", "small-128x128"]
    assert names("small-128x128", "base-4x128") == ["small-128x128", "base-4x128"]
    with pytest.raises(UserError, match="no step of toy; it has: base-4x128, small-128x128"):
        names("toy")


def test_a_card_is_visible_and_the_cpu_hides_all(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,4")
    assert systems_of("cuda", tmp_path)[0].variables["CUDA_VISIBLE_DEVICES"] == "3"
    assert systems_of("cpu", tmp_path)[0].variables["CUDA_VISIBLE_DEVICES"] == "-1"


@pytest.mark.slow
@pytest.mark.skipif(not compile_python().exists(),
                    reason="There is no environment with JAX: run `make compile-env`.")
def test_a_toy_is_measured_on_a_cpu_by_jax(tmp_path):
    def run(python, module, *given):
        return subprocess.run(
            [str(python), "-m", module, *given], cwd=ROOT, capture_output=True, text=True,
            check=False, env=os.environ | {"HF_HUB_OFFLINE": "1"})

    done = run(sys.executable, "benchmarks.accelerator.export", "--cases=toy",
               f"--output_dir={tmp_path}/steps")
    assert done.returncode == 0, done.stderr
    done = run(compile_python(), "benchmarks.accelerator", f"--steps={tmp_path}/steps",
               "--device=cpu", "--rounds=2", "--steps_per_turn=3", "--systems=ours",
               f"--output_dir={tmp_path}")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "electra_tf bfloat16, StableHLO on JAX" in (tmp_path / "results.md").read_text()
    done = run(compile_python(), "benchmarks.accelerator", f"--steps={tmp_path}/steps",
               "--systems=ours", f"--output_dir={tmp_path}")
    assert done.returncode == 1 and "no system could be measured" in done.stderr
