"""With JAX and libtpu: steps compile for TPUs, and the benchmark runs one on a CPU."""

import os
import re
import subprocess
import sys

import pytest

from benchmarks.accelerator import lifted_step
from benchmarks.accelerator.lift import lift_without_records
from benchmarks.harness.worker import ROOT
from electra_tf.config import objectives, pretraining
from electra_tf.config.overrides import override

PYTHON = ROOT / ".venv-compile" / "bin" / "python"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(
    not PYTHON.exists(), reason=f"There is no {PYTHON}: run `make compile-env`.")]
CORES = {"v2:2x2": 8, "v3:2x2": 8, "v4:2x2x1": 8, "v5e:2x4": 8, "v5p:2x2x1": 4, "v6e:2x4": 8}


def run(python, module, *flags):
    return subprocess.run(
        [str(python), "-m", f"benchmarks.{module}", *flags], cwd=ROOT, capture_output=True,
        text=True, check=False, env=os.environ | {"HF_HUB_OFFLINE": "1"})


def compiled(path, *topologies, **changes):
    """A line for each topology: name, cores, and a core's MB of all, of arguments, temporary."""
    config = override(pretraining.SIZES["tiny"], {"data.max_seq_length": 128} | {
        name.replace("__", "."): value for name, value in changes.items()})
    lifted_step.write(lift_without_records(config), path)
    done = run(PYTHON, "accelerator.compile_for_tpu", f"--step={path}",
               f"--topology={','.join(topologies)}")
    assert done.returncode == 0, done.stdout + done.stderr
    numbers = r"(\S+), (\d+) cores, .*: ([\d.,]+) MB .* batch ([\d.,]+), .* gradients ([\d.,]+);"
    return [(name, int(cores), *(float(size.replace(",", "")) for size in sizes))
            for name, cores, *sizes in re.findall(numbers, done.stdout)]


def test_a_step_compiles_for_every_generation(tmp_path):
    lines = compiled(tmp_path / "tiny.stablehlo", *CORES)
    assert {name: cores for name, cores, *_ in lines} == CORES
    # Weights and two slots on every core, float32, which the new ones replace.
    slots = 3 * 4 * pretraining.SIZES["tiny"].model.parameters / 1e6
    for _, _, whole, state, _ in lines:
        assert slots < state < whole < 2 * state + 500


@pytest.mark.parametrize("name", sorted(objectives.OBJECTIVES))
def test_every_objective_compiles(name, tmp_path):
    changes = {"objective__generator": "unused"} if name == "frozen_generator" else {}
    assert compiled(tmp_path / "step.stablehlo", "v5e:2x4", objective__name=name, **changes)


def test_rounds_of_accumulation_take_a_part_of_the_memory(tmp_path):
    """Every core has examples of every round: 64 of 512, eight at a time."""
    whole, rounds = (compiled(
        tmp_path / "step.stablehlo", "v5e:2x4", training__train_batch_size=512,
        runtime__gradient_accumulation_steps=count)[0][-1] for count in (1, 8))
    assert rounds < whole / 3


def test_an_exported_case_is_measured_on_a_cpu_or_refused(tmp_path):
    done = run(sys.executable, "accelerator.export", "--cases=toy", f"--output_dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    for device, status in (("cpu", 0), ("cuda", 1)):
        done = run(PYTHON, "accelerator", f"--steps={tmp_path}", f"--device={device}", "--rounds=2",
                   "--steps_per_turn=3", "--systems=ours", f"--output_dir={tmp_path}")
        assert done.returncode == status, done.stderr[-2000:]
        if device == "cpu":
            assert "electra_tf bfloat16, StableHLO on JAX" in (tmp_path / "results.md").read_text()
    assert "no system could be measured" in done.stderr
    for topology, message in (("v5e:3x3", "there is no 'v5e:3x3'; take for example v2:2x2"),
                              ("v5e:2x4", "the 8 cores of v5e:2x4 can't share a batch of 2")):
        done = run(PYTHON, "accelerator.compile_for_tpu", f"--step={tmp_path}/toy.stablehlo",
                   f"--topology={topology}")
        assert done.returncode == 1 and message in done.stderr and done.stderr.count("\n") == 1
