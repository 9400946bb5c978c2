"""Directories of ModernBERT: what is refused, by name, and what is written."""

import json

import pytest

from electra_tf.config.model import Architecture, Tying
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.tasks.task import Kind
from tests.parity import modernbert_outputs
from tests.support import tiny_networks
from tests.support.hugging_face_files import change_json, change_weights
from tests.support.refusals import refused

MODERN = {"model__architecture": Architecture.MODERNBERT, "model__embedding_size": 32}


@pytest.fixture
def directory(tmp_path):
    modernbert_outputs.write("published", tmp_path / "in")
    return tmp_path / "in"


@pytest.mark.parametrize(("entries", "words"), [
    ({"hidden_activation": "silu"},
     "'hidden_activation' must be 'gelu' or 'gelu_python'. Received: 'silu'"),
    ({"norm_eps": 1e-6}, "norm_eps"), ({"norm_bias": True}, "'norm_bias' must be False"),
    ({"attention_bias": True}, "'attention_bias' must be False"),
    ({"mlp_bias": True}, "'mlp_bias' must be False"),
    ({"decoder_bias": False}, "'decoder_bias' must be True"),
    ({"classifier_bias": True}, "'classifier_bias' must be False"),
    ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "rope_scaling"),
    ({"rope_parameters": {"full_attention": {"rope_type": "yarn", "rope_theta": 1e5}}},
     "'rope_type' must be 'default'. Received: 'yarn'"),
    ({"layer_types": ["full_attention", "sliding_attention", "full_attention",
                      "full_attention"]}, "layer_types must be full_attention in every n-th"),
    ({"global_attn_every_n_layers": 0}, "global_attn_every_n_layers"),
    ({"architectures": ["ModernBertForMultipleChoice"]}, "ModernBertForMultipleChoice")])
def test_what_the_layers_do_not_compute_is_refused_by_name(directory, entries, words):
    change_json(directory / "config.json", **entries)
    with refused(words):
        pretrained.read(directory)


@pytest.mark.parametrize(("change", "words"), [
    (lambda weights: weights.pop("layers.1.attn_norm.weight"),
     "lacks 1 weight: layers.1.attn_norm.weight"),
    (lambda weights: weights.update({"layers.0.attn_norm.weight": weights["final_norm.weight"]}),
     "has 1 unexpected weight: layers.0.attn_norm.weight"),
    (lambda weights: weights.update({"head.dense.weight": weights["layers.0.attn.Wo.weight"]}),
     "")])
def test_missing_and_extra_weights_are_named(directory, change, words):
    change_weights(directory, lambda weights: [change(weights)][1:] or None)
    if not words:  # Without a class, nothing says what a head is for.
        change_json(directory / "config.json", architectures=None)
        words = "config.json has no architectures"
    with refused(words):
        pretrained.read(directory)


def test_byte_level_bpe_is_refused_by_name(directory):
    (directory / "tokenizer.json").write_text(json.dumps({"model": {"type": "BPE", "vocab": {}}}))
    with refused("tokenizer.json is a tokenizer of byte-level BPE"):
        pretrained.read(directory)


def test_settings_are_read_from_newer_and_older_entries(directory):
    change_json(directory / "config.json", global_attn_every_n_layers=2, global_rope_theta=5e4,
                local_rope_theta=None, mlp_dropout=0.2, attention_dropout=0.1, local_attention=9)
    config = pretrained.read(directory).config
    assert config.attention_window == 8  # 9 // 2 on either side.
    assert (config.global_every, config.rotary_base, config.local_rotary_base) == (2, 5e4, 5e4)
    assert (config.hidden_dropout, config.attention_dropout) == (0.2, 0.1)
    change_json(directory / "config.json", layer_types=[
        "full_attention", "sliding_attention", "sliding_attention", "sliding_attention"],
        rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 1e5},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 1e3}})
    config = pretrained.read(directory).config
    assert (config.global_every, config.rotary_base, config.local_rotary_base) == (4, 1e5, 1e3)


@pytest.mark.parametrize("tying", [Tying.ALL_EMBEDDINGS, Tying.EVERYTHING, Tying.NONE])
def test_a_pair_is_written_and_read_with_its_generator_and_settings(tmp_path, capsys, tying):
    changes = MODERN | {"model__attention_window": 6, "model__global_every": 2,
                        "model__rotary_base": 7e4, "model__local_rotary_base": 3e3}
    pair = tiny_networks.pretrained(**changes, model__tying=tying, model__generator_width=1.0,
                                    model__generator_depth=0.5)
    pretrained.write(pair, tmp_path / "out", Format.HUGGING_FACE)
    assert "no ModernBert that detects replaced tokens" in capsys.readouterr().err
    read = pretrained.read(tmp_path / "out")
    tiny_networks.require_equal_weights(
        tiny_networks.without(pair, "discriminator_predictions/"), read)
    for name in ("architecture", "attention_window", "global_every", "rotary_base",
                 "local_rotary_base", "intermediate_size", "hidden_dropout"):
        assert getattr(read.config, name) == getattr(pair.config, name)
    assert read.config.generator == pair.config.generator
    tokenizer = json.loads((tmp_path / "out/discriminator/tokenizer_config.json").read_text())
    assert tokenizer["model_input_names"] == ["input_ids", "attention_mask"]


def test_a_narrow_generator_is_left_out_with_a_note(tmp_path, capsys):
    pair = tiny_networks.pretrained(**MODERN, model__generator_width=0.5)
    pretrained.write(pair, tmp_path / "out", Format.HUGGING_FACE)
    assert "the generator is not written" in capsys.readouterr().err
    assert not pretrained.read(tmp_path / "out").has_generator


def test_embeddings_of_another_size_are_refused(tmp_path):
    narrow = tiny_networks.pretrained(**MODERN | {"model__embedding_size": 16})
    with refused("embedding_size=16 and hidden_size=32. Use --to_format=run"):
        pretrained.write(narrow, tmp_path / "out", Format.HUGGING_FACE)


@pytest.mark.parametrize(("kind", "labels", "head", "settings", "words"), [
    (Kind.CLASSIFICATION, ("a", "b"), {"dense": 2}, {},
     "ModernBertForSequenceClassification has other .*--set=task.hidden_layer=true"),
    (Kind.TAGGING, ("A", "B"), {"dense": 2}, {},
     "ModernBertForTokenClassification has other .*--set=task.hidden_layer=true"),
    (Kind.QUESTION_ANSWERING, (), {"dense": 1, "dense_1": 1}, tiny_networks.NO_ANSWERABILITY,
     "ModernBertForQuestionAnswering has other .*--set=task.answerability=false "
     "--set=task.hidden_layer=true")])
def test_heads_without_the_hidden_layer_are_refused(tmp_path, kind, labels, head, settings, words):
    model = tiny_networks.finetuned(tiny_networks.pretrained(**MODERN), kind, labels, head,
                                    settings=settings)
    with refused(words):
        pretrained.write(model, tmp_path / "out", Format.HUGGING_FACE)


def test_the_format_of_google_refuses_it_by_name(tmp_path):
    with refused("has model.architecture=modernbert; this format"):
        pretrained.write(tiny_networks.pretrained(**MODERN), tmp_path / "out", Format.GOOGLE)
