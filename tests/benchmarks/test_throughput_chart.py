"""The throughputs of the README's chart are those of the experiment log."""

from benchmarks.throughput_chart import RECORDED
from experiments.log_index import LOG

ENTRIES = {"AVX-512 bfloat16": "2026-11-24_training_step_speed",
           "AVX2 (emulated), float32": "2026-11-26_onednn_with_avx2"}


def test_the_chart_shows_numbers_of_the_log():
    for machine, entry in ENTRIES.items():
        text = (LOG / f"{entry}.md").read_text(encoding="utf-8")
        speeds = [speed for systems in RECORDED[machine].values() for speed in systems.values()]
        assert [speed for speed in speeds if f"{speed:,}" not in text] == []
    assert ENTRIES.keys() == RECORDED.keys()
