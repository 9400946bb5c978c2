"""The pre-training comparison: matmuls and shares against a count by hand, cases, our step."""

import json
import types

import pytest

from benchmarks.driver import LIMIT, OURS, System
from benchmarks.pretraining import __main__ as pretraining
from benchmarks.pretraining.cases import CASES, config_of, workload_of
from benchmarks.pretraining.matmuls import Matmul, step_flops, step_matmuls
from tests.support import python_process

BY_HAND = types.SimpleNamespace(
    batch=2, length=8, predictions=3,
    discriminator=types.SimpleNamespace(embedding_size=4, hidden_size=6, num_layers=2,
                                        intermediate_size=10, vocab_size=50),
    generator=types.SimpleNamespace(embedding_size=4, hidden_size=4, num_layers=1,
                                    intermediate_size=7))


def test_matmuls_of_a_toy_are_those_counted_by_hand():
    # 2 x 8 tokens, 2 x 3 masked positions.
    assert sorted(step_matmuls(BY_HAND)) == sorted([
        (16, 6, 6, 8),  # Discriminator: query, key, value, output in 2 layers,
        (16, 6, 10, 2),  # feed-forward in
        (16, 10, 6, 2),  # and out,
        (16, 4, 6, 1),  # embeddings to hidden size,
        (16, 6, 6, 1),  # its head,
        (16, 6, 1, 1),
        (16, 4, 4, 4),  # Generator: one layer, no projection of the embeddings.
        (16, 4, 7, 1),
        (16, 7, 4, 1),
        (6, 4, 4, 1),  # Its head on the masked positions,
        (6, 4, 50, 1),  # and the vocabulary.
    ])
    # Multiplications per token: 8*36 + 2*2*60 + 24 + 36 + 6 = 594 and 4*16 + 2*28 = 120;
    # per masked position 16 + 200 = 216. Two FLOPs each, in three forms.
    assert step_flops(BY_HAND) == 3 * 2 * (16 * (594 + 120) + 6 * 216)
    assert [Matmul(1, 1, 1, count).copies for count in (1, 2, 3, 4, 12, 49)] == [1, 2, 3, 4, 4, 1]


@pytest.mark.parametrize("name", [*CASES, "toy"])
def test_with_attention_they_are_what_the_program_counts(name):
    work = workload_of(name)
    attention = sum(3 * 4 * network.num_layers * network.hidden_size * work.length
                    for network in (work.discriminator, work.generator))
    assert step_flops(work) / (work.batch * work.length) + attention == pytest.approx(
        pretraining.flops_per_token(config_of(name))["matmuls"], rel=1e-12)


def measured(name, seconds, role="baseline", **fields):
    return System(name=name, module="none", role=role, settings={}, lines=[
        {"seconds": value, "label": name, "peak_gb": 1.04, "loss": 44.96, "start_seconds": 12.6}
        | fields for value in seconds])


def test_speeds_are_ranked_and_compared_with_the_measured_limit():
    """In the case `toy`, a step has 2 x 16 tokens: 32 tokens in 2 s are 16 tokens/s."""
    flops, counts = step_flops(workload_of("toy")), pretraining.flops_per_token(config_of("toy"))
    lines = pretraining.section("toy", [
        measured("slow", [8.0, 8.0, 8.0]), measured("fast", [3.2, 3.2, 6.4]),
        measured("ours", [2.0, 1.6, 4.0], OURS), measured("dead", [1.0], failure="TypeError: no"),
        measured("bfloat16", [flops / 1e5, flops / 4e5, flops / 2e5], LIMIT),
        measured("float32", [flops / 1.5e5], LIMIT)])
    heads, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")]
                       for line in lines if line.startswith("|"))
    assert [row[0] for row in rows] == ["ours", "fast", "slow", "dead"]
    assert rows[0] == ["ours", "16 (8 to 20)", "1.60", "0", f"{16 * counts['matmuls'] / 2e5:.1%}",
                       f"{16 * counts['paper'] / 2e5:.1%}", "13", "1.0", "45.0"]
    assert [row[heads.index("x fastest baseline")] for row in rows] == ["1.60", "1.00", "0.40", "-"]
    assert "- dead failed: TypeError: no" in lines
    heads, _, row = (line for line in pretraining.section("toy", [
        measured("ours", [2.0], OURS)]) if line.startswith("|"))
    assert "matmuls" not in heads and row.split("|")[3].strip() == "-"


@pytest.mark.slow
def test_our_system_trains_a_toy():
    settings = {"work": vars(workload_of("toy")), "precision": "float32", "repeat": 3}
    printed = python_process.run(
        "-m", "benchmarks.pretraining.ours", json.dumps(settings, default=vars)).stdout
    line = json.loads(printed[printed.index("{"):])
    assert line["label"].startswith("electra_tf float32, XLA o")
    assert line["loss"] == pytest.approx(41.57, abs=10.0)  # ln 1000 + 50 ln 2, and four steps.
    assert line["start_seconds"] > line["seconds"] > 0 and line["peak_gb"] > 0.1
