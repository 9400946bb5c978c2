"""Networks move between the formats without a difference, bit for bit."""

import dataclasses
import json
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.model import ModelConfig, Tying
from electra_tf.finetuning.run import prepare_trained
from electra_tf.formats import google, pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.modeling import parameter_shapes
from electra_tf.tasks.task import Kind
from electra_tf.text.normalization import Normalization
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import tiny_networks
from tests.support.refusals import refused


@pytest.mark.parametrize("tying", list(Tying))
@pytest.mark.parametrize("form", list(Format))
def test_every_format_returns_the_networks_that_were_written(tmp_path, form, tying):
    checkpoint = tiny_networks.pretrained(
        model__tying=tying, model__hidden_dropout=0.2, model__attention_dropout=0.05,
        model__initializer_range=0.03)
    pretrained.write(checkpoint, tmp_path / "out", form)
    loaded = pretrained.read(tmp_path / "out")
    tiny_networks.require_equal_weights(checkpoint, loaded)
    for part in ("discriminator", "generator", "tying"):
        assert getattr(loaded.config, part) == getattr(checkpoint.config, part)
    assert loaded.text == checkpoint.text


@pytest.mark.parametrize("form", list(Format))
def test_heads_of_a_wide_generator_and_an_encoder_alone_are_kept_or_refused(tmp_path, form):
    checkpoint = tiny_networks.pretrained(model__generator_width=1.0)
    assert checkpoint.config.generator.num_heads == 2  # Of 16 units.
    alone = tiny_networks.without(tiny_networks.pretrained(), "generator", "discriminator")
    pretrained.write(alone, tmp_path / "alone", form)
    tiny_networks.require_equal_weights(pretrained.read(tmp_path / "alone"), alone)
    if form is Format.GOOGLE:
        with refused("heads have 16 units.*Use the format run or hugg"):
            pretrained.write(checkpoint, tmp_path / "out", form)
        return
    pretrained.write(checkpoint, tmp_path / "out", form)
    assert pretrained.read(tmp_path / "out").config.generator == checkpoint.config.generator


@pytest.mark.parametrize("form", [Format.GOOGLE, Format.HUGGING_FACE])
def test_parts_that_only_a_run_holds_are_refused_by_name(tmp_path, form):
    checkpoint = tiny_networks.pretrained()
    adversarial = dataclasses.replace(checkpoint, objective="adversarial", weights={
        **checkpoint.weights, "baseline/dense/bias": np.zeros(1, np.float32)})
    with refused(r"objective.name=adversarial; .* no place for its baseline\. Use --to_format=run"):
        pretrained.write(adversarial, tmp_path / "out", form)
    pretrained.write(adversarial, tmp_path / "run", Format.RUN)
    tiny_networks.require_equal_weights(pretrained.read(tmp_path / "run"), adversarial)


def save_google(directory, weights, checkpoint, name="model.ckpt-9", **config):
    """Writes a checkpoint of Google's code with any names of weights."""
    directory.mkdir()
    tf.raw_ops.SaveV2(prefix=str(directory / name), tensor_names=list(weights),
                      shape_and_slices=[""] * len(weights),
                      tensors=list(map(tf.constant, weights.values())))
    checkpoint.text.vocabulary.save(directory / "vocab.txt")
    (directory / "bert_config.json").write_text(json.dumps({"num_attention_heads": 2} | config))


def encoder_of(checkpoint):
    return tiny_networks.without(checkpoint, "generator", "discriminator").weights


def test_a_checkpoint_of_google_bert_gives_its_encoder(tmp_path, capsys):
    checkpoint = tiny_networks.pretrained(model__embedding_size=32)
    encoder = encoder_of(checkpoint)
    save_google(tmp_path / "out", {
        **{name.replace("electra/", "bert/", 1): value for name, value in encoder.items()},
        "bert/pooler/dense/bias": np.zeros(32, np.float32),
        "cls/seq_relationship/output_bias": np.zeros(2, np.float32)}, checkpoint,
        "bert_model.ckpt", hidden_dropout_prob=0.3, hidden_act="gelu")
    loaded = pretrained.read(tmp_path / "out")
    assert loaded.weights.keys() == encoder.keys()
    assert (loaded.config.num_heads, loaded.config.hidden_dropout) == (2, 0.3)
    assert "2 weights are not used: bert.pooler, cls.seq_relationship." in capsys.readouterr().err


