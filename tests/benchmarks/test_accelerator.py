"""On an accelerator a turn has the card alone; shares of its peak are those counted by hand."""

import pytest

from benchmarks.accelerator import report, systems
from benchmarks.accelerator.rounds import Rounds
from benchmarks.harness.process import WorkerFailed
from benchmarks.harness.systems import ROOT
from benchmarks.pretraining.interleave import Measurement
from benchmarks.pretraining.summary import summarise
from benchmarks.pretraining.systems import Role
from benchmarks.pretraining.training_flops import paper_flops_per_token, product_flops_per_token
from tests.benchmarks.workloads import BY_HAND

H100 = "NVIDIA H100 80GB HBM3"
HOST = {"processor": "Abacus", "cores": 2, "memory_gb": 16.0, "load_before": 0.04}


class FakeWorker:
    """Answers by rote."""

    def __init__(self, name, log, replies):
        self.name, self.log, self.replies, self.closed = name, log, replies, False
        log.append(name)

    def ask(self, request):
        assert not self.closed
        if "setting" in request:
            return {"label": "bfloat16", "versions": {"fake": "1"}, "accelerator": H100}
        if request["steps"] == 9 and self.replies:
            reply = self.replies.pop(0)
            if isinstance(reply, str):
                raise WorkerFailed(reply)
            return reply
        return {"seconds": 0.5, "loss": 45.0, "peak_bytes": 10}

    def close(self):
        self.closed = True


def measure(replies):
    log, workers = [], []

    def launch(system):
        assert all(worker.closed for worker in workers)  # The card is free.
        workers.append(FakeWorker(system.name, log, replies.get(system.name, [])))
        return workers[-1]

    rounds = Rounds(workload=BY_HAND, rounds=3, steps=9, launch=launch, say=lambda line: None)
    found = rounds.measure(systems.chosen("cpu", ["ours", "rate", "hf-eager"]))
    return log, {measurement.name: measurement for measurement in found}


def test_every_turn_is_a_process_alone_and_turns_rotate():
    turn = {"seconds": 0.25, "loss": 44.0, "peak_bytes": 30}
    log, found = measure({"ours": [turn]})
    assert log == ["ours", "rate", "hf-eager", "rate", "hf-eager", "ours", "hf-eager", "ours",
                   "rate"]
    ours = found["ours"]
    assert (ours.seconds, ours.peak_bytes, ours.accelerator) == ([0.25, 0.5, 0.5], 30, H100)
    assert ours.label == "electra_tf bfloat16" and ours.start_seconds < 1


@pytest.mark.parametrize(("reply", "failure"), [
    ("OutOfMemoryError: CUDA out of memory.", "OutOfMemoryError: CUDA out of memory."),
    ({"seconds": 0.5, "loss": float("nan"), "peak_bytes": 1}, "the loss is nan")])
def test_what_fails_has_no_further_turn_and_the_others_go_on(reply, failure):
    log, found = measure({"hf-eager": [reply]})
    assert log.count("hf-eager") == 1 and log.count("ours") == 3
    assert found["hf-eager"].failure == failure and len(found["rate"].seconds) == 3


def test_a_card_is_visible_and_the_cpu_hides_all(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,4")
    assert systems._variables("cuda", ROOT)["CUDA_VISIBLE_DEVICES"] == "3"
    assert systems._variables("cpu", ROOT)["CUDA_VISIBLE_DEVICES"] == "-1"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert systems._variables("cuda", ROOT)["CUDA_VISIBLE_DEVICES"] == "0"


def measured(name, role, seconds, **fields):
    return Measurement(name=name, role=role, label=name, seconds=seconds, start_seconds=61.2,
                       loss=44.96, peak_bytes=9_140_000_000, versions={"JAX": "0.10.2"}, **fields)


@pytest.fixture
def summary():
    """Two steps of 16 tokens a turn: 32 tokens in 2 s are 16 tokens/s."""
    return summarise(BY_HAND, [
        measured("ours", Role.OURS, [2.0, 1.6, 4.0], accelerator=H100),
        measured("slow", Role.PEER, [4.0, 4.0, 4.0]),
        measured("eager", Role.PEER, [], failure="OutOfMemoryError: CUDA out of memory."),
        measured("graphs", Role.PEER, [], failure="TypeError: no")], rounds=3, steps=2)


def test_a_speed_is_a_share_of_the_peak_by_both_counts(summary):
    # A card whose peak is a hundred times what 16 tokens/s take by products.
    card = report.Card(name="Abacus", peak=1600 * product_flops_per_token(BY_HAND))
    _, ours, slow, eager, graphs = report._table(summary, card)
    paper = 16 * paper_flops_per_token(BY_HAND) / card.peak
    assert ours == ("ours", "16", "8-20", "2.00", "1.0%", f"{paper:.1%}", "-", "61", "9.1", "45.0")
    assert slow[1:5] == ("8", "8-8", "1.00", "0.5%")
    assert (eager[1], graphs[1]) == ("out of memory", "failed")
    text, page = report.plain_text(summary, card), report.markdown([summary], card, HOST)
    for said in (text, page):
        assert "graphs failed: TypeError: no" in said and "Abacus: dense bfloat16 peak" in said
    assert "| ours | 16 | 8-20 | 2.00 | 1.0% |" in page


@pytest.mark.parametrize(("names", "peak_tflops", "peak", "said"), [
    (["", H100], None, 989.4e12, f"{H100}: dense bfloat16 peak 989.4 TFLOP/s"),
    ([H100], 800.0, 800e12, f"{H100}: dense bfloat16 peak 800.0 TFLOP/s"),
    (["Abacus 9"], 2.0, 2e12, "Abacus 9: dense bfloat16 peak 2.0 TFLOP/s"),
    (["Abacus 9"], None, None, "Abacus 9: its peak isn't in electra_tf/modeling/device_peaks.py; "
                               "--peak_tflops gives one"),
    (["", ""], None, None, "the CPU, to try the benchmark: no share of a peak")])
def test_a_peak_is_the_tables_or_the_flags_or_left_out(summary, names, peak_tflops, peak, said):
    card = report.card_of(names, peak_tflops)
    assert (card.peak, card.line) == (peak, said)
    shares = report._table(summary, card)[1][4:6]
    assert (shares == ("-", "-")) == (peak is None)
