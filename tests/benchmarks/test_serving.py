"""Serving's comparison: texts, agreement, tables; our worker answers a tiny model."""

import json
import pathlib

import pytest

from benchmarks.harness.command import Bench
from benchmarks.harness.turns import Measurement, Role, System
from benchmarks.serving import __main__ as serving
from benchmarks.serving import models
from electra_tf.platform.errors import UserError
from electra_tf.text.tokenization import TextSettings
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, "a", "film", "##s", "good", "dull"))
TOKENIZER = Tokenizer(TextSettings(vocabulary=VOCABULARY))
SENTENCES = ["a good film", "films films", "dull"]
MACHINE = {"processor": "Abacus", "cores": 2, "memory_gb": 16.0, "load_before": 0.04}
TOKENS = {"sst2": [5, 8]}


def test_texts_are_cut_to_exactly_so_many_tokens():
    for tokens in (3, 4, 7):
        cut = models.cut(SENTENCES, TOKENIZER, tokens=tokens, count=9)
        assert models.lengths(cut, TOKENIZER) == [tokens] * 9
    # "films" has two pieces.
    assert models.cut(SENTENCES, TOKENIZER, tokens=6, count=2) == ["a good film dull"] * 2
    with pytest.raises(UserError, match="give the --vocab_file that fits"):
        models.cut(["films films"], TOKENIZER, tokens=5, count=1)


def measured(name, seconds, role=Role.PEER, *, shares=(0.2, 0.4), tokens=None, precision="float32"):
    """Two rounds over two texts; every call takes as long."""
    return Measurement(
        system=System(name=name, title=name, module="", role=role,
                      settings={"precision": precision}), label=name,
        warm_up=[{"case": "sst2", "probabilities": list(shares), "tokens": tokens}],
        turns={"sst2/1": [{"calls": [seconds] * 2}] * 2, "sst2/32": [{"calls": [seconds]}] * 2})


def test_ratios_are_to_the_fastest_peer():
    page = "\n".join(serving.page(
        [measured("ours", 0.1, Role.OURS), measured("hf", 0.2),
         measured("rough", 0.15, shares=(0.2, 0.41), precision="bfloat16")], TOKENS))
    assert "6.5 tokens on average, 5 to 8" in page
    ours, hf = ([cell.strip() for cell in line.strip("|").split("|")]
                for line in page.splitlines() if line.startswith(("| ours", "| hf")))
    assert ours[1:] == ["100.00 (100.00 to 100.00)", "1.50"] * 2 + ["20 (20 to 20)", "1.50"]
    assert hf[2] == hf[4] == "0.75"
    assert "- rough: 1.0e-02" in page


def test_systems_that_do_not_answer_the_same_are_not_measured():
    ours = measured("ours", 0.1, Role.OURS)
    serving.require_agreement([ours, measured("hf", 0.2, shares=(0.2, 0.4005))], TOKENS)
    with pytest.raises(UserError, match="hf and ours should answer the same, .* 0.1;"):
        serving.require_agreement([ours, measured("hf", 0.2, shares=(0.2, 0.5))], TOKENS)
    with pytest.raises(UserError, match="hf reads other tokens in the texts of case sst2"):
        serving.require_agreement([ours, measured("hf", 0.2, tokens=[5, 9])], TOKENS)


@pytest.mark.slow
def test_our_worker_serves_what_the_export_writes(tmp_path):
    """Every step of the command, with a model of two layers and no peer."""
    asked = {"4": models.cut(SENTENCES, TOKENIZER, tokens=4, count=32),
             "sst2": models.first(SENTENCES, 32)}
    tokens = {case: models.lengths(given, TOKENIZER) for case, given in asked.items()}
    models.write(tmp_path, VOCABULARY, size="tiny", precisions=["float32"])
    (tmp_path / "texts.json").write_text(json.dumps(asked))
    bench = Bench(
        systems=[one for one in serving.SYSTEMS if one.name == "ours-float32-frozen"],
        peers_python=pathlib.Path(), output=tmp_path, timeout=300, machine=MACHINE)
    one, = serving.measure(bench, tmp_path, tokens, rounds=1)
    assert one.failure == "" and one.label == "electra_tf float32, intra_op=1, frozen weights"
    for case in asked:
        assert [len(calls) for calls in one.values(f"{case}/1", "calls")] == [32]
        assert [len(calls) for calls in one.values(f"{case}/32", "calls")] == [1]
    # One for each of the three sentences, but for the rounding that another batch brings.
    shares = one.warm_up[1]["probabilities"]
    assert len({round(share, 5) for share in shares}) == 3
    assert shares[:3] == pytest.approx(shares[3:6], abs=1e-5)
    config = json.loads((tmp_path / "hugging_face" / "config.json").read_text())
    assert config["architectures"] == ["ElectraForSequenceClassification"]
