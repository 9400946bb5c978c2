"""Directories have the names that transformers wants; what doesn't fit is refused by name."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file
from scipy import special

from electra_tf.config.model import Tying
from electra_tf.export import servable
from electra_tf.formats import hugging_face_heads, pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.tasks import glue
from electra_tf.tasks.task import Kind
from tests.support import tiny_networks
from tests.support.hugging_face_files import change_json, change_weights
from tests.support.refusals import refused
from tests.support.tiny_networks import NO_ANSWERABILITY, finetuned

NAMES = json.loads((Path(__file__).parent / "golden" / "transformers_5.23_names.json").read_text())
"""Parameters and shapes of five architectures, of the tiny sizes, as transformers lists them."""


CLASSES = Kind.CLASSIFICATION, ("no", "yes"), {"hidden": 32, "dense": 2}


def written(checkpoint, tmp_path, *head, **changes):
    """Returns a fine-tuned model, and the directory in which it is written."""
    model = dataclasses.replace(finetuned(checkpoint, *head), **changes)
    pretrained.write(model, tmp_path / "out", Format.HUGGING_FACE)
    return model, tmp_path / "out"


def shapes_of(directory):
    return {name: list(value.shape)
            for name, value in load_file(directory / "model.safetensors").items()}


@pytest.mark.parametrize("network", ["discriminator", "generator"])
def test_names_and_shapes_are_those_of_transformers(pair, network):
    assert shapes_of(pair / network) == NAMES[network]


@pytest.mark.parametrize(("kind", "labels", "head", "settings"), [
    (Kind.CLASSIFICATION, ("no", "yes"), {"dense": 2}, {}),
    (Kind.MULTILABEL, ("a", "b"), {"hidden": 32, "dense": 2}, {"task.hidden_layer": True}),
    (Kind.CLASSIFICATION, ("no", "yes"), {"hidden": 32, "dense": 2}, {
        "task.hidden_layer": True, "task.long_texts": "windows", "task.window_pooling": "max",
        "task.max_windows": 3, "task.doc_stride": 5}),
    (Kind.TAGGING, ("B-X", "I-X", "O"), {"dense": 3}, {}),
    (Kind.QUESTION_ANSWERING, (), {"dense": 1, "dense_1": 1}, {
        **NO_ANSWERABILITY, "task.doc_stride": 4, "task.max_query_length": 6})])
def test_a_fine_tuned_model_has_the_names_of_transformers_and_keeps_its_settings(
        tmp_path, capsys, kind, labels, head, settings):
    checkpoint = tiny_networks.pretrained(
        model__hidden_dropout=0.2, model__attention_dropout=0.05, model__initializer_range=0.03)
    model = finetuned(checkpoint, kind, labels, head, settings={
        **settings, "task.max_seq_length": 12, "task.dropout": 0.3,
        "training.precision": "float32"})
    model = dataclasses.replace(model, task=dataclasses.replace(
        model.task, key_column="id", metrics=("accuracy", "other")))
    source = model
    for number, form in enumerate((Format.RUN, Format.HUGGING_FACE, Format.RUN)):
        pretrained.write(source, tmp_path / str(number), form)
        source = pretrained.read(tmp_path / str(number))
    assert shapes_of(tmp_path / "1") == NAMES[
        Kind.CLASSIFICATION if kind is Kind.MULTILABEL else kind]
    assert ("with task.long_texts=windows" in capsys.readouterr().err) == (
        "task.long_texts" in settings)
    if head == {"dense": 2}:  # It gets a hidden layer.
        return
    tiny_networks.require_equal_weights(source, model)
    assert (source.config.discriminator, source.task) == (model.config.discriminator, model.task)
    assert hugging_face_heads.task_config(source) == hugging_face_heads.task_config(model)
    assert source.task_settings["training.precision"] == "float32"


@pytest.mark.parametrize(("kind", "labels", "more"), [
    (Kind.CLASSIFICATION, ("no", "yes"), {}), (Kind.REGRESSION, (), {"scale": 5.0, "offset": 1.5})])
def test_a_head_without_a_hidden_layer_computes_the_same_through_gelu(
        checkpoint, tmp_path, kind, labels, more):
    model = finetuned(checkpoint, kind, labels, {"dense": len(labels) or 1}, **more)
    pretrained.write(model, tmp_path / "out", Format.HUGGING_FACE)
    head = load_file(tmp_path / "out" / "model.safetensors")
    vectors = np.random.default_rng(8).normal(size=[5, 32]).astype(np.float32)
    hidden = vectors @ head["classifier.dense.weight"].T + head["classifier.dense.bias"]
    hidden *= 0.5 * (1.0 + special.erf(hidden / np.sqrt(2.0)))
    logits = hidden @ head["classifier.out_proj.weight"].T + head["classifier.out_proj.bias"]
    expected = vectors @ model.weights["head/dense/kernel"] + model.weights["head/dense/bias"]
    expected = expected * model.task.scale + model.task.offset
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5)


def test_numbers_that_float32_rounds_by_a_part_of_their_deviation_are_refused(checkpoint, tmp_path):
    # Seconds of 2020: float32 has steps of 2^(30 - 23) = 128 from 2^30 on, and an hour has 3,600.
    hours, weeks = (finetuned(checkpoint, Kind.REGRESSION, (), {"dense": 1}, scale=scale,
                              offset=1.6e9) for scale in (3_600.0, 604_800.0))
    pretrained.write(weeks, tmp_path / "weeks", Format.HUGGING_FACE)
    for export in (lambda: pretrained.write(hours, tmp_path / "hours", Format.HUGGING_FACE),
                   lambda: servable.build(hours).answer(tf.constant(["a"]))):
        with refused(r"mean 1.6e\+09 and the standard deviation 3600, .* steps of 128 there"):
            export()


def test_heads_that_transformers_does_not_have_are_refused(checkpoint, tmp_path):
    many = finetuned(checkpoint, Kind.CLASSIFICATION, tuple(map(str, range(17))), {"dense": 17})
    with refused("17 labels .* task.hidden_layer=true"):
        pretrained.write(many, tmp_path / "out", Format.HUGGING_FACE)
    joint = finetuned(checkpoint, Kind.QUESTION_ANSWERING, (), {"dense": 1, "qa_hidden": 8})
    with refused("--set=task.ends_given_starts=false --set=task.answerability=false"):
        pretrained.write(joint, tmp_path / "out", Format.HUGGING_FACE)
    assert not (tmp_path / "out").exists()


def test_classes_are_written_as_words_and_read_as_the_tasks_labels(checkpoint, tmp_path):
    model, path = written(checkpoint, tmp_path, *CLASSES, task=glue.TASKS["cola"].spec)
    config = json.loads((path / "config.json").read_text())
    assert config["id2label"] == {"0": "unacceptable", "1": "acceptable"}
    assert config["label2id"] == {"unacceptable": 0, "acceptable": 1}
    assert pretrained.read(path).task == model.task
    change_json(path / "config.json", finetuning_task=None)
    spec = pretrained.read(path).task
    assert (spec.name, spec.labels) == ("classification", ("unacceptable", "acceptable"))


@pytest.mark.parametrize(("entry", "length"), [
    (24, 24), (512, 32), (int(1e30), 32), (None, 32)])
def test_max_seq_length_is_the_tokenizers_or_the_encoders(checkpoint, tmp_path, entry, length):
    _, path = written(checkpoint, tmp_path, *CLASSES)
    change_json(path / "tokenizer_config.json", model_max_length=entry)
    assert pretrained.read(path).task_settings["task.max_seq_length"] == length
    change_json(path / "tokenizer_config.json", model_max_length="24")
    with refused("json: 'model_max_length' must be a "):
        pretrained.read(path)


@pytest.mark.parametrize(("entries", "columns"), [
    ({"finetuning_task": "mnli"}, ["sentence1", "sentence2"]),
    ({"finetuning_task": "STS-B", "problem_type": "regression"}, ["sentence1", "sentence2"]),
    ({"finetuning_task": "glue-qqp"}, ["question1", "question2"]),
    ({"finetuning_task": "sst-2", "id2label": {"0": "negative", "1": "positive"}}, ["text"]),
    ({"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}},
     ["text_1", "text_2"]),
    ({"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"},
     ["text_1", "text_2"]), ({}, ["text"])])
def test_config_json_says_that_a_model_reads_pairs(checkpoint, tmp_path, capsys, entries, columns):
    labels = ("no", "yes") if "id2label" in entries else ("no",)
    _, path = written(checkpoint, tmp_path, Kind.CLASSIFICATION, labels, {
        "hidden": 32, "dense": len(labels)}, source=f"{entries}")
    change_json(path / "config.json", **{
        "electra_tf": None, "finetuning_task": None, "id2label": {"0": "no"},
        "label2id": None} | entries)
    assert list(pretrained.read(path).task.text_columns) == columns
    assert ("--text_columns=text,text_pair" in capsys.readouterr().err) == (columns == ["text"])
    (path / "modules.json").write_text(
        '[{"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}]')
    assert len(pretrained.read(path).task.text_columns) == 2  # A CrossEncoder.


def test_columns_of_pairs_are_kept_by_every_conversion(checkpoint, tmp_path, capsys):
    _, out = written(checkpoint, tmp_path, *CLASSES)
    pairs = pretrained.read(out, text_columns=["a", "b"])
    pretrained.write(pairs, tmp_path / "pairs", Format.HUGGING_FACE)
    pretrained.write(pairs, tmp_path / "run", Format.RUN)
    for path in (tmp_path / "pairs", tmp_path / "run"):
        read = pretrained.read(path)
        assert read.task == pairs.task
        assert servable.build(read).columns == ("a", "b")
    assert capsys.readouterr().err == ""
    with refused("takes one column, or two .* 'a,b,c'"):
        pretrained.read(out, text_columns=["a", "b", "c"])
    pretrained.write(checkpoint, tmp_path / "both", Format.HUGGING_FACE)
    for path in (tmp_path / "both", tmp_path / "run"):
        with refused("leave out --text_columns=a,b"):
            pretrained.read(path, text_columns=["a", "b"])


@pytest.mark.parametrize(("change", "words"), [
    (lambda weights: weights.pop("electra.encoder.layer.1.output.dense.bias"),
     "lacks 1 weight: electra.encoder.layer.1.output.dense.bias"),
    (lambda weights: weights.update({"electra.encoder.adapter.bias": np.zeros(3, np.float32)}),
     "1 unexpected weight: electra.encoder.adapter.bias"),
    (lambda weights: {name: value for name, value in weights.items() if "layer.1" not in name},
     "lacks 16 weights: .{,400}$"),
    (lambda weights: weights.update({
        "discriminator_predictions.dense.bias": np.zeros(5, np.float32)}),
     r"discriminator_predictions.dense.bias \(5,\) instead of \(32,\)")])
def test_weights_that_do_not_fit_are_named(pair, change, words):
    change_weights(pair / "discriminator", change)
    with refused(words):
        pretrained.read(pair)


def test_a_class_whose_head_is_missing_is_refused_with_the_entry_that_reads_its_encoder(
        pair, checkpoint, tmp_path):
    _, classifier = written(checkpoint, tmp_path, *CLASSES)
    for directory, architecture in ((pair / "discriminator", "ElectraForPreTraining"),
                                    (classifier, "ElectraForSequenceClassification")):
        change_weights(directory, lambda weights: {
            name: value for name, value in weights.items() if name.startswith("electra.")})
        with refused(f'{architecture} without its head; "architectures": ..ElectraModel"'):
            pretrained.read(directory)
        change_json(directory / "config.json", architectures=["ElectraModel"])
        assert not pretrained.read(directory).has_discriminator


def test_a_preset_of_kerashub_is_named(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({
        "module": "keras_hub.src.models.electra.electra_backbone", "class_name": "ElectraBackbone",
        "config": {"vocabulary_size": 30522}, "registered_name": "keras_hub>ElectraBackbone"}))
    (tmp_path / "model.weights.h5").write_bytes(b"")
    with refused("config.json is of KerasHub.*google/electra-small-discriminator"):
        pretrained.read(tmp_path)


@pytest.mark.parametrize(("tied", "change", "is_right"), [
    (True, 0.0, True), (False, 0.0, True), (False, None, False), (False, 1.0, False),
    (True, 1.0, False)])
def test_a_generators_output_matrix_must_be_its_word_embeddings(
        pair, checkpoint, tied, change, is_right):
    """transformers uses a matrix that differs, whatever tie_word_embeddings says."""
    def add_matrix(weights):
        if change is not None:
            table = weights["electra.embeddings.word_embeddings.weight"].copy()
            table[3, 2] += change
            weights["generator_lm_head.weight"] = table

    change_weights(pair / "generator", add_matrix)
    change_json(pair / "generator" / "config.json", tie_word_embeddings=tied)
    if is_right:
        tiny_networks.require_equal_weights(pretrained.read(pair), checkpoint)
        return
    with refused("generator_lm_head.weight .*tie_word_embeddings"):
        pretrained.read(pair)
    assert pretrained.read(pair / "discriminator").has_discriminator


@pytest.mark.parametrize(("entries", "labels"), [
    ({"id2label": {"0": 0, "1": 1}, "label2id": {"0": 0, "1": 1}}, ["0", "1"]),
    ({"id2label": {"1": "pos", "0": "neg"}, "label2id": {"neg": "0", "pos": "1"}}, ["neg", "pos"]),
    ({"id2label": {"0": "neg", "1": "pos"}, "label2id": {"LABEL_0": 0, "LABEL_1": 1}},
     ["neg", "pos"]),
    ({"id2label": None, "label2id": {"neg": 0, "pos": 1}, "num_labels": 2},
     ["LABEL_0", "LABEL_1"]),
    # transformers leaves out of config.json what is its default.
    ({"id2label": None}, ["LABEL_0", "LABEL_1"]),
    ({"id2label": None, "problem_type": "multi_label_classification"}, ["LABEL_0", "LABEL_1"]),
    ({"id2label": None, "architectures": ["ElectraForTokenClassification"]},
     ["LABEL_0", "LABEL_1", "LABEL_2"]),
    *((entries, None) for entries in (
        {"id2label": {"0": "a"}}, {"id2label": {"0": "a", "1": "a"}},
        {"id2label": {"0": "a", "1": "b", "2": "c"}}, {"id2label": {"0": "a", "1": None}},
        {"id2label": {"1": "no", "2": "yes"}}, {"problem_type": "regression"},
        {"id2label": None, "problem_type": "ranking"}))])
def test_id2label_alone_gives_the_labels_and_encoders_need_none(
        checkpoint, tmp_path, entries, labels, capsys):
    """The labels are those of pipelines of transformers 5.23."""
    kind, outputs, head = (Kind.TAGGING, 3, {}) if "architectures" in entries else (
        Kind.CLASSIFICATION, 2, {"hidden": 32})
    _, path = written(checkpoint, tmp_path, kind, tuple("abc"[:outputs]), head | {"dense": outputs})
    change_json(path / "config.json", label2id=None, electra_tf=None, finetuning_task=None)
    change_json(path / "config.json", **entries)
    for options in ({"encoder_only": True}, {"with_task": False}):
        assert pretrained.read(path, **options).task is None
    if labels is None:
        with refused("id2label|regression.* 2 outputs|problem_type .*'ranking'"):
            pretrained.read(path)
        return
    capsys.readouterr()
    task = pretrained.read(path).task
    assert list(task.labels) == labels
    assert (task.kind is Kind.MULTILABEL) == ("problem_type" in entries)
    is_stale = entries.get("label2id") and [*map(str, entries["label2id"])] != labels
    assert ("label2id" in (err := capsys.readouterr().err)) == bool(is_stale)
    assert not is_stale or "or LABEL_0, LABEL_1 and so on without it" in err


def test_a_generator_with_its_own_embeddings_has_them_at_its_own_size(tmp_path):
    checkpoint = tiny_networks.pretrained(model__embedding_size=24)
    pretrained.write(checkpoint, tmp_path / "out", Format.HUGGING_FACE)
    change_weights(tmp_path / "out" / "generator", lambda weights: weights.update({
        "electra.embeddings.word_embeddings.weight": np.zeros([40, 24], np.float32)}))
    with refused("word_embeddings isn't .* embedding_size equal to hidden_size"):
        pretrained.read(tmp_path / "out")


def test_the_gelu_that_transformers_computes_in_python_is_read(pair):
    for network in ("discriminator", "generator"):
        change_json(pair / network / "config.json", hidden_act="gelu_python")
    assert pretrained.read(pair).has_both


@pytest.mark.parametrize(("file", "changes", "words"), [
    ("config", {"hidden_act": "relu"}, "'hidden_act' must be 'gelu'.* 'relu'"),
    ("config", {"architectures": ["ElectraForCausalLM"]}, "ElectraForCausalLM"),
    ("config", {"position_embedding_type": "relative_key"}, "'position_embedding_type'"),
    ("config", {"pruned_heads": {"0": [1]}}, "pruned_heads"),
    ("config", {"vocab_size": 41}, r"word_embeddings.weight \(40, 16\) instead of \(41, 16\)"),
    ("tokenizer", {"normalizer": {
        "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
        "strip_accents": None, "lowercase": False}}, "generator .* discriminator"),
    ("", {}, "ElectraForMaskedLM; .*discriminator/ and generator/")])
def test_a_config_of_another_kind_is_refused(pair, file, changes, words):
    if file:
        change_json(pair / "discriminator" / f"{file}.json", **changes)
    with refused(words):
        pretrained.read(pair if file else pair / "generator")


@pytest.mark.parametrize("tying", ["everything", "all_embeddings"])
@pytest.mark.parametrize("changes", [{}, {"model__positions": "rotary"}], ids=str)
def test_a_language_model_without_a_discriminator_is_read_as_it_was_written(
        tmp_path, changes, tying):
    """The objectives mlm and replace_mlm train such a model."""
    checkpoint = tiny_networks.without(
        tiny_networks.pretrained(model__tying=tying, **changes), "discriminator_predictions")
    pretrained.write(checkpoint, tmp_path / "out", Format.HUGGING_FACE)
    read = pretrained.read(tmp_path / "out")
    tiny_networks.require_equal_weights(read, checkpoint)
    assert read.config.generator == checkpoint.config.generator


@pytest.mark.parametrize("changes", [
    {}, {"model__positions": "rotary"},
    {"model__architecture": "modernbert", "model__embedding_size": 32}], ids=str)
def test_an_encoder_that_restores_tokens_is_written_as_a_masked_language_model(
        tmp_path, capsys, changes):
    """Byte for byte as a masked language model with the same weights."""
    networks = tiny_networks.with_restorer(tiny_networks.pretrained(**changes))
    pretrained.write(networks, tmp_path / "out", Format.HUGGING_FACE)
    masked_lm = tiny_networks.without(networks, "generator", "discriminator_predictions")
    config = dataclasses.replace(networks.config, tying=Tying.EVERYTHING)
    masked_lm = dataclasses.replace(masked_lm, objective="mlm", config=config, weights={
        name.replace("restorer_", "generator_"): value
        for name, value in masked_lm.weights.items()})
    pretrained.write(masked_lm, tmp_path / "expected", Format.HUGGING_FACE)
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        assert (tmp_path / "out/restorer" / name).read_bytes() == (
            tmp_path / "expected/generator" / name).read_bytes()
    # The other directories are those of ELECTRA, and read without the head.
    capsys.readouterr()
    read = pretrained.read(tmp_path / "out")
    assert "restorer is not read" in capsys.readouterr().err
    assert not read.has_restorer and read.objective == "electra"
    with refused("no place for it" if not changes else "has tables of positions alone"):
        pretrained.write(networks, tmp_path / "google", Format.GOOGLE)
