"""The table of growth: which cells are tried and what a row says."""

import pytest

from benchmarks.pretraining import cases, growth
from benchmarks.pretraining.interleave import Measurement
from benchmarks.pretraining.systems import Role
from electra_tf.platform.errors import UserError


def test_memory_is_predicted_from_the_two_largest_batches():
    assert growth.predicted_bytes([], 8) is None
    assert growth.predicted_bytes([(8, 2e9)], 32) == 8e9
    assert growth.predicted_bytes([(4, 9e9), (8, 2e9), (32, 5e9)], 128) == 17e9


def test_a_cell_that_would_not_fit_is_not_tried(monkeypatch):
    tried = []

    def measure(case, *, precision, rounds):
        tried.append(case)
        return Measurement(name="ours", role=Role.OURS, label="", seconds=[2.0, 1.0, 4.0],
                           peak_bytes=3_000_000_000)

    monkeypatch.setattr(growth, "measure_alone", measure)
    monkeypatch.setattr(growth.host, "fits", lambda needed: needed < 10e9)
    first = growth.measure(
        growth.Cell(case="small-8x128", length=128, batch=8, recompute=False), [], "bfloat16", 3)
    second = growth.measure(
        growth.Cell(case="small-32x128-recompute", length=128, batch=32, recompute=True), [first],
        "bfloat16", 3)
    assert tried == ["small-8x128"]
    assert first.tokens_per_second == 512.0
    assert first.row()[-1] == "3.0"
    assert second.row() == ("128", "32", "recomputed", "-", first.row()[4], "-",
                            "about 12, not tried")


def test_any_size_batch_and_length_is_a_case():
    case = cases.case_of("base-8x1024-recompute")
    config = case.config(cases.Setting(precision="float32"))
    assert (case.model_size, case.batch, case.length) == ("base", 8, 1024)
    assert config.runtime.gradient_checkpointing
    assert config.model.max_position_embeddings == 1024
    assert not cases.case_of("base-8x128").config(
        cases.Setting(precision="float32")).runtime.gradient_checkpointing
    for name in ("base-0x128", "huge-8x128", "base-8", "base-8x128-fast"):
        with pytest.raises(UserError, match=f"no case is named '{name}'"):
            cases.case_of(name)
