"""With JAX and libtpu: every step compiles for TPUs, and trains on JAX as on TensorFlow."""

import os
import subprocess

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.apps.stablehlo import artefact, compile_environment, exchange
from electra_tf.apps.stablehlo.compile_environment import ROOT, Cores, Report, ask, python
from electra_tf.apps.stablehlo.lift import for_one_device, lift_without_records, state_name
from electra_tf.config import objectives, pretraining
from electra_tf.config.overrides import override
from electra_tf.data.pipeline import training_batches
from electra_tf.platform.errors import UserError
from electra_tf.pretraining.setup import prepare
from electra_tf.reporting.metrics_log import read_metrics
from tests import tiny_records, tiny_run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not python().exists(), reason=(
    f"There is no {python()}: run `make compile-env`, or set {compile_environment.VARIABLE} to a "
    "Python with the packages of requirements/compile.txt."))]
GENERATIONS = {"v2:2x2": 8, "v3:2x2": 8, "v4:2x2x1": 8, "v5e:2x4": 8, "v5p:2x2x1": 4, "v6e:2x4": 8}
STEPS = 6


def test_a_topology_that_doesnt_exist_is_one_line():
    for name in ("v5e:3x3", "v1:2x2", "tpu", "v5e:99x99", "", "v5e:2x4;"):
        with pytest.raises(UserError, match="--topology: there is no .*; take for example v2:2x2"):
            ask(Cores, f"--topology={name}")


def has_cuda():
    return any(python().parent.parent.glob("lib/python*/site-packages/jax_plugins/xla_cuda*"))


def compiled(path, topology, **changes):
    config = override(pretraining.pretraining_config(changes.pop("size", "tiny")), {
        name.replace("__", "."): value for name, value in changes.items()})
    artefact.write(lift_without_records(config), path)
    return ask(Report, f"--step={path}", f"--topology={topology}")


@pytest.mark.parametrize(("topology", "cores"), GENERATIONS.items())
def test_a_step_compiles_for_every_generation(topology, cores, tmp_path):
    report = compiled(tmp_path / "step.stablehlo", topology, training__precision="bfloat16")
    assert report.problem is None and report.cores.count == cores
    # Weights and two slots on every core, float32.
    assert report.memory.arguments > 3 * 4 * pretraining.SIZES["tiny"].model.parameters
    assert report.memory.shared > 0.9 * report.memory.arguments
    gradients = {found.kind: found.bytes for found in report.collectives}["all-reduce"]
    assert gradients > pretraining.SIZES["tiny"].model.parameters


@pytest.mark.skipif(not has_cuda(), reason="No compiler for NVIDIA: run `make compile-cuda`.")
@pytest.mark.parametrize(("topology", "count"), [("a100:1", 1), ("h100:1", 1), ("h100:8", 8)])
def test_a_step_compiles_for_cards(topology, count, tmp_path):
    report = compiled(tmp_path / "step.stablehlo", topology, training__precision="bfloat16")
    assert report.problem is None and report.cores.count == count
    assert report.memory.arguments > 3 * 4 * pretraining.SIZES["tiny"].model.parameters
    assert bool(report.collectives) is (count > 1)


def test_rounds_of_accumulation_take_a_part_of_the_memory(tmp_path):
    """Every core has examples of every round: 64 of 512, eight at a time."""
    whole, rounds = (compiled(
        tmp_path / "step.stablehlo", "v5e:2x4", training__train_batch_size=512,
        data__max_seq_length=128, runtime__gradient_accumulation_steps=count).memory.temporary
        for count in (1, 8))
    assert rounds < whole / 3


@pytest.mark.parametrize("name", sorted(objectives.OBJECTIVES))
def test_every_objective_compiles(name, tmp_path):
    changes = {"objective__generator": "unused"} if name == "frozen_generator" else {}
    assert compiled(tmp_path / "step.stablehlo", "v5e:2x4", objective__name=name,
                    **changes).problem is None


@pytest.mark.parametrize(("size", "batch"), [("small", 128), ("base", 256), ("large", 64)])
def test_every_size_compiles(size, batch, tmp_path):
    # Large with few examples: what doesn't fit is no error of the step.
    assert compiled(tmp_path / "step.stablehlo", "v5p:2x2x1", size=size,
                    training__train_batch_size=batch, data__max_seq_length=512,
                    runtime__gradient_checkpointing=size == "large").problem is None


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A run whose step was exported, and its losses and weights on TensorFlow."""
    place = tmp_path_factory.mktemp("jax")
    tiny_records.write(place / "records")
    tiny_records.write(place / "others", seed=9)
    run = prepare(for_one_device(tiny_run.config(objective__name="mlm")),
                  place / "records", place / "run", here=False)
    exchange.export(run, place / "step.stablehlo")
    state = tiny_run.state_of(run)
    call = tiny_run.step_function(run, state)
    losses = [float(result["loss"].sum) for result in map(call, training_batches(
        run.records, pad_id=run.vocabulary.pad_id, seed=run.config.training.seed,
        window_examples=run.config.data.shuffle_window, global_batch_size=8, first_step=0,
        last_step=STEPS, context=tf.distribute.InputContext()))]
    return place, losses, {state_name(weight): weight.numpy() for weight in state.variables}


def train(place, name, *given, devices=1):
    return subprocess.run(
        [str(python().absolute()), "-m", "electra_tf.apps.stablehlo.run_step",
         f"--step={place / 'step.stablehlo'}", f"--data_dir={place / 'records'}",
         f"--state={place / name}.npz", "--log_every_steps=1", *given], cwd=ROOT,
        env=os.environ | {"JAX_PLATFORMS": "cpu",
                          "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"},
        capture_output=True, text=True, check=False)


@pytest.mark.parametrize("devices", [1, 2])
def test_jax_trains_as_tensorflow_does(exported, devices):
    place, losses, weights = exported
    name = f"on-{devices}"
    for last in (2, STEPS):  # Continued in between.
        done = train(place, name, f"--last_step={last}", devices=devices)
        assert done.returncode == 0, done.stderr[-2000:]
    assert f"{devices} x cpu" in done.stdout
    records = read_metrics(place / f"{name}.jsonl")
    assert [record["step"] for record in records] == list(range(1, STEPS + 1))
    assert [record["loss"] for record in records] == pytest.approx(losses, rel=1e-5)
    layout = artefact.read(place / "step.stablehlo").layout
    for key, value in artefact.read_state(place / f"{name}.npz", layout).items():
        np.testing.assert_allclose(value, weights[key], rtol=0, atol=3e-5, err_msg=key)


@pytest.mark.parametrize(("given", "devices", "said"), [
    (["--last_step=100"], 1, "--last_step=100 must be past step 0"),
    (["--data_dir=/nowhere"], 1, "/nowhere/manifest.json does not exist"),
    (["--data_dir={place}/others"], 1, "aren't those that the step was exported with"),
    (["--last_step=1"], 3, "can't be split over 3 devices")])
def test_what_cant_be_trained_is_one_line(exported, given, devices, said):
    given = [flag.format(place=exported[0]) for flag in given]
    done = train(exported[0], "refused", *given, devices=devices)
    assert done.returncode == 1
    assert said in done.stderr and done.stderr.count("\n") == 1
