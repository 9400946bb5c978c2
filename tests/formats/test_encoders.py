"""Encoders alone, of ELECTRA and of BERT, in the forms that other programs write."""

import json

import numpy as np
import pytest

from electra_tf.core.command_line import command
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from tests.support import tiny_networks
from tests.support.hugging_face_files import change_json, change_weights
from tests.support.refusals import refused


def encoder_of(checkpoint):
    return {name: value for name,
            value in checkpoint.weights.items() if name.startswith("electra/")}


def bert_name(name):
    """Google's name of a weight of BERT, whose first releases transformers kept in PyTorch."""
    return name.replace("electra.", "bert.").replace("LayerNorm.weight", "LayerNorm.gamma").replace(
        "LayerNorm.bias", "LayerNorm.beta")


def write_encoder(pair, *, rename=lambda name: name, more=None, **config):
    """Changes the discriminator of a pair into an encoder that another program wrote."""
    directory = pair / "discriminator"
    change_weights(directory, lambda weights: (more or {}) | {
        rename(name): value for name, value in weights.items() if name.startswith("electra.")})
    change_json(directory / "config.json", **config)
    return directory


def write_bert(tmp_path, architecture, more):
    """Returns networks with embeddings of the hidden size, and the directory of their encoder."""
    checkpoint = tiny_networks.pretrained(model__embedding_size=32)
    pretrained.write(checkpoint, tmp_path / "pair", Format.HUGGING_FACE)
    return checkpoint, write_encoder(
        tmp_path / "pair", rename=bert_name, model_type="bert", embedding_size=None,
        architectures=[architecture],
        more={name: np.zeros(shape, np.float32) for name, shape in more.items()})


def require_encoder(directory, expected, **options):
    checkpoint = pretrained.read(directory, **options)
    assert checkpoint.weights.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(checkpoint.weights[name], value)
    return checkpoint


@pytest.mark.parametrize("rename", [lambda name: name, lambda name: name.removeprefix("electra.")])
@pytest.mark.parametrize("architectures", [["ElectraModel"], None])
def test_an_encoder_of_electra_has_any_prefix(pair, checkpoint, rename, architectures, capsys):
    encoder = require_encoder(
        write_encoder(pair, rename=rename, architectures=architectures), encoder_of(checkpoint))
    assert not (encoder.has_discriminator or encoder.has_generator)
    assert "not used" not in capsys.readouterr().err


@pytest.mark.parametrize("prefix", [
    "module._orig_mod.", "0.auto_model.", "electra._orig_mod."])
def test_a_prefix_of_all_names_or_of_a_part_is_left_out_with_a_note(
        pair, checkpoint, prefix, capsys):
    for network in ("discriminator", "generator"):
        change_weights(pair / network, lambda weights: {
            name.replace("electra.", prefix) if prefix.startswith("electra.") else prefix + name:
            value for name, value in weights.items()})
    tiny_networks.require_equal_weights(pretrained.read(pair), checkpoint)
    assert repr(prefix) in capsys.readouterr().err


def test_several_encoders_are_named_unless_one_has_the_usual_names(pair, checkpoint, capsys):
    def copied(*prefixes):
        return lambda weights: {prefix + name: value + index
                                for index, prefix in enumerate(prefixes)
                                for name, value in weights.items()}

    directory = write_encoder(pair, architectures=["ElectraModel"])
    change_weights(directory, copied("", "teacher."))
    require_encoder(directory, encoder_of(checkpoint))
    assert "teacher.electra" in capsys.readouterr().err
    change_weights(directory, copied("query.", "text."))
    with refused("several encoders: query.*text"):
        pretrained.read(directory)


def test_names_that_differ_by_the_prefix_alone_must_have_equal_values(pair):
    name = "discriminator_predictions.dense.bias"
    change_weights(pair / "discriminator", lambda weights: {
        f"module.{name}": value for name, value in weights.items()} | {name: weights[name] + 1})
    with refused(f"two different weights .*{name}"):
        pretrained.read(pair)