def test_a_fine_tuned_checkpoint_of_google_gives_its_encoder(checkpoint, tmp_path, capsys):
    encoder, zeros = encoder_of(checkpoint), np.zeros([32, 2], np.float32)
    slots = {f"{name}/{slot}": np.zeros_like(value) for name, value in encoder.items()
             for slot in ("adam_m", "adam_v", "Adam", "Adam_1")}
    save_google(tmp_path / "out", {
        **encoder, **slots, "task_specific/sst2/dense/kernel": zeros,
        "task_specific/sst2/dense/bias": zeros[0], "electra/pooler/dense/kernel": zeros,
        "global_step": np.int64(9)}, checkpoint)
    tiny_networks.require_equal_weights(
        pretrained.read(tmp_path / "out"), dataclasses.replace(checkpoint, weights=encoder))
    assert "3 weights are not used: electra.pooler, task_spec" in capsys.readouterr().err


@pytest.mark.parametrize(("more", "config", "words"), [
    ({"electra/encoder/layer_0/adapter/bias": np.zeros(2, np.float32)}, {},
     "1 unexpected weight: electra/encoder/layer_0/adapter"),
    ({}, {"num_hidden_layers": 1}, "num_hidden_layers is 1, and .* has 2 layers")])
def test_what_changes_googles_encoder_is_refused(checkpoint, tmp_path, more, config, words):
    save_google(tmp_path / "out", encoder_of(checkpoint) | more, checkpoint, **config)
    with refused(words):
        pretrained.read(tmp_path / "out")


def test_a_google_checkpoint_without_its_config_or_damaged_is_refused(checkpoint, tmp_path):
    pretrained.write(checkpoint, out := tmp_path / "out", Format.GOOGLE)
    assert pretrained.read(out, num_heads=4).config.num_heads == 4
    for content, words in ((b"{}", r"num_attention_heads of bert_config\.json"),
                           (b'{"num_attention_heads": 2, "hidden_act": "relu"}', "'hidden_act'"),
                           (None, "2 layers of 32 units.*convert_checkpoint .*--num_heads=HEADS")):
        path = out / "bert_config.json"
        path.unlink() if content is None else path.write_bytes(content)
        with refused(words):
            pretrained.read(out)
    assert pretrained.read(out, num_heads=2).config.num_heads == 2
    data = out / "model.ckpt.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:5000])
    with refused("model.ckpt can't be read"):
        pretrained.read(out, num_heads=2)


def test_a_cased_vocabulary_of_google_is_not_read_as_an_uncased_one(tmp_path):
    words = (*SPECIAL_TOKENS, "The", "##Ing", *(f"word{index}" for index in range(33)))
    pretrained.write(tiny_networks.pretrained(
        Vocabulary(words), normalization=Normalization.of(False)), tmp_path / "out", Format.GOOGLE)
    assert pretrained.read(tmp_path / "out").text.normalization == Normalization.of(False)
    (tmp_path / "out" / "vocab.txt.manifest.json").unlink()
    with refused("'The'.* --nolower_case"):
        pretrained.read(tmp_path / "out")
    read = pretrained.read(tmp_path / "out", normalization=Normalization.of(False))
    assert read.text.normalization == Normalization.of(False)


def test_the_published_models_heads_are_known():
    for hidden, layers, heads in ((256, 12, 4), (768, 12, 12), (1024, 24, 16)):
        config = ModelConfig(vocab_size=9, embedding_size=4, hidden_size=hidden, num_layers=layers,
                             num_heads=heads, intermediate_size=2, max_position_embeddings=5)
        table = parameter_shapes.full_encoder(config.discriminator)
        weights = {name: np.broadcast_to(np.float32(0), shape) for name, shape in table.items()}
        assert google.infer_model(weights, "a checkpoint").num_heads == heads


