"""A step on disk is whole and goes together, or is refused by name."""

import hashlib
import io
import random
import zipfile

import numpy as np
import pytest

from electra_tf.apps.stablehlo import artefact
from electra_tf.apps.stablehlo.artefact import (
    FORMAT_VERSION,
    Layout,
    LiftedStep,
    StateValue,
    Value,
)
from electra_tf.platform.errors import UserError
from tests.refusals import refused

MODULE = b"a module"
STATE = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3), "step": np.asarray(7, np.int64)}


def layout(**changes):
    return Layout(**{
        "format_version": FORMAT_VERSION, "sha256": hashlib.sha256(MODULE).hexdigest(),
        "batch_size": 4, "num_train_steps": 9,
        "batch": (Value(name="ids", shape=(4, 8), dtype="int32"),),
        "state": (StateValue(name="weight", shape=(2, 3), dtype="float32", result=2),
                  StateValue(name="step", shape=(), dtype="int64", result=3)),
        "results": ("loss/sum", "loss/weight"), "reading": None} | changes)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "step.stablehlo"
    artefact.write(LiftedStep(module=MODULE, layout=layout()), path)
    artefact.write_state(STATE, layout(), path.with_suffix(".npz"))
    return path


def test_what_is_written_is_read(path):
    assert artefact.read(path) == LiftedStep(module=MODULE, layout=layout())
    state = artefact.read_state(path.with_suffix(".npz"), layout())
    assert list(state) == ["weight", "step"] and state["step"] == 7
    np.testing.assert_array_equal(state["weight"], STATE["weight"])


@pytest.mark.parametrize(("suffix", "change", "said"), [
    (".stablehlo", lambda _: b"another", r"isn't the step that step\.json describes"),
    (".stablehlo", None, "can't be read"), (".json", None, "three files side by side"),
    (".json", lambda text: text.replace(b'"format_version":1', b'"format_version":2'),
     "has format version 2"),
    (".json", lambda text: text.replace(b'"step"', b'"steps"'), "its state has no step"),
    (".json", lambda text: text[:-40], "is damaged"), (".npz", None, "does not exist"),
    (".npz", lambda _: b"PK\x03\x04 not a zip", "is damaged")])
def test_damaged_missing_and_foreign_files_are_refused(path, suffix, change, said):
    file = path.with_suffix(suffix)
    if change is None:
        file.unlink()
    else:
        file.write_bytes(change(file.read_bytes()))
    with pytest.raises(UserError, match=said):
        artefact.read(path)
        artefact.read_state(path.with_suffix(".npz"), layout())


@pytest.mark.parametrize(("state", "said"), [
    ({"step": STATE["step"]}, "it lacks 'weight'"),
    (STATE | {"other": STATE["step"]}, "it has 'other'"),
    (STATE | {"weight": STATE["weight"].T}, r"weight is float32 \[3, 2\], not float32 \[2, 3\]"),
    (STATE | {"weight": STATE["weight"].astype(np.float64)}, "weight is float64")])
def test_a_state_of_another_step_is_refused(tmp_path, state, said):
    np.savez(tmp_path / "state.npz", **state)
    with pytest.raises(UserError, match=said):
        artefact.read_state(tmp_path / "state.npz", layout())


def npy(shape, dtype, data=b""):
    """A .npy file whose header claims anything."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"shape": shape, "fortran_order": False, "descr": dtype})
    return file.getvalue() + data


@pytest.mark.parametrize("weight", [
    npy((10**12, 10**3), "<f4"), npy((2, -3), "<f4"), npy((2, 3), "|O", b"\x80\x04N."),
    npy((2, 3), "<f4", b"\0" * 20), b"\x93NUMPY\x09\x09" + b"\xff" * 60, b"",
    npy((2, 3), "<f4").replace(b"(2, 3)", b"(" * 6)])
def test_a_hostile_header_is_one_line_and_reads_nothing(tmp_path, weight):
    with zipfile.ZipFile(tmp_path / "state.npz", "w") as archive:
        archive.writestr("weight.npy", weight)
        archive.writestr("step.npy", npy((), "<i8", bytes(8)))
    with refused(r"is damaged|isn't a state of this step"):
        artefact.read_state(tmp_path / "state.npz", layout())


@pytest.mark.fuzz
def test_damaged_states_are_read_or_refused(path):
    draw, whole = random.Random(1), path.with_suffix(".npz").read_bytes()
    for _ in range(300):
        content = bytearray(whole[:draw.randrange(1, len(whole) + 1)])
        for _ in range(draw.randrange(4)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        path.with_suffix(".npz").write_bytes(content)
        try:
            assert artefact.read_state(path.with_suffix(".npz"), layout()).keys() == STATE.keys()
        except UserError as error:
            assert "\n" not in str(error)