@pytest.mark.parametrize("projected", [True, False])
def test_without_model_type_the_weights_decide(tmp_path, projected, capsys):
    if projected:
        checkpoint = tiny_networks.pretrained()
        pretrained.write(checkpoint, tmp_path / "pair", Format.HUGGING_FACE)
        directory = write_encoder(tmp_path / "pair", model_type=None, architectures=None)
    else:
        checkpoint, directory = write_bert(tmp_path, "BertModel", {})
        change_json(directory / "config.json", model_type=None)
    require_encoder(directory, encoder_of(checkpoint))
    assert ("'electra'" if projected else "'bert'") in capsys.readouterr().err


def test_entries_that_a_config_lacks_have_the_defaults_of_transformers(pair):
    path = pair / "discriminator" / "config.json"
    path.write_text(json.dumps({
        name: value for name, value in json.loads(path.read_bytes()).items() if name not in (
            "type_vocab_size", "attention_probs_dropout_prob", "hidden_dropout_prob")}))
    config = pretrained.read(pair / "discriminator").config
    assert (config.type_vocab_size, config.attention_dropout, config.hidden_dropout) == (
        2, 0.1, 0.1)


@pytest.mark.parametrize(("architecture", "more", "note"), [
    ("BertModel", {"bert.pooler.dense.weight": (8, 8), "bert.pooler.dense.bias": (8,)},
     "2 weights are not used: bert.pooler."),
    ("BertForPreTraining", {"cls.predictions.bias": (40,), "cls.seq_relationship.weight": (2, 8)},
     "2 weights are not used: cls.predictions, cls.seq_relationship."),
    ("BertForMaskedLM", {}, "")])
def test_an_encoder_of_bert_may_have_old_names(tmp_path, architecture, more, note, capsys):
    checkpoint, directory = write_bert(tmp_path, architecture, more)
    change_weights(directory, lambda weights: weights.update({
        "bert.embeddings.position_ids": np.arange(32)[None]}))
    require_encoder(directory, encoder_of(checkpoint))
    assert note in (err := capsys.readouterr().err) and bool(err) == bool(note)


def test_a_head_of_bert_is_refused_unless_the_encoder_is_enough(tmp_path, capsys):
    checkpoint, directory = write_bert(
        tmp_path, "BertForSequenceClassification", {"classifier.weight": (2, 32)})
    with refused(f"BertForSequenceClassification.*{command('finetune')} --init_checkpoint="):
        pretrained.read(directory)
    require_encoder(directory, encoder_of(checkpoint), with_task=False)
    require_encoder(directory, encoder_of(checkpoint), encoder_only=True)
    assert "1 weight is not used: classifier.weight." in capsys.readouterr().err


def test_rows_of_embeddings_without_a_token_are_left_out(pair, checkpoint, capsys):
    def pad(weights):
        for name in ("electra.embeddings.word_embeddings.weight", "generator_lm_head.bias"):
            if name in weights:
                weights[name] = np.pad(weights[name], [(0, 8), (0, 0)][:weights[name].ndim])

    for network in ("discriminator", "generator"):
        change_weights(pair / network, pad)
        change_json(pair / network / "config.json", vocab_size=48)
    without_padding = pretrained.read(pair)
    tiny_networks.require_equal_weights(without_padding, checkpoint)
    assert without_padding.config.vocab_size == 40
    assert "8 rows of the embeddings have no token" in capsys.readouterr().err


def test_tokens_without_a_row_of_the_embeddings_are_refused(pair):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (pair / "discriminator" / name).unlink()
    with (pair / "discriminator" / "vocab.txt").open("a") as file:
        file.write("more\n")
    with refused("vocab.txt has 41 entries, and the embed.* 40 rows"):
        pretrained.read(pair)
