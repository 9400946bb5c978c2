"""Hugging Face directories give the same numbers in PyTorch and here, to 1e-5 in float32.

The golden numbers are PyTorch's (see `write_pytorch_golden`). Where the peers' environment is,
PyTorch also loads what the converter wrote, and the converter what transformers wrote.
"""

import json

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.model import Tying
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.tasks.task import Kind
from electra_tf.text.normalization import Normalization, TextSettings
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import Vocabulary
from tests.parity import our_outputs, seeded_directories
from tests.parity.write_pytorch_golden import (
    DIFFERENT,
    IDS,
    MODES,
    TEXTS,
    write_text_directories,
)
from tests.support import golden_files, peers, tiny_networks
from tests.support.tiny_networks import NO_ANSWERABILITY, finetuned

ATOL = 1e-5
GOLDEN, GOLDEN_IDS = golden_files.load("pytorch_outputs"), json.loads(IDS.read_text())
PAIRS = {
    "tied": {}, "separate": {"model__tying": Tying.NONE},
    "one_encoder": {"model__tying": Tying.EVERYTHING}, "unprojected": {"model__embedding_size": 32},
    "one_layer": {"model__generator_depth": 0.5, "model__tying": Tying.TOKEN_EMBEDDINGS},
    "rotary": {"model__positions": "rotary"},
    "rotary_one_layer": {"model__positions": "rotary", "model__generator_depth": 0.5,
                         "model__tying": Tying.TOKEN_EMBEDDINGS}}
HEADS = {
    "classes": (Kind.CLASSIFICATION, ("a", "b", "c"), {"dense": 3}, {}),
    "classes_hidden": (Kind.CLASSIFICATION, ("a", "b"), {"hidden": 32, "dense": 2},
                       {"settings": {"task.hidden_layer": True}}),
    "number": (Kind.REGRESSION, (), {"dense": 1}, {"scale": 5.0, "offset": 1.5}),
    "tags": (Kind.TAGGING, ("B-X", "I-X", "O"), {"dense": 3}, {}),
    "questions": (Kind.QUESTION_ANSWERING, (), {"dense": 1, "dense_1": 1},
                  {"settings": NO_ANSWERABILITY})}
ROTARY = "rotary_"
TUNED = [*HEADS, f"{ROTARY}classes_hidden", f"{ROTARY}tags", f"{ROTARY}questions"]


def tuned(name):
    kind, labels, head, more = HEADS[name.removeprefix(ROTARY)]
    changes = {"model__positions": "rotary"} if name.startswith(ROTARY) else {}
    return finetuned(tiny_networks.pretrained(**changes), kind, labels, head, **more)


def require_close(values, expected, *, min_shared):
    shared = values.keys() & expected.keys()
    assert len(shared) >= min_shared
    for name in shared:
        assert expected[name].dtype == np.float32
        np.testing.assert_allclose(values[name], expected[name], rtol=0, atol=ATOL, err_msg=name)


def arrays_of(arrays, network):
    return {name.split("|")[1]: value for name, value in arrays.items()
            if name.split("|")[0] == network}


def our_ids(mode):
    vocabulary = Vocabulary(tuple(GOLDEN_IDS["vocabulary"]))
    tokenizer = Tokenizer(TextSettings(
        vocabulary=vocabulary, normalization=Normalization.of(*MODES[mode])))
    rows = tokenizer.tokenize(tf.constant(TEXTS)).to_list()
    return [[vocabulary.cls_id, *row, vocabulary.sep_id] for row in rows]


@pytest.fixture(scope="module")
def seeded_directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("seeded")
    seeded_directories.write(directory)
    return directory


def test_pre_trained_networks_compute_the_golden_numbers(seeded_directory):
    values = our_outputs.of_networks(pretrained.read(seeded_directory))
    for network in ("discriminator", "generator"):
        require_close(values[network], arrays_of(GOLDEN, network), min_shared=4)


@pytest.mark.parametrize("network", ["classification", "tagging", "question_answering"])
def test_fine_tuned_models_compute_the_golden_numbers(seeded_directory, tmp_path, network):
    values = our_outputs.of_task(pretrained.read(seeded_directory / network), tmp_path)
    require_close(values, arrays_of(GOLDEN, network),
                  min_shared=2 if network == "question_answering" else 1)


