"""The pre-training comparison: matmuls and shares against a count by hand, cases, our step."""

import json
import shutil
import types

import pytest

from benchmarks.pretraining import __main__ as pretraining
from benchmarks.pretraining.cases import CASES, workload_of
from benchmarks.pretraining.matmuls import step_flops
from tests.support import python_process, sources

ROOT = sources.ROOT


def test_matmuls_of_a_toy_are_those_counted_by_hand():
    work = workload_of("toy")
    # 2 x 16 tokens, 2 x 2 masked positions; both networks have two layers.
    assert sorted(work.matmuls) == sorted([
        (32, 32, 32, 9),  # Discriminator: query, key, value, output; its head,
        (32, 32, 64, 2),  # feed-forward in
        (32, 64, 32, 2),  # and out,
        (32, 16, 32, 1),  # embeddings to hidden size,
        (32, 32, 1, 1),  # its logit.
        (32, 16, 16, 8),  # Generator: no projection of the embeddings.
        (32, 16, 64, 2),
        (32, 64, 16, 2),
        (4, 16, 16, 1),  # Its head on the masked positions,
        (4, 16, 1000, 1),  # and the vocabulary.
    ])
    # Multiplications per token: 9*1024 + 4*2048 + 512 + 32 = 17952 and 8*256 + 4*1024 = 6144;
    # per masked position 256 + 16000 = 16256. Two FLOPs each, in three forms.
    assert step_flops(work) == 3 * 2 * (32 * (17952 + 6144) + 4 * 16256)


@pytest.mark.parametrize("name", [*CASES, "toy"])
def test_with_attention_they_are_what_the_program_counts(name):
    work = workload_of(name)
    attention = sum(3 * 4 * network.num_layers * network.hidden_size * work.length
                    for network in (work.discriminator, work.generator))
    assert step_flops(work) / (work.batch * work.length) + attention == pytest.approx(
        work.token_flops, rel=1e-12)


def measured(label, seconds, **fields):
    return [{"seconds": value, "label": label, "peak_gb": 1.04, "loss": 44.96,
             "start_seconds": 12.6} | fields for value in seconds]


def test_speeds_are_ranked_and_compared_with_the_measured_limit():
    """In the case `toy`, a step has 2 x 16 tokens: 32 tokens in 2 s are 16 tokens/s."""
    work = workload_of("toy")
    flops, count = step_flops(work), work.token_flops
    lines = pretraining.section("toy", {
        "hf-float32": measured("slow", [8.0, 8.0, 8.0]),
        "hf-bfloat16": measured("fast", [3.2, 3.2, 6.4]),
        "ours-float32": measured("ours", [2.0, 1.6, 4.0]),
        "hf-float32-compiled": measured("dead", [1.0], failure="ended with status 1"),
        "matmuls-bfloat16": measured("", [flops / 1e5, flops / 4e5, flops / 2e5]),
        "matmuls-float32": measured("", [flops / 1.5e5])})
    _, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")]
                   for line in lines if line.startswith("|"))
    assert rows[0] == ["ours", "16 (8 to 20)", "1.60", "0", f"{16 * count / 2e5:.1%}",
                       "13", "1.0", "45.0"]
    assert [(row[0], row[2]) for row in rows[1:]] == [("fast", "1.00"), ("slow", "0.40")]
    assert lines[-1] == "- hf-float32-compiled failed: ended with status 1"
    *_, row, _ = pretraining.section("toy", {"ours-float32": measured("ours", [2.0])})
    assert [cell.strip() for cell in row.split("|")][3:6] == ["-", "0", "-"]


SMALL_SYSTEM = """
import os, time
from benchmarks.pretraining import system

def prepare(work, precision):
    def step():
        with open("LOG", "a") as file:
            print(precision, os.getpid(), file=file)
        print("half a line", end="")
        if precision == "sleep":
            time.sleep(600)
        if precision == "error":
            raise ValueError("no such shape")
        return {"label": work.case, "loss": float("nan") if precision == "nan" else 45.0}
    return step

system.run(prepare)
"""


@pytest.fixture
def measure(tmp_path, monkeypatch):
    """Measures systems of one module, which are named by what they do; returns lines and calls."""
    (tmp_path / "log.txt").touch()
    module = SMALL_SYSTEM.replace("LOG", str(tmp_path / "log.txt"))
    (tmp_path / "benchmarks" / "pretraining").mkdir(parents=True)
    (tmp_path / "benchmarks" / "__init__.py").touch()  # Otherwise the clone's package is found.
    for path in (ROOT / "benchmarks" / "pretraining").glob("*.py"):
        shutil.copy(path, tmp_path / "benchmarks" / "pretraining")
    (tmp_path / "benchmarks" / "pretraining" / "ours.py").write_text(module)
    (tmp_path / "electra_tf").symlink_to(ROOT / "electra_tf")
    monkeypatch.setattr(pretraining, "ROOT", tmp_path)

    def measure(names, **values):
        monkeypatch.setattr(pretraining, "SYSTEMS", {
            name: pretraining.System("ours", {"precision": name}) for name in names})
        monkeypatch.setattr(pretraining.flags, "FLAGS", types.SimpleNamespace(
            **{"rounds": 3, "steps": 2, "timeout": 60, "peers_python": ""} | values))
        lines = pretraining.measure(names, types.SimpleNamespace(case="toy", threads=1))
        return lines, [line.split() for line in (tmp_path / "log.txt").read_text().splitlines()]

    return measure


def test_rounds_are_interleaved_and_every_round_is_a_new_process(measure):
    lines, calls = measure("abc")
    # One call with the start, two to warm up, two that are measured.
    assert [name for name, _ in calls] == [name for name in "abc" "bca" "cab" for _ in range(5)]
    assert len({process for _, process in calls}) == 9
    assert [len(rounds) for rounds in lines.values()] == [3, 3, 3]
    assert all(line["start_seconds"] > line["seconds"] > 0 and line["peak_gb"] > 0.01
               and line["label"] == "toy" for rounds in lines.values() for line in rounds)


def test_a_system_that_fails_is_not_measured_again(measure):
    lines, _ = measure(["nan", "error", "sleep"], timeout=3)
    assert lines == {"nan": [{"failure": "the loss is nan"}],
                     "error": [{"failure": "ended with status 1"}],
                     "sleep": [{"failure": "no line within 3 s"}]}


def test_systems_in_pytorchs_environment_import_nothing_that_it_lacks():
    modules = ["benchmarks.pretraining.hugging_face", "benchmarks.pretraining.matmuls",
               "benchmarks.real_encoder.pytorch_loop", "benchmarks.serving"]
    # Others are imported inside functions.
    _, libraries = sources.closure(*modules, inside_functions=lambda name: False)
    assert libraries == {"numpy", "torch", "transformers"}


@pytest.mark.slow
def test_our_system_trains_a_toy():
    settings = {"work": vars(workload_of("toy")), "precision": "float32", "repeat": 3}
    printed = python_process.run(
        "-m", "benchmarks.pretraining.ours", json.dumps(settings, default=vars)).stdout
    line = json.loads(printed[printed.index("{"):])
    assert line["label"].startswith("electra_tf float32, XLA o")
    assert line["loss"] == pytest.approx(41.57, abs=10.0)  # ln 1000 + 50 ln 2, and four steps.
    assert line["start_seconds"] > line["seconds"] > 0 and line["peak_gb"] > 0.1
