"""The pre-training comparison: matmuls and shares against a count by hand, cases."""

import dataclasses

import pytest

from benchmarks.harness.turns import Measurement, Role, System
from benchmarks.pretraining import cases, report
from benchmarks.pretraining.matmuls import Matmul, step_flops, step_matmuls, step_of
from benchmarks.pretraining.workload import EncoderSizes, StepOptions, Workload
from electra_tf.platform.errors import UserError

BY_HAND = Workload(
    case="toy", batch=2, length=8, predictions=3, vocab_size=50, threads=1,
    discriminator=EncoderSizes(embedding_size=4, hidden_size=6, num_layers=2, num_heads=2,
                          intermediate_size=10),
    generator=EncoderSizes(embedding_size=4, hidden_size=4, num_layers=1, num_heads=1,
                      intermediate_size=7))


def test_matmuls_of_a_toy_are_those_counted_by_hand():
    # 2 x 8 tokens, 2 x 3 masked positions.
    assert [(matmul.rows, matmul.inputs, matmul.outputs, matmul.count)
            for matmul in step_matmuls(BY_HAND)] == [
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
    ]
    # Multiplications per token: 8*36 + 2*2*60 + 24 + 36 + 6 = 594 and 4*16 + 2*28 = 120;
    # per masked position 16 + 200 = 216. Two FLOPs each, in three forms.
    assert step_flops(BY_HAND) == 3 * 2 * (16 * (594 + 120) + 6 * 216)


def test_with_attention_they_are_what_the_program_counts():
    for name in cases.CASES:
        work = cases.workload_of(name)
        attention = sum(3 * 4 * network.num_layers * network.hidden_size * work.length
                        for network in (work.discriminator, work.generator))
        assert step_flops(work) / work.tokens + attention == pytest.approx(
            report.flops_per_token(work)["matmuls"], rel=1e-12)


def test_every_matmul_runs_as_often_as_the_step_needs_it():
    for count, copies in ((1, 1), (2, 2), (3, 3), (4, 4), (12, 4), (49, 1)):
        assert Matmul(rows=1, inputs=1, outputs=1, count=count).copies == copies
    ran = []

    def three_forms(inputs, weights, gradients):
        shapes = [(*x, w[1]) for x, w, dy in zip(inputs, weights, gradients, strict=True)
                  if (x[1], x[0], w[1]) == (w[0], *dy)]
        return lambda: ran.extend(shapes)

    step_of(BY_HAND, lambda seed, rows, columns: (rows, columns), three_forms)()
    assert sorted(ran) == sorted((matmul.rows, matmul.inputs, matmul.outputs)
                                 for matmul in step_matmuls(BY_HAND) for _ in range(matmul.count))


def timed(name, seconds, role=Role.BASELINE, **fields):
    """A measurement of one turn per round."""
    replies = [{"seconds": value, "loss": 44.96, "peak_bytes": 10**9} for value in seconds]
    return Measurement(system=System(name=name, title=name, module="", role=role), label=name,
                       turns={"steps": replies}, **fields)


@pytest.fixture
def result():
    """Two steps of 16 tokens a turn: 32 tokens in 2 s are 16 tokens/s."""
    flops = 2 * step_flops(BY_HAND)
    return report.CaseResult(workload=BY_HAND, steps=2, measured=[
        timed("ours", [2.0, 1.6, 4.0], Role.OURS, start_seconds=12.6),
        timed("dead", [0.001], failure="TypeError: no"), timed("slow", [8.0, 8.0, 8.0]),
        timed("fast", [3.2, 3.2, 6.4]),
        timed("matmuls TensorFlow", [flops / 1.5e5], Role.LIMIT),
        timed("matmuls PyTorch", [flops / 1e5, flops / 4e5, flops / 2e5], Role.LIMIT)])


def cells(result):
    return [[cell.strip() for cell in line.strip("|").split("|")]
            for line in report.section(result) if line.startswith("| ")]


def test_speeds_are_ranked_and_compared_with_the_measured_limit(result):
    assert list(result.limits.items()) == [
        ("PyTorch", pytest.approx(2e5)), ("TensorFlow", pytest.approx(1.5e5))]
    # Per token: 594 + 120 + 3/8 * 216 = 795 multiplications and, in attention,
    # 2 * (2 * 6 + 4) * 8 = 256; times two FLOPs, forward and twice that backward.
    counts = report.flops_per_token(BY_HAND)
    assert counts["matmuls"] == 3 * 2 * (795 + 256) == 6306
    heads, *rows = cells(result)
    assert [row[0] for row in rows] == ["ours", "fast", "slow", "dead"]
    assert rows[0] == ["ours", "16 (8 to 20)", "1.60", "0", f"{16 * 6306 / 2e5:.1%}",
                       f"{16 * counts['paper'] / 2e5:.1%}", "13", "1.0", "45.0"]
    assert [row[heads.index("x fastest baseline")] for row in rows] == ["1.60", "1.00", "0.40", "-"]
    assert "- dead failed: TypeError: no" in report.section(result)


def test_a_known_peak_adds_columns_and_missing_limits_leave_cells_empty(result):
    ours = dataclasses.replace(result.measured[0], accelerator="NVIDIA H100")
    alone = dataclasses.replace(result, measured=[ours])
    heads, row = cells(alone)
    assert row[heads.index("of peak: matmuls")] == f"{16 * 6306 / 989.4e12:.1%}"
    assert row[heads.index("matmuls")] == row[heads.index("x fastest baseline")] == "-"
    assert "- NVIDIA H100: dense bfloat16 peak 989.4 TFLOP/s" in report.section(alone)


def test_any_size_batch_and_length_is_a_case():
    case = cases.case_of("base-8x1024-recompute")
    config = case.config(StepOptions(precision="float32"))
    assert (case.model_size, case.batch, case.length) == ("base", 8, 1024)
    assert config.runtime.gradient_checkpointing
    assert config.model.max_position_embeddings == 1024
    for name in ("base-0x128", "huge-8x128", "base-8", "base-8x128-fast"):
        with pytest.raises(UserError, match=f"no case is named '{name}'"):
            cases.case_of(name)
