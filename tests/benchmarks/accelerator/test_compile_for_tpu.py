"""With JAX and libtpu: steps compile for TPUs, without a TPU."""

import os
import re
import subprocess

import pytest

from benchmarks.accelerator.export import trace_without_records
from electra_tf.config import objectives, pretraining
from electra_tf.config.overrides import override
from tests.support.sources import ROOT

PYTHON = ROOT / ".venv-compile" / "bin" / "python"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(
    not PYTHON.exists(), reason=f"There is no {PYTHON}: run `make compile-env`.")]
CORES = {"v2:2x2": 8, "v3:2x2": 8, "v4:2x2x1": 8, "v5e:2x4": 8, "v5p:2x2x1": 4, "v6e:2x4": 8}


def run(path, *topologies):
    return subprocess.run(
        [str(PYTHON), "-m", "benchmarks.accelerator.compile_for_tpu", f"--step={path}",
         f"--topology={','.join(topologies)}"], cwd=ROOT, capture_output=True, text=True,
        check=False, env=os.environ | {"HF_HUB_OFFLINE": "1"})


def compiled(path, *topologies, **changes):
    """A line for each topology: name, cores, and a core's MB of all, of arguments, temporary."""
    path.write_bytes(trace_without_records(override(
        pretraining.SIZES["tiny"], {"data.max_seq_length": 128} | {
            name.replace("__", "."): value for name, value in changes.items()})))
    done = run(path, *topologies)
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


def test_topologies_that_do_not_exist_or_fit_are_refused(tmp_path):
    path = tmp_path / "step.stablehlo"
    compiled(path, "cpu", training__train_batch_size=2)
    for topology, message in (("v5e:3x3", "there is no 'v5e:3x3'; take for example v2:2x2"),
                              ("cuda", "there is no 'cuda'"),
                              ("v5e:2x4", "8 devices can't share a batch of 2")):
        done = run(path, topology)
        assert done.returncode == 1 and message in done.stdout + done.stderr
