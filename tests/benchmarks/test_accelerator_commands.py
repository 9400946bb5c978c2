"""Both commands of the benchmark on accelerators: what they refuse, and all of it on a CPU."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest

from benchmarks.harness.systems import ROOT
from electra_tf.apps.stablehlo import compile_environment
from tests.benchmarks import accelerator_steps
from tests.benchmarks.workloads import BY_HAND
from tests.parity import peers

compile_environment_needed = pytest.mark.skipif(
    not compile_environment.python().exists(),
    reason=f"There is no {compile_environment.python()}: run `make compile-env`.")


@pytest.fixture
def carried(tmp_path):
    accelerator_steps.write(tmp_path)
    return tmp_path


def run(module, *given, python=sys.executable):
    return subprocess.run([str(python), "-m", module, *given], cwd=ROOT, capture_output=True,
                          text=True, check=False, env=os.environ | {"HF_HUB_OFFLINE": "1"})


@pytest.mark.parametrize(("module", "given", "said"), [
    ("benchmarks.accelerator", ["--steps=/nowhere"], "--steps=/nowhere holds no step; where"),
    ("benchmarks.accelerator", ["--steps={}", "--cases=small-128x128"],
     "--cases: there is no step of small-128x128 in {}. There are: large, little"),
    ("benchmarks.accelerator", ["--steps={}", "--systems=mg"], "--systems: nothing begins with"),
    ("benchmarks.accelerator", ["--steps={}", "--peers_python=/nowhere"], "there is no /nowhere"),
    ("benchmarks.accelerator.export", ["--cases=small-64"], "no case is named 'small-64'"),
])
def test_what_cant_be_done_is_one_line(carried, module, given, said):
    done = run(module, *(flag.format(carried) for flag in given))
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert said.format(carried) in done.stderr


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    directory = tmp_path_factory.mktemp("steps")
    done = run("benchmarks.accelerator.export", "--cases=toy", f"--output_dir={directory}")
    assert done.returncode == 0, done.stderr
    assert sum(path.stat().st_size for path in directory.iterdir()) < 1e6
    return directory


@pytest.mark.slow
@peers.needed
@compile_environment_needed
def test_a_toy_is_measured_on_a_cpu_by_jax_and_by_pytorch(toy, tmp_path):
    done = run("benchmarks.accelerator", f"--steps={toy}", "--device=cpu", "--rounds=2",
               "--steps_per_turn=3", "--systems=ours,rate,hf-eager", f"--output_dir={tmp_path}",
               f"--peers_python={peers.PYTHON}", f"--profile={tmp_path}/trace",
               python=compile_environment.python())
    assert done.returncode == 0, done.stderr[-2000:]
    (case,) = json.loads((tmp_path / "results.json").read_text())["cases"]
    rows = {row["label"]: row for row in case["rows"]}
    assert len(rows) == 2 and all(row["failure"] == "" for row in rows.values())
    for row in rows.values():  # ln 1000 + 50 ln 2, less what fourteen steps learn.
        assert 38 < row["loss"] < 42.6
    assert "electra_tf bfloat16, StableHLO on JAX" in (tmp_path / "results.md").read_text()
    assert list((tmp_path / "trace" / "toy").rglob("*.xplane.pb"))


@pytest.mark.slow
@compile_environment_needed
def test_a_machine_without_a_card_is_told_so(toy, tmp_path):
    done = run("benchmarks.accelerator", f"--steps={toy}", "--systems=ours",
               f"--output_dir={tmp_path}", python=compile_environment.python())
    assert done.returncode == 1 and "nothing could be measured" in done.stderr
    assert "electra_tf failed: " in done.stdout and "cuda" in done.stdout


@pytest.mark.slow
@peers.needed
def test_the_peers_loss_is_the_same_without_a_mask():
    program = f"""
import json, sys, torch
from benchmarks.pretraining.hugging_face import JointModel
from benchmarks.pretraining.workload import workload_from
workload = workload_from(json.loads({json.dumps(json.dumps(dataclasses.asdict(
    dataclasses.replace(BY_HAND, vocab_size=150))))}))
torch.manual_seed(0)
model, ids = JointModel(workload).eval(), torch.randint(104, 150, (2, 8))
for valid in (None, torch.ones(2, 8, dtype=torch.bool)):
    torch.manual_seed(1)
    print(model(ids, valid).item())
"""
    done = subprocess.run([str(peers.PYTHON), "-c", program], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    without, masked = map(float, done.stdout.split())
    assert without == pytest.approx(masked, rel=1e-6)
