"""Serving's benchmark: texts, turns, tables; our worker answers a tiny model, no peer is needed."""

import itertools
import json

import pytest

from benchmarks.harness import host
from benchmarks.harness.process import WorkerFailed
from benchmarks.serving import models, report, systems, texts
from benchmarks.serving.systems import System
from benchmarks.serving.turns import Turns
from benchmarks.serving.workload import Workload, write_texts
from electra_tf.platform.errors import UserError
from electra_tf.text.tokenization import TextSettings
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, "a", "film", "##s", "good", "dull"))
TOKENIZER = Tokenizer(TextSettings(vocabulary=VOCABULARY))
SENTENCES = ["a good film", "films films", "dull"]
MACHINE = {"processor": "Abacus", "cores": 2, "load_before": 0.04}
OURS = System(name="ours", module="ours", precision="float32")
PEER = System(name="hf", module="hugging_face", precision="float32")
ROUGH = System(name="rough", module="hugging_face", precision="bfloat16")


@pytest.mark.parametrize("tokens", [3, 4, 7])
def test_texts_are_cut_to_exactly_so_many_tokens(tokens):
    cut = texts.cut(SENTENCES, TOKENIZER, tokens=tokens, count=9)
    assert len(cut) == 9
    assert texts.lengths(cut, TOKENIZER) == [tokens] * 9


def test_a_word_that_is_too_long_for_the_rest_is_passed_over():
    # After "a good film" one piece is missing, and "films" has two.
    assert texts.cut(SENTENCES, TOKENIZER, tokens=6, count=2) == ["a good film dull"] * 2


def test_words_that_are_all_in_pieces_are_refused():
    with pytest.raises(UserError, match="give the --vocab_file that fits"):
        texts.cut(["films films"], TOKENIZER, tokens=5, count=1)


def test_percentiles_are_values_that_occurred():
    calls = [float(number) for number in range(200, 0, -1)]
    assert report.percentile(calls, 0.5) == 100.0
    assert report.percentile(calls, 0.99) == 198.0
    assert report.percentile([3.0], 0.99) == 3.0


class FakeWorker:
    """Answers with fixed probabilities; every call takes as long; fails at a request, from 1."""

    def __init__(self, system, log, *, seconds, shares, tokens, fails_at):
        self.system, self.log, self.seconds, self.shares = system, log, seconds, shares
        self.tokens, self.countdown = tokens, itertools.count(1)
        self.fails_at = fails_at

    def ask(self, request):
        if next(self.countdown) == self.fails_at:
            raise WorkerFailed("ran out of luck")
        if "model" in request:
            return {"label": self.system.precision, "versions": {"fake": "1"}}
        if request["what"] == "check":
            return {"probabilities": [[share, 1 - share] for share in self.shares],
                    "tokens": self.tokens}
        self.log.append((self.system.name, request["batch"]))
        return {"seconds": [self.seconds] * (2 if request["batch"] == 1 else 1)}

    def close(self):
        """Nothing is held."""


def measure(given, *, rounds=2, shares=None, tokens=None, fails_at=None):
    """Systems with seconds per call -> measurements, and the turns in their order."""
    log = []

    def launch(system):
        return FakeWorker(
            system, log, seconds=given[system], shares=(shares or {}).get(system, [0.2, 0.4]),
            tokens=tokens, fails_at=(fails_at or {}).get(system))

    turns = Turns(tokens={"sst2": [5, 8]}, rounds=rounds, launch=launch, say=lambda line: None,
                  workload_of=lambda system: Workload(
                      model="", texts="", precision=system.precision, intra_op=1, threads=1))
    return turns.measure(list(given)), log


def test_systems_warm_up_one_by_one_and_then_take_turns_that_rotate():
    _, log = measure({OURS: 0.1, PEER: 0.2})
    assert log[:4] == [("ours", 1), ("ours", 32), ("hf", 1), ("hf", 32)]
    assert log[4:] == [("ours", 1), ("ours", 32), ("hf", 1), ("hf", 32),
                       ("hf", 1), ("hf", 32), ("ours", 1), ("ours", 32)]


