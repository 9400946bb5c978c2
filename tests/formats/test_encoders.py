"""Encoders alone, of ELECTRA and of BERT, in the forms that other programs write."""

import json
import re

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.platform.errors import UserError
from tests.support import tiny_networks

ENCODER = re.compile("electra/")


def bert_name(name):
    """Google's name of a weight of BERT, whose first releases transformers kept in PyTorch."""
    return name.replace("electra.", "bert.").replace("LayerNorm.weight", "LayerNorm.gamma").replace(
        "LayerNorm.bias", "LayerNorm.beta")


def written(pair, *, rename=lambda name: name, only_encoder=True, more=None, **config):
    """Changes the discriminator of a pair into a directory of another program."""
    directory = pair / "discriminator"
    weights = {rename(name): value for name, value in load_file(
        directory / "model.safetensors").items()
        if name.startswith("electra.") or not only_encoder}
    save_file(weights | (more or {}), directory / "model.safetensors")
    path = directory / "config.json"
    content = {key: value for key, value in (json.loads(path.read_text()) | config).items()
               if value is not None}
    path.write_text(json.dumps(content))
    return directory


@pytest.fixture
def encoder(networks):
    return {name: value for name, value in networks.weights.items() if ENCODER.match(name)}


def require_encoder(directory, expected):
    networks = pretrained.read(directory)
    assert networks.weights.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(networks.weights[name], value)
    return networks


@pytest.mark.parametrize("rename", [
    lambda name: name, lambda name: name.removeprefix("electra.")])
@pytest.mark.parametrize("architectures", [["ElectraModel"], None])
def test_an_encoder_of_electra_has_any_prefix(pair, encoder, rename, architectures, capsys):
    networks = require_encoder(
        written(pair, rename=rename, architectures=architectures), encoder)
    assert not (networks.has_discriminator or networks.has_generator)
    assert "not used" not in capsys.readouterr().err


def test_without_architectures_a_discriminator_is_one_by_its_weights(pair, networks):
    written(pair, only_encoder=False, architectures=None)
    tiny_networks.require_equal_weights(pretrained.read(pair), networks)


@pytest.mark.parametrize(("architecture", "more", "note"), [
    ("BertModel", {"bert.pooler.dense.weight": (8, 8), "bert.pooler.dense.bias": (8,)},
     "2 weights are not used: bert.pooler."),
    ("BertForPreTraining", {"cls.predictions.bias": (40,), "cls.seq_relationship.weight": (2, 8)},
     "2 weights are not used: cls.predictions, cls.seq_relationship."),
    ("BertForMaskedLM", {}, ""),
])
def test_an_encoder_of_bert_may_have_old_names(tmp_path, architecture, more, note, capsys):
    networks = tiny_networks.pretrained(model__embedding_size=32)
    pretrained.write(networks, tmp_path / "pair", Format.HUGGING_FACE)
    directory = written(
        tmp_path / "pair", rename=bert_name, model_type="bert", embedding_size=None,
        architectures=[architecture],
        more={name: np.zeros(shape, np.float32) for name, shape in more.items()}
        | {"bert.embeddings.position_ids": np.arange(32)[None]})
    require_encoder(directory, {name: value for name, value in networks.weights.items()
                                if ENCODER.match(name)})
    assert note in (err := capsys.readouterr().err) and bool(err) == bool(note)


def test_a_head_of_bert_is_refused_with_advice_unless_the_encoder_is_enough(tmp_path, capsys):
    networks = tiny_networks.pretrained(model__embedding_size=32)
    pretrained.write(networks, tmp_path / "pair", Format.HUGGING_FACE)
    directory = written(
        tmp_path / "pair", rename=bert_name, model_type="bert",
        architectures=["BertForSequenceClassification"],
        more={"classifier.weight": np.zeros([2, 32], np.float32)})
    with pytest.raises(UserError, match="BertForSequenceClassification, whose head this program "
                       "does not have. Its encoder can be fine-tuned: run_finetuning.py "
                       f"--init_checkpoint={directory}"):
        pretrained.read(directory)
    found = pretrained.read(directory, encoder_only=True)
    assert all(ENCODER.match(name) for name in found.weights)
    assert "1 weights are not used: classifier.weight." in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["roberta", "deberta-v2", "modernbert", "distilbert", "albert"])
def test_another_type_of_model_is_refused_by_name(pair, kind):
    directory = written(pair, model_type=kind)
    with pytest.raises(UserError, match=f"'model_type' must be 'electra' or 'bert'.*'{kind}'"):
        pretrained.read(directory)


@pytest.mark.parametrize("form", Format)
def test_an_encoder_alone_has_a_place_in_every_format(networks, encoder, tmp_path, form):
    alone = tiny_networks.without(networks, "generator", "discriminator")
    pretrained.write(alone, tmp_path / "out", form)
    require_encoder(tmp_path / "out", encoder)


def test_rows_of_embeddings_without_a_token_are_left_out(pair, networks, capsys):
    for network in ("discriminator", "generator"):
        path = pair / network / "model.safetensors"
        weights = load_file(path)
        for name in ("electra.embeddings.word_embeddings.weight", "generator_lm_head.bias"):
            if name in weights:
                padding = [(0, 8), (0, 0)][:weights[name].ndim]
                weights[name] = np.pad(weights[name], padding)
        save_file(weights, path)
        path = pair / network / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"vocab_size": 48}))
    found = pretrained.read(pair)
    tiny_networks.require_equal_weights(found, networks)
    assert found.model.vocab_size == 40
    assert "8 rows of the embeddings have no token" in capsys.readouterr().err


def test_tokens_without_a_row_of_the_embeddings_are_refused(pair):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (pair / "discriminator" / name).unlink()
    with (pair / "discriminator" / "vocab.txt").open("a") as file:
        file.write("more\n")
    with pytest.raises(UserError, match="vocab.txt has 41 entries, and the embed.* 40 rows"):
        pretrained.read(pair)
