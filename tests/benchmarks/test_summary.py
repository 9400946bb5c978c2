"""Numbers of the table, computed by hand from made-up seconds."""

import json

import pytest
from matplotlib.image import imread

from benchmarks.pretraining import chart, report
from benchmarks.pretraining.interleave import Measurement
from benchmarks.pretraining.products import step_flops
from benchmarks.pretraining.summary import Spread, spread, summarise
from benchmarks.pretraining.systems import Role
from benchmarks.pretraining.training_flops import paper_flops_per_token
from tests.benchmarks.workloads import BY_HAND

HOST = {"processor": "Abacus", "cores": 2, "memory_gb": 16.0, "load_before": 0.04}
DEAD = Measurement(name="dead", role=Role.PEER, label="Model Garden bfloat16",
                   seconds=[0.001], failure="TypeError: no")


def measurement(name, role, seconds, label):
    return Measurement(name=name, role=role, label=label, seconds=seconds, start_seconds=12.6,
                       loss=44.96, peak_bytes=1_540_000_000, versions={"TensorFlow": "2.20"})


@pytest.fixture
def measured():
    # Two steps of 16 tokens a turn: 32 tokens in 2 s are 16 tokens/s.
    flops = 2 * step_flops(BY_HAND)
    return [
        measurement("ours", Role.OURS, [2.0, 1.6, 4.0], "electra_tf bfloat16"),
        DEAD,
        measurement("slow", Role.PEER, [8.0, 8.0, 8.0], "Hugging Face eager"),
        measurement("fast", Role.PEER, [3.2, 3.2, 6.4], "Hugging Face torch.compile"),
        measurement("rate-1", Role.RATE, [flops / 1e5, flops / 4e5, flops / 2e5], "rate PyTorch"),
        measurement("rate-2", Role.RATE, [flops / 1.5e5], "rate TensorFlow"),
    ]


@pytest.fixture
def summary(measured):
    return summarise(BY_HAND, measured, rounds=3, steps=2)


def test_speed_is_the_median_of_the_turns_with_their_range():
    assert spread(32, [2.0, 1.6, 4.0]) == Spread(median=16.0, low=8.0, high=20.0)
    assert spread(12, [1.0, 2.0]) == Spread(median=9.0, low=6.0, high=12.0)


def test_rows_are_fastest_first_and_failures_last(summary):
    assert [row.label for row in summary.rows] == [
        "electra_tf bfloat16", "Hugging Face torch.compile", "Hugging Face eager",
        "Model Garden bfloat16"]
    assert [row.ours for row in summary.rows] == [True, False, False, False]


def test_ratios_are_to_the_fastest_peer_that_did_not_fail(summary):
    assert [row.ratio for row in summary.rows] == [pytest.approx(1.6), 1.0, pytest.approx(0.4),
                                                   None]


def test_the_machine_rate_is_the_best_median(summary):
    assert summary.rates == {"PyTorch": pytest.approx(2e5), "TensorFlow": pytest.approx(1.5e5)}
    assert summary.machine_rate == pytest.approx(2e5)


def test_fractions_are_flops_per_second_over_the_rate(summary):
    ours = summary.rows[0]
    # Products per token: 594 + 120 + 3/8 * 216 = 795 multiplications and, in attention,
    # 2 * (2 * 6 + 4) * 8 = 256; times two FLOPs, forward and twice that backward.
    assert summary.products_flops_per_token == 3 * 2 * (795 + 256)
    assert ours.products_fraction == pytest.approx(16 * 6306 / 2e5)
    assert ours.paper_fraction == pytest.approx(16 * paper_flops_per_token(BY_HAND) / 2e5)


def test_without_peers_and_rates_there_are_speeds_alone(measured):
    row, = summarise(BY_HAND, measured[:1], rounds=3, steps=2).rows
    assert row.tokens_per_second.median == 16.0
    assert (row.ratio, row.products_fraction, row.paper_fraction) == (None, None, None)


def test_the_table_in_plain_text(summary):
    lines = report.plain_text(summary).splitlines()
    assert lines[0] == "toy: 2 x 8 tokens, 3 of each 8 masked, 1 cores; 3 rounds of 2 steps"
    assert lines[3] == "TensorFlow 2.20"
    assert lines[5].split("  ")[0] == "system"
    first, failed = lines[7].split(), lines[10].split()
    assert first == ["electra_tf", "bfloat16", "16", "8-20", "1.60", "50%",
                     f"{summary.rows[0].paper_fraction:.0%}", "13", "1.5", "45.0"]
    assert failed == ["Model", "Garden", "bfloat16", "failed", *["-"] * 7]
    assert lines[11] == "Model Garden bfloat16 failed: TypeError: no"
    assert len({len(line) for line in lines[5:10]}) == 1


def test_the_page_in_markdown(summary):
    page = report.markdown([summary], HOST, ["A note."])
    table = [line for line in page.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 4
    assert len({line.count("|") for line in table}) == 1
    assert table[2].startswith("| electra_tf bfloat16 | 16 | 8-20 | 1.60 | 50% |")
    assert "Abacus, 2 cores, 16 GB; load before the start 0.04" in page
    assert page.endswith("- A note.\n")


def test_the_json_has_every_turn(summary, measured):
    data = json.loads(report.to_json([summary], {"toy": measured}, HOST, []))
    case, = data["cases"]
    assert case["measurements"][0]["seconds"] == [2.0, 1.6, 4.0]
    assert case["rows"][0]["tokens_per_second"] == {"median": 16.0, "low": 8.0, "high": 20.0}
    assert case["machine_rate"] == pytest.approx(2e5)


def test_the_chart_has_a_panel_per_case_and_a_bar_per_system(summary, tmp_path):
    chart.draw_bars([summary], tmp_path / "one.png")
    chart.draw_bars([summary, summary], tmp_path / "two.png")
    # 0.9 inches and 0.34 for each of the three systems that didn't fail, at 130 dots per inch.
    assert imread(tmp_path / "one.png").shape[:2] == (int(130 * 1.92), 9 * 130)
    assert imread(tmp_path / "two.png").shape[0] == int(130 * 2 * 1.92)
