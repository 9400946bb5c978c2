"""Files of exported steps, the cases that are measured, and what the environment with JAX needs."""

import hashlib
import re

import numpy as np
import pytest

from benchmarks.accelerator import lifted_step
from benchmarks.accelerator.__main__ import systems_on, workloads_of
from benchmarks.accelerator.lifted_step import LiftedStep, StepArgument, StepLayout
from electra_tf.platform.errors import UserError
from tests.support import sources

MODULE = b"a module"


def layout(*state):
    return StepLayout(sha256=hashlib.sha256(MODULE).hexdigest(), state=state, results=("loss/sum",),
                  batch=(StepArgument(name="ids", shape=(4, 8), dtype="int32"),))


def test_a_step_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "new" / "toy.stablehlo"
    step = LiftedStep(module=MODULE, layout=layout(
        StepArgument(name="weight", shape=(2, 3), dtype="float32", result=1)))
    lifted_step.write(step, path)
    assert lifted_step.read(path) == step


@pytest.mark.parametrize(("suffix", "before", "after", "message"), [
    (".stablehlo", b"module", b"another", r"isn't the step that toy\.json describes"),
    (".json", b'"format_version":2', b'"format_version":1', "format_version' must be 2"),
    (".json", b"}", b"", "is damaged")])
def test_damaged_files_are_refused(tmp_path, suffix, before, after, message):
    path = tmp_path / "toy.stablehlo"
    lifted_step.write(LiftedStep(module=MODULE, layout=layout()), path)
    changed = path.with_suffix(suffix)
    changed.write_bytes(changed.read_bytes().replace(before, after))
    with pytest.raises(UserError, match=f"{message}.*export the step again with"):
        lifted_step.read(path)
    path.with_suffix(".json").unlink()
    with pytest.raises(UserError, match=r"toy\.json does not exist: a step is two files"):
        lifted_step.read(path)


def test_initial_weights_are_those_of_a_run():
    def initial(name, shape=(4, 3), dtype="float32"):
        return lifted_step.initial_state(
            layout(StepArgument(name=name, shape=shape, dtype=dtype)))[name]

    for name in ("a/dense/kernel", "electra/embeddings/word_embeddings"):
        drawn = initial(name, (300, 200))
        # Of 60,000 draws the mean is within 5 of its standard errors, the deviation within 3 %.
        assert abs(drawn.mean()) < 5 * 0.02 / 60_000 ** 0.5
        assert drawn.std() == pytest.approx(0.02, rel=0.03)
    for name, expected in {"a/LayerNorm/gamma": 1, "loss_scale": 1, "a/LayerNorm/beta": 0,
                           "a/dense/kernel/adam_m": 0, "a/LayerNorm/gamma/adam_v": 0}.items():
        np.testing.assert_array_equal(initial(name), np.full((4, 3), expected, np.float32))
    assert (initial("step", (), "int64"), initial("step", (), "int64").dtype) == (0, np.int64)


def test_the_smallest_steps_are_measured_first_or_as_asked(tmp_path):
    def names(*cases):
        return [work.case for work in workloads_of(tmp_path, cases)]

    with pytest.raises(UserError, match="has no step of any case; it has: none"):
        names()
    for case in ("base-4x128", "small-128x128"):
        (tmp_path / f"{case}.stablehlo").touch()
    assert names() == ["base-4x128", "small-128x128"]
    assert names("small-128x128", "base-4x128") == ["small-128x128", "base-4x128"]
    with pytest.raises(UserError, match="no step of toy; it has: base-4x128, small-128x128"):
        names("toy")
    (tmp_path / "base-4x128-changed.stablehlo").touch()
    with pytest.raises(UserError, match="no case is named 'base-4x128-changed'"):
        names()


def test_one_gpu_is_visible_and_the_cpu_hides_all(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,4")
    assert systems_on("cuda", tmp_path)[0].variables["CUDA_VISIBLE_DEVICES"] == "3"
    assert systems_on("cpu", tmp_path)[0].variables["CUDA_VISIBLE_DEVICES"] == "-1"


@pytest.mark.parametrize("entry", ["__main__", "ours", "compile_for_tpu"])
def test_the_environment_with_jax_has_what_its_commands_import(entry):
    text = (sources.ROOT / "requirements" / "compile.txt").read_text()
    installed = {{"absl-py": "absl"}.get(name, name.replace("-", "_"))
                 for name in re.findall(r"(?m)^([\w\-]+)==", text)}
    # Elsewhere what is imported inside functions is for paths that are addresses.
    ours, libraries = sources.closure(
        f"benchmarks.accelerator.{entry}",
        inside_functions=lambda name: name.startswith("benchmarks.accelerator."))
    assert len(ours) > 10 and libraries <= installed