@pytest.mark.parametrize("network", ["bert", "bert_mlm"])
def test_encoders_of_bert_compute_the_golden_numbers(seeded_directory, network, capsys):
    """One with a pooler and without a prefix of names, one with the head of its pre-training."""
    checkpoint = pretrained.read(seeded_directory / network)
    assert not (checkpoint.has_discriminator or checkpoint.has_generator)
    values = our_outputs.of_networks(checkpoint)["discriminator"]
    require_close(values, arrays_of(GOLDEN, network), min_shared=3)
    assert {"bert": "2 weights are not used: pooler.dense.\n",
            "bert_mlm": "5 weights are not used: cls.predictions.\n"}[network] in (
                capsys.readouterr().err)


def test_a_roformer_computes_the_golden_numbers(seeded_directory):
    checkpoint = pretrained.read(seeded_directory / "roformer_mlm")
    assert checkpoint.objective == "mlm" and not checkpoint.has_discriminator
    values = our_outputs.of_networks(checkpoint)["generator"]
    require_close(values, arrays_of(GOLDEN, "roformer_mlm"), min_shared=len(values))


@pytest.mark.parametrize("mode", MODES)
def test_token_ids_are_the_golden_ones_but_for_known_differences(mode):
    assert len(TEXTS) > 60
    differing = {text for text, ids, expected in zip(
        TEXTS, our_ids(mode), GOLDEN_IDS[mode], strict=True) if ids != expected}
    assert differing == set(DIFFERENT.values())


@pytest.fixture(scope="module")
def pytorch(tmp_path_factory):
    """Returns PyTorch's outputs of everything that the converter writes: one process for all."""
    root = tmp_path_factory.mktemp("pytorch")
    for name, changes in PAIRS.items():
        pretrained.write(tiny_networks.pretrained(**changes), root / name, Format.HUGGING_FACE)
    for name in TUNED:
        pretrained.write(tuned(name), root / name, Format.HUGGING_FACE)
    write_text_directories(Vocabulary(tuple(GOLDEN_IDS["vocabulary"])), root / "text")
    return root, peers.run(root, TEXTS)


@peers.needed
class TestInPyTorch:
    def test_nothing_is_missing_or_left_over(self, pytorch):
        _, outputs = pytorch
        assert len(outputs.report) == 2 * len(PAIRS) + len(TUNED) + 2 * len(MODES)
        for name, report in outputs.report.items():
            assert not any(report["model"].values()), (name, report["model"])
            # The encoder alone leaves the head, and nothing else.
            assert not any(
                key.startswith(("electra.", "roformer.")) for keys in report["auto_model"].values()
                for key in keys), (name, report["auto_model"])

    @pytest.mark.parametrize("name", PAIRS)
    def test_pre_trained_networks_compute_the_same(self, pytorch, name):
        checkpoint = our_outputs.of_networks(tiny_networks.pretrained(**PAIRS[name]))
        for network, values in checkpoint.items():
            expected = arrays_of(pytorch[1].arrays, f"{name}/{network}")
            # transformers has no RoFormer with the discriminator's head.
            no_head = name.startswith("rotary") and network == "discriminator"
            require_close(values, expected, min_shared=len(values) - no_head)
            last = max(key for key in values if key.startswith("hidden"))
            np.testing.assert_allclose(
                expected["last_hidden_of_auto_model"], values[last], rtol=0, atol=ATOL)

    @pytest.mark.parametrize("name", TUNED)
    def test_fine_tuned_models_compute_the_same(self, pytorch, tmp_path, name):
        values = our_outputs.of_task(tuned(name), tmp_path)
        require_close(values, arrays_of(pytorch[1].arrays, name), min_shared=len(values))

    @pytest.mark.parametrize("mode", MODES)
    def test_token_ids_are_the_golden_ones(self, pytorch, mode):
        assert pytorch[1].report[f"text/{mode}/discriminator"]["ids"] == GOLDEN_IDS[mode]

    @pytest.mark.parametrize("name", [*PAIRS, *TUNED])
    def test_what_transformers_writes_is_read_again(self, pytorch, name):
        root, outputs = pytorch
        assert not list(outputs.saved.rglob("vocab.txt"))
        first, second = pretrained.read(root / name), pretrained.read(outputs.saved / name)
        tiny_networks.require_equal_weights(first, second)
        assert (first.text, first.config, first.task) == (second.text, second.config, second.task)