def test_ratios_are_to_the_fastest_peer():
    measured, _ = measure({OURS: 0.1, PEER: 0.2, ROUGH: 0.15},
                          shares={ROUGH: [0.2, 0.41]})
    page = report.page(measured, {"sst2": [5, 8]}, machine=MACHINE, model_size="small", rounds=2)
    assert "6.5 tokens on average, 5 to 8" in page
    assert ("| electra_tf, float32 | 100.00 (100.00 to 100.00) | 1.50 | 100.00 (100.00 to 100.00) "
            "| 1.50 | 20 (20 to 20) | 1.50 |") in page
    assert "| Hugging Face, float32 | 200.00 (200.00 to 200.00) | 0.75 |" in page
    assert "- Hugging Face, bfloat16: 1.0e-02" in page


def test_systems_that_do_not_answer_the_same_are_not_measured():
    with pytest.raises(UserError, match="Hugging Face, float32 and electra_tf, float32 should "
                                        "answer the same, but probabilities differ by 0.1;"):
        measure({OURS: 0.1, PEER: 0.2}, shares={PEER: [0.2, 0.5]})


def test_a_tokenizer_that_reads_other_tokens_is_refused():
    with pytest.raises(UserError, match="reads other tokens in the texts of case sst2"):
        measure({OURS: 0.1}, tokens=[5, 9])


@pytest.mark.parametrize(("request_number", "turns"), [
    (1, 0), (2, 0), (4, 0), (5, 0), (6, 1), (7, 1), (8, 2)])
def test_a_dying_worker_becomes_a_row_and_the_others_go_on(request_number, turns):
    measured, _ = measure({OURS: 0.1, PEER: 0.2}, fails_at={PEER: request_number})
    assert [one.failure for one in measured] == ["", "ran out of luck"]
    given = [len(one.seconds.get("sst2", {}).get(1, [])) for one in measured]
    assert given == [2, turns]
    page = report.page(measured, {"sst2": [5, 8]}, machine=MACHINE, model_size="small", rounds=2)
    assert "(failed: ran out of luck) | " + ("200.00" if turns else "-") in page


def test_systems_are_picked_by_the_beginning_of_their_names():
    def names(*beginnings, peers=True):
        return [one.name for one in systems.chosen(beginnings, with_peers_environment=peers)]

    assert names("ours-f", "hf-b") == [
        "ours-float32-frozen", "ours-float32", "hf-bfloat16", "hf-bfloat16-autocast"]
    assert len(names()) == 8
    assert all(name.startswith("ours") for name in names(peers=False))
    with pytest.raises(UserError, match="--systems: nothing begins with 'jax'"):
        names("jax")


@pytest.mark.slow
def test_our_worker_serves_what_the_export_writes(tmp_path):
    """Every step of the command, with a model of two layers and no peer."""
    asked = {"4": texts.cut(SENTENCES, TOKENIZER, tokens=4, count=32),
             "sst2": texts.first(SENTENCES, 32)}
    tokens = {case: texts.lengths(given, TOKENIZER) for case, given in asked.items()}
    models.write(tmp_path, VOCABULARY, size="tiny", precisions=["float32"])
    write_texts(tmp_path / "texts.json", asked)
    (system,) = [one for one in systems.SYSTEMS if one.name == "ours-float32-frozen"]
    measured = Turns(
        tokens=tokens, rounds=1, launch=lambda one: systems.launch(one, tmp_path),
        workload_of=lambda one: one.workload(
            tmp_path, tmp_path / "texts.json", host.available_cores()),
        say=lambda line: None).measure([system])
    assert [one.failure for one in measured] == [""]
    (one,) = measured
    assert one.label == "electra_tf, float32, intra_op=1, frozen weights"
    for case in asked:
        assert [len(calls) for calls in one.seconds[case][1]] == [32]
        assert [len(calls) for calls in one.seconds[case][32]] == [1]
        assert all(seconds > 0.0 for seconds in one.seconds[case][1][0])
    # One for each of the three sentences, but for the rounding that another batch brings.
    assert len({round(share, 5) for share in one.probabilities["sst2"]}) == 3
    assert one.probabilities["sst2"][:3] == pytest.approx(one.probabilities["sst2"][3:6], abs=1e-5)
    page = report.page(measured, tokens, machine=MACHINE, model_size="tiny", rounds=1)
    assert "## 4 tokens" in page and "## Sentences of SST-2" in page
    config = json.loads((tmp_path / "hugging_face" / "config.json").read_text())
    assert config["architectures"] == ["ElectraForSequenceClassification"]
