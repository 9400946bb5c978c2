"""With JAX and libtpu: every step compiles for TPUs, and trains on JAX as on TensorFlow."""

import os
import re
import subprocess

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.apps.stablehlo import artefact
from electra_tf.apps.stablehlo.compile_step import ROOT, VARIABLE, compile_python
from electra_tf.apps.stablehlo.lift import export, for_one_device, lift_without_records, state_name
from electra_tf.config import objectives, pretraining
from electra_tf.config.overrides import override
from electra_tf.data.pipeline import training_batches
from electra_tf.pretraining.setup import prepare
from electra_tf.reporting.metrics_log import read_metrics
from tests import tiny_records, tiny_run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not compile_python().exists(), reason=(
    f"There is no {compile_python()}: run `make compile-env`, or set {VARIABLE} to a Python with "
    "the packages of requirements/compile.txt."))]
GENERATIONS = {"v2:2x2": 8, "v3:2x2": 8, "v4:2x2x1": 8, "v5e:2x4": 8, "v5p:2x2x1": 4, "v6e:2x4": 8}
STEPS = 6


def run(module, *given, **environment):
    return subprocess.run(
        [str(compile_python().absolute()), "-m", f"electra_tf.apps.stablehlo.{module}", *given],
        cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("topology", "said"), [
    *((name, "--topology: there is no .*; take for example v2:2x2")
      for name in ("v5e:3x3", "v1:2x2", "tpu", "v5e:99x99", "v5e:2x4;", "v5e:2x4,")),
    ("v5e:2x4", "a batch of 100 examples can't be split over the 8 cores of v5e:2x4. .* "
     "for example 96")])
def test_a_topology_that_doesnt_exist_or_share_the_batch_is_one_line(topology, said):
    done = run("ahead_of_time", f"--topology={topology}", "--batch_size=100")
    assert done.returncode == 1
    assert re.search(said, done.stderr) and done.stderr.count("\n") == 1


def compiled(path, topology, **changes):
    """The number of cores, and a core's MB: all, state and batch, activations and gradients."""
    config = override(pretraining.SIZES["tiny"], {
        name.replace("__", "."): value for name, value in changes.items()})
    artefact.write(lift_without_records(config), path)
    done = run("ahead_of_time", f"--step={path}", f"--topology={topology}")
    assert done.returncode == 0, done.stdout + done.stderr
    *_, row = done.stdout.splitlines()
    _, cores, *memory = [cell.replace(",", "") for cell in row.split()[:5]]
    return int(cores), *map(float, memory)


@pytest.mark.parametrize(("topology", "count"), GENERATIONS.items())
def test_a_step_compiles_for_every_generation(topology, count, tmp_path):
    cores, whole, state, _ = compiled(
        tmp_path / "step.stablehlo", topology, training__precision="bfloat16")
    assert cores == count
    # Weights and two slots on every core, float32, which the new ones replace.
    least = 3 * 4 * pretraining.SIZES["tiny"].model.parameters / 1e6
    assert least < state < whole and whole < 2 * state + 500


def test_rounds_of_accumulation_take_a_part_of_the_memory(tmp_path):
    """Every core has examples of every round: 64 of 512, eight at a time."""
    whole, rounds = (compiled(
        tmp_path / "step.stablehlo", "v5e:2x4", training__train_batch_size=512,
        data__max_seq_length=128, runtime__gradient_accumulation_steps=count)[3]
        for count in (1, 8))
    assert rounds < whole / 3


@pytest.mark.parametrize("name", sorted(objectives.OBJECTIVES))
def test_every_objective_compiles(name, tmp_path):
    changes = {"objective__generator": "unused"} if name == "frozen_generator" else {}
    assert compiled(tmp_path / "step.stablehlo", "v5e:2x4", objective__name=name, **changes)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A run whose step was exported, and its losses and weights on TensorFlow."""
    place = tmp_path_factory.mktemp("jax")
    tiny_records.write(place / "records")
    tiny_records.write(place / "others", seed=9)
    trained = prepare(for_one_device(tiny_run.config(objective__name="mlm")),
                      place / "records", place / "run", here=False)
    export(trained, place / "step.stablehlo")
    state = tiny_run.state_of(trained)
    call = tiny_run.step_function(trained, state)
    losses = [float(result["loss"].sum) for result in map(call, training_batches(
        trained.records, pad_id=trained.vocabulary.pad_id, seed=trained.config.training.seed,
        buffer_examples=trained.config.data.shuffle_buffer, global_batch_size=8, first_step=0,
        last_step=STEPS, context=tf.distribute.InputContext()))]
    return place, losses, {state_name(weight): weight.numpy() for weight in state.variables}


def train(place, name, *given, devices=1):
    return run("run_step", f"--step={place / 'step.stablehlo'}", f"--data_dir={place / 'records'}",
               f"--state={place / name}.npz", "--log_every_steps=1", *given, JAX_PLATFORMS="cpu",
               XLA_FLAGS=f"--xla_force_host_platform_device_count={devices}")


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
