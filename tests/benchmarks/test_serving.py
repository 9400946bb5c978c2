"""Serving's comparison: texts, agreement, tables; our worker answers a tiny model."""

import sys

import pytest

from benchmarks.harness.turns import Measurement, Role, System
from benchmarks.harness.worker import Worker
from benchmarks.serving import __main__ as serving
from benchmarks.serving import models
from electra_tf.platform.errors import UserError
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, "a", "film", "##s", "good", "dull"))
SENTENCES = ["a good film", "films films", "dull"]


def test_texts_are_cut_to_exactly_so_many_tokens():
    # "films" has two pieces; [CLS] and [SEP] count.
    assert models.texts(SENTENCES, VOCABULARY, 6, 2) == ["a good film dull"] * 2
    assert models.texts(SENTENCES, VOCABULARY, 3, 5) == ["a", "good", "film", "dull", "a"]
    assert models.texts(SENTENCES, VOCABULARY, None, 4) == [*SENTENCES, "a good film"]
    with pytest.raises(UserError, match="give the --vocab_file that fits"):
        models.texts(["films films"], VOCABULARY, 5, 1)


def measured(name, seconds, role=Role.PEER, *, shares=(0.2, 0.4), precision="float32"):
    """Two rounds over two texts; every call takes as long."""
    return Measurement(
        system=System(name=name, title=name, module="", role=role,
                      settings={"precision": precision}), label=name,
        warm_up=[{"case": "sst2", "probabilities": list(shares)}],
        turns={"sst2/1": [{"calls": [seconds] * 2}] * 2, "sst2/32": [{"calls": [seconds]}] * 2})


def test_ratios_are_to_the_fastest_peer():
    page = serving.page([measured("ours", 0.1, Role.OURS), measured("hf", 0.2),
                         measured("rough", 0.15, precision="bfloat16")], ["sst2"], 2)
    ours, hf = ([cell.strip() for cell in line.strip("|").split("|")]
                for line in page if line.startswith(("| ours", "| hf")))
    assert ours[1:] == ["100.00 (100.00 to 100.00)", "1.50"] * 2 + ["20 (20 to 20)", "1.50"]
    assert hf[2] == hf[4] == "0.75"


def test_systems_that_do_not_answer_the_same_are_refused():
    ours = measured("ours", 0.1, Role.OURS)
    serving.require_agreement([ours, measured("hf", 0.2, shares=(0.2, 0.4005)),
                               measured("rough", 0.1, shares=(0.5, 0.5), precision="bfloat16")])
    with pytest.raises(UserError, match="hf and ours should answer the same, .* 0.1"):
        serving.require_agreement([ours, measured("hf", 0.2, shares=(0.2, 0.5))])


@pytest.mark.slow
def test_our_worker_serves_what_the_export_writes(tmp_path):
    asked = {"4": models.texts(SENTENCES, VOCABULARY, 4, 32),
             "sst2": models.texts(SENTENCES, VOCABULARY, None, 32)}
    models.write(tmp_path, VOCABULARY, size="tiny")
    worker = Worker([sys.executable, "-m", "benchmarks.serving.ours"], timeout=300, environment={})
    try:
        hello = worker.ask({"directory": str(tmp_path), "texts": asked, "threads": 1,
                            "precision": "float32"})
        shares = worker.ask({"case": "sst2", "batch": 0})["probabilities"]
        calls = [len(worker.ask({"case": case, "batch": batch})["calls"])
                 for case in asked for batch in (1, 32)]
    finally:
        worker.close()
    assert hello["label"] == "float32" and calls == [32, 1] * 2
    # One for each of the three sentences, but for the rounding that another batch brings.
    assert len({round(share, 5) for share in shares}) == 3
    assert shares[:3] == pytest.approx(shares[3:6], abs=1e-5)
    assert (tmp_path / "hugging_face" / "config.json").exists()
