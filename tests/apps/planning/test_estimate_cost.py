"""Costs of whole runs, compared with Google's table, and the printed estimate."""

import csv
import json
import pathlib
import re

import pytest

from electra_tf.apps.planning import estimate_cost
from electra_tf.apps.planning.estimate_cost import INFERENCE_LENGTH, PUBLISHED_LENGTHS, cost_of
from electra_tf.config.model import EncoderConfig
from electra_tf.config.objectives import OBJECTIVES
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import SIZES
from electra_tf.modeling.flops import peak_flops
from electra_tf.modeling.parameter_shapes import full_encoder
from electra_tf.modeling.specs import language_model
from tests.support import command_flags
from tests.support.refusals import refused

GOLDEN = json.loads((pathlib.Path(__file__).parent / "golden" / "flops.json").read_text())

GLUE_TASKS = ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte")


def masked(hidden, layers, *, batch, steps, embedding=0, vocabulary=30522, length=512,
           fraction=None):
    """FLOPs of a network that predicts a fraction of the tokens; None for BERT's."""
    shape = EncoderConfig(
        hidden_size=hidden, num_layers=layers, embedding_size=embedding or hidden,
        vocab_size=vocabulary, max_position_embeddings=512, type_vocab_size=2, hidden_dropout=0.1,
        attention_dropout=0.1, initializer_range=0.02, num_heads=hidden // 64,
        intermediate_size=4 * hidden)
    network = language_model("language model", shape, full_encoder(shape), fraction=fraction)
    return batch * length * steps * estimate_cost.paper_training_flops([network], length)


def cost(size, **changes):
    config = override(SIZES[size], {name.replace("__", "."): value
                                    for name, value in changes.items()})
    return cost_of(config, PUBLISHED_LENGTHS[size])


@pytest.mark.parametrize(("name", "counted"), [
    ("gpt", lambda: masked(768, 12, batch=128, steps=960_800, vocabulary=40000, fraction=1.0)),
    ("bert_small", lambda: masked(256, 12, batch=128, steps=1.45e6, embedding=128, length=128)),
    ("bert_base", lambda: masked(768, 12, batch=256, steps=1e6)),
    ("bert_large", lambda: masked(1024, 24, batch=256, steps=1e6)),
    ("roberta", lambda: masked(1024, 24, batch=8000, steps=500_000, vocabulary=50265)),
    ("albert", lambda: masked(4096, 12, batch=4096, steps=1.5e6, embedding=128, vocabulary=30000)),
    ("electra_small", lambda: cost("small").paper_flops),
    ("electra_base", lambda: cost("base").paper_flops),
    ("electra_400k", lambda: cost("large").paper_flops),
    ("electra_1.75M", lambda: cost(
        "large", training__num_train_steps=1_750_000).paper_flops)])
def test_training_flops_are_those_of_googles_table(name, counted):
    assert counted() == pytest.approx(GOLDEN["train_flops"][name], rel=1e-12)


def test_steps_and_objectives_are_counted():
    assert cost("small").inference(INFERENCE_LENGTH)[0] == GOLDEN["small_inference_128"]
    electra, short = cost("small"), cost("small", training__num_train_steps=62_500)
    assert short.paper_flops == electra.paper_flops / 16
    assert short.matmul_flops == electra.matmul_flops / 16
    bert = cost("small", objective__name="mlm", training__num_train_steps=1_450_000)
    assert bert.paper_flops == pytest.approx(1.4187399146496e18, rel=1e-12)
    assert bert.matmul_flops / bert.tokens < electra.matmul_flops / electra.tokens


def test_every_objective_has_a_cost_and_stages_cost_their_share():
    counted = {name: cost("small", objective__name=name).matmul_flops
               for name in OBJECTIVES if name != "frozen_generator"}
    # Every objective that trains the encoder over all tokens costs three forward passes of it.
    encoder = 3 * cost("small").inference(128)[1] / 128 * cost("small").tokens
    assert all(value > encoder for value in counted.values())
    # Half of two stages is a masked language model. The other half trains the discriminator,
    # which reads what a masked language model writes in a forward pass, a third of its step.
    second = counted["fixed_generator"] + counted["mlm"] / 3
    assert counted["two_stage"] == pytest.approx((counted["mlm"] + second) / 2)


@pytest.fixture
def printed(capsys):
    def run(*arguments):
        command_flags.run(estimate_cost, *arguments)
        return capsys.readouterr().out
    return run


def row(output, beginning):
    return next(line for line in output.splitlines() if line.strip().startswith(beginning)).split()


def test_electra_small_costs_what_the_paper_states(printed):
    output = printed("--model_size=small")
    assert row(output, "training, whole run")[-2:] == ["1.29e18", "1.15e18"]
    assert row(output, "inference, 128")[-2] == "3.68e09"
    assert "discriminator 13,549,057" in output
    # Table 1: four days of one V100.
    assert row(output, "1 x v100")[3:7] == ["15.7", "0.212", "4.0", "days"]
    assert row(output, "ELECTRA-Base")[1:] == ["6.4e19", "49.5", "85.1"]
    assert "generator" not in printed("--set=objective.name=mlm")


def test_flags_choose_devices_their_number_and_utilization(printed):
    output = printed("--model_size=base", "--devices=A100,tpu-v3", "--count=8",
                     "--utilization=0.5")
    # 6.71e19 products over 8 x 156e12 a second: 14.9 hours; 119.5 device hours at $4.10.
    assert row(output, "8 x a100")[3:] == ["312", "0.5", "14.9", "h", "119", "490"]
    assert row(output, "8 x tpu v3")


def test_every_device_has_a_peak_and_a_dated_price():
    for name, device in estimate_cost.DEVICES.items():
        assert peak_flops(name, "bfloat16") or peak_flops(name, "float32")
        assert re.search(r"\b20[12]\d\b", device.price)


@pytest.mark.parametrize(("arguments", "words"), [
    (["--max_seq_length=1024"], "--max_seq_length=1024 is more than the model's 512 positions"),
    (["--set=objective.name=frozen_generator"], "--set objective.generator=DIRECTORY"),
])
def test_wrong_flags_are_refused(printed, arguments, words):
    with refused(words):
        printed(*arguments)


def test_rows_of_the_literature_agree_with_themselves():
    """Averages are those of their tasks to the digit that is printed; every row has a source."""
    rows = list(csv.DictReader(estimate_cost.LITERATURE.open(encoding="utf-8")))
    assert all(line["source"] for line in rows)
    averages = [(float(line["glue_dev"]), sum(float(line[name]) for name in GLUE_TASKS) / 8)
                for line in rows if all(line[name] for name in GLUE_TASKS)]
    assert len(averages) == 8
    assert all(printed == pytest.approx(mean, abs=0.0501) for printed, mean in averages)
