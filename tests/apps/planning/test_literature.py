"""Google's table of FLOPs comes out, and the digits that the paper prints."""

import json
import pathlib

import pytest

from electra_tf.apps.planning.literature import PUBLISHED

GOLDEN = json.loads((pathlib.Path(__file__).parent / "golden" / "flops.json").read_text())
MODELS = {model.name: model for model in PUBLISHED}
NAMES = {
    "elmo": "ELMo", "xlnet": "XLNet", "gpt": "GPT", "bert_small": "BERT-Small",
    "bert_base": "BERT-Base", "bert_large": "BERT-Large", "electra_small": "ELECTRA-Small",
    "electra_base": "ELECTRA-Base", "electra_400k": "ELECTRA-400K",
    "electra_1.75M": "ELECTRA-1.75M", "roberta": "RoBERTa-500K", "albert": "ALBERT-xxlarge",
    "t5_11b": "T5-11B"}


@pytest.mark.parametrize("key", GOLDEN["train_flops"])
def test_every_row_of_googles_table_comes_out(key):
    assert MODELS[NAMES[key]].train_flops == pytest.approx(GOLDEN["train_flops"][key], rel=1e-12)


@pytest.mark.parametrize("model", PUBLISHED, ids=lambda model: model.name)
def test_the_papers_digits_come_out(model):
    for counted, printed in ((model.train_flops, model.printed_train_flops),
                             (model.inference_flops, model.printed_inference_flops)):
        # ELMo's and ELECTRA-Small's are printed otherwise than Google's own count has them, GPT's
        # 3.0e10 differs by the head.
        if None not in (counted, printed):
            within = 0.09 if model.name == "ELECTRA-Small" else 0.04
            assert counted == pytest.approx(printed, rel=within)
            if model.name not in ("ELMo", "ELECTRA-Small", "GPT"):
                assert float(f"{counted:.1e}") == printed


def test_parts_of_small_are_printed_as_parts_of_bert_small():
    """50, 25, 12.5 and 6.25 % trained; the paper rounds 3.55 up."""
    whole = MODELS["BERT-Small"].train_flops
    assert [f"{whole * part:.2e}" for part in (1 / 2, 1 / 4, 1 / 8, 1 / 16)] == [
        "7.09e+17", "3.55e+17", "1.77e+17", "8.87e+16"]


def test_an_answer_of_small_is_googles():
    assert MODELS["ELECTRA-Small"].inference_flops == GOLDEN["small_inference_128"]