def test_a_path_without_a_checkpoint_is_refused_with_the_paths_to_name(checkpoint, tmp_path):
    pretrained.write(checkpoint, tmp_path / "new", Format.HUGGING_FACE)
    network, snapshot = (tmp_path / "runs" / name for name in (
        "checkpoint-500", "models--a--b/snapshots/f"))
    for number, path in enumerate((network, snapshot)):
        shutil.copytree(tmp_path / "new" / "discriminator", path)
        os.utime(path, (number, number))
    for path, names in ((tmp_path / "runs", f"{snapshot} or {network}"),
                        (network / "model.safetensors", network)):
        with refused(f"{path} holds no checkpoint: .* Name {names}.$"):
            pretrained.read(path)
    (tmp_path / "saved_model" / "variables").mkdir(parents=True)
    (tmp_path / "saved_model" / "variables" / "variables.index").touch()
    with refused(r"saved_model holds no checkpoint: .* \(Google\)\.$"):
        pretrained.read(tmp_path / "saved_model")
    with refused(r"holds no checkpoint: .* \(Google\)\.$"):
        pretrained.read(tmp_path / "nowhere" / "else" / "a")


def test_a_file_of_a_tensorflow_checkpoint_is_the_checkpoint(checkpoint, tmp_path):
    pretrained.write(checkpoint, tmp_path / "out", Format.GOOGLE)
    (tmp_path / "out" / "model.ckpt.meta").touch()
    for path in ("model.ckpt", *(path.name for path in (tmp_path / "out").glob("model.ckpt.*"))):
        tiny_networks.require_equal_weights(pretrained.read(tmp_path / "out" / path), checkpoint)
    pretrained.write(checkpoint, tmp_path / "run", Format.RUN)
    [index] = (tmp_path / "run" / "checkpoints").glob("*.index")
    for path in (index, index.with_suffix(""), index.parent):
        with refused(f"is a checkpoint of a run; name the run's directory, {tmp_path / 'run'}"):
            pretrained.read(path)


@pytest.mark.parametrize("form", [Format.HUGGING_FACE, Format.GOOGLE, Format.RUN])
def test_a_missing_vocabulary_is_copied_and_not_built(checkpoint, tmp_path, form):
    """Another vocabulary of the same size would give every token another row."""
    pretrained.write(checkpoint, tmp_path / "out", form)
    for path in tmp_path.glob("out/**/*"):
        if path.name in ("vocab.txt", "tokenizer.json"):
            path.unlink()
    if form is Format.HUGGING_FACE:  # transformers writes this class beside the tokenizer's file.
        (tmp_path / "out" / "discriminator" / "tokenizer_config.json").unlink()
    with refused("cannot read the vocabulary .*vocab.txt: .*; copy the vocab.txt") as error:
        pretrained.read(tmp_path / "out")
    assert "build_vocab" not in str(error.value)


def test_weights_that_are_not_finite_are_refused(checkpoint, tmp_path):
    name = "electra/encoder/layer_1/output/dense/bias"
    broken = checkpoint.weights[name].copy()
    broken[3] = np.nan
    diverged = dataclasses.replace(checkpoint, weights=checkpoint.weights | {name: broken})
    pretrained.write(diverged, tmp_path / "out", Format.RUN)
    with refused(f"{name} holds values that are not finite"):
        pretrained.read(tmp_path / "out")


@pytest.mark.parametrize(("kind", "name"), [
    (Kind.QUESTION_ANSWERING, "no_answer_threshold"), (Kind.MULTILABEL, "label_threshold")])
def test_a_threshold_that_was_searched_on_dev_stays_with_the_model(tmp_path, kind, name):
    labels, head, settings = {
        Kind.MULTILABEL: (("a", "b"), {"dense": 2}, {"task.label_threshold": 0.0}),
        Kind.QUESTION_ANSWERING: ((), {"dense": 1, "dense_1": 1}, {
            **tiny_networks.NO_ANSWERABILITY, "task.max_query_length": 8, "task.doc_stride": 8}),
    }[kind]
    trained, again = tmp_path / "trained", tmp_path / "again"
    pretrained.write(tiny_networks.finetuned(
        tiny_networks.pretrained(), kind, labels, head, settings=settings), trained, Format.RUN)
    (trained / "results.json").write_text('{"threshold": 0.25}')
    pretrained.write(pretrained.read(trained), again, Format.RUN)
    assert getattr(prepare_trained(again, {}).config.task, name) == 0.25
