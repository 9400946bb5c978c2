"""Networks move between the formats without a difference; what doesn't fit is refused by name."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file
from scipy import special

from electra_tf.checkpoints import formats, google
from electra_tf.checkpoints.formats import Format
from electra_tf.command_line import UserError
from electra_tf.tasks.examples import Kind
from electra_tf.tasks.task import TaskSpec
from electra_tf.tools import convert_checkpoint
from tests import command_flags, tiny_encoder

NAMES = json.loads(
    (Path(__file__).parent / "golden" / "transformers_5.23_names.json").read_text())
"""Parameters and shapes of five architectures, of the tiny sizes, as transformers lists them."""


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """The tiny networks, as `formats.read` takes them from a run's directory."""
    directory = tmp_path_factory.mktemp("networks") / "run"
    tiny_encoder.write(directory)
    return formats.read(directory)


def require_equal(first, second):
    assert first.weights.keys() == second.weights.keys()
    for name, value in first.weights.items():
        np.testing.assert_array_equal(second.weights[name], value)
    assert first.model.discriminator == second.model.discriminator
    assert first.model.generator == second.model.generator
    assert first.text.vocabulary == second.text.vocabulary
    assert (first.text.lower_case, first.text.strip_accents) == (
        second.text.lower_case, second.text.strip_accents)


@pytest.mark.parametrize("form", list(Format))
def test_a_format_gives_back_what_it_was_given(networks, tmp_path, form):
    formats.write(networks, tmp_path / "out", form)
    assert formats.format_of(tmp_path / "out") is form
    options = {"num_heads": networks.model.num_heads} if form is Format.GOOGLE else {}
    found = formats.read(tmp_path / "out", **options)
    if form is Format.GOOGLE:  # It knows neither dropout nor the range of initial weights.
        assert found.model.discriminator.num_layers == 2
        assert found.weights.keys() == networks.weights.keys()
        for name, value in networks.weights.items():
            np.testing.assert_array_equal(found.weights[name], value)
    else:
        require_equal(networks, found)


@pytest.mark.parametrize("network", ["discriminator", "generator"])
def test_names_and_shapes_are_those_that_transformers_wants(networks, tmp_path, network):
    formats.write(networks, tmp_path / "out", Format.HUGGING_FACE)
    found = {name: list(value.shape) for name, value in load_file(
        tmp_path / "out" / network / "model.safetensors").items()}
    assert found == NAMES[network]


def finetuned(networks, kind, labels, head, **settings):
    """The encoder with a head of random weights."""
    numbers = np.random.default_rng(7)
    weights = dict(networks.encoder_weights)
    for name, outputs in head.items():
        weights[f"head/{name}/kernel"] = numbers.normal(size=[32, outputs]).astype(np.float32)
        weights[f"head/{name}/bias"] = numbers.normal(size=[outputs]).astype(np.float32)
    return dataclasses.replace(
        networks, weights=weights, head_settings=settings,
        task=TaskSpec(name=str(kind), kind=kind, labels=labels, metrics=("accuracy",)))


PLAIN = {"task.ends_given_starts": False, "task.answerability": False}


@pytest.mark.parametrize(("kind", "labels", "head", "settings"), [
    (Kind.CLASSIFICATION, ("no", "yes"), {"dense": 2}, {}),
    (Kind.CLASSIFICATION, ("no", "yes"), {"hidden": 32, "dense": 2}, {"task.hidden_layer": True}),
    (Kind.TAGGING, ("B-X", "I-X", "O"), {"dense": 3}, {}),
    (Kind.QUESTION_ANSWERING, (), {"dense": 1, "dense_1": 1}, PLAIN),
])
def test_a_finetuned_model_has_the_names_that_transformers_wants(
        networks, tmp_path, kind, labels, head, settings):
    model = finetuned(networks, kind, labels, head, **settings)
    formats.write(model, tmp_path / "out", Format.HUGGING_FACE)
    found = {name: list(value.shape) for name, value in load_file(
        tmp_path / "out" / "model.safetensors").items()}
    assert found == NAMES[kind]
    again = formats.read(tmp_path / "out")
    assert (again.task.kind, again.task.labels) == (kind, labels)
    if again.head_settings == settings:
        for name, value in model.weights.items():
            np.testing.assert_array_equal(again.weights[name], value)


def test_a_head_without_a_hidden_layer_computes_the_same_through_gelu(networks, tmp_path):
    model = finetuned(networks, Kind.CLASSIFICATION, ("no", "yes"), {"dense": 2})
    formats.write(model, tmp_path / "out", Format.HUGGING_FACE)
    theirs = load_file(tmp_path / "out" / "model.safetensors")
    vectors = np.random.default_rng(8).normal(size=[5, 32]).astype(np.float32)
    hidden = vectors @ theirs["classifier.dense.weight"].T + theirs["classifier.dense.bias"]
    hidden *= 0.5 * (1.0 + special.erf(hidden / np.sqrt(2.0)))
    logits = hidden @ theirs["classifier.out_proj.weight"].T + theirs["classifier.out_proj.bias"]
    expected = vectors @ model.weights["head/dense/kernel"] + model.weights["head/dense/bias"]
    np.testing.assert_allclose(logits, expected, atol=2e-5)


def test_heads_that_it_has_not_are_refused(networks, tmp_path):
    many = finetuned(networks, Kind.CLASSIFICATION, tuple(map(str, range(17))), {"dense": 17})
    with pytest.raises(UserError, match="17 labels don't fit .* task.hidden_layer=true"):
        formats.write(many, tmp_path / "out", Format.HUGGING_FACE)
    joint = finetuned(networks, Kind.QUESTION_ANSWERING, (), {"dense": 1, "qa_hidden": 8})
    with pytest.raises(UserError, match="task.ends_given_starts=false"):
        formats.write(joint, tmp_path / "out", Format.HUGGING_FACE)
    with pytest.raises(UserError, match="is a fine-tuned model; Google's form"):
        formats.write(finetuned(networks, Kind.TAGGING, ("O",), {"dense": 1}), tmp_path / "out",
                      Format.GOOGLE)


def test_a_discriminator_alone_is_enough(networks, tmp_path):
    formats.write(networks, tmp_path / "out", Format.HUGGING_FACE)
    found = formats.read(tmp_path / "out" / "discriminator")
    assert not any(name.startswith("generator") for name in found.weights)
    assert found.encoder_weights.keys() == networks.encoder_weights.keys()


def test_a_checkpoint_of_google_may_hold_slots_and_a_step(networks, tmp_path):
    google.write(networks, tmp_path / "first")
    names = sorted(networks.weights)
    values = [networks.weights[name] for name in names]
    more = [*names, *(f"{name}/adam_m" for name in names), "global_step"]
    tf.raw_ops.SaveV2(
        prefix=tf.constant(str(tmp_path / "second.ckpt-4")), tensor_names=tf.constant(more),
        shape_and_slices=tf.constant([""] * len(more)),
        tensors=[tf.constant(value) for value in [*values, *values, np.int64(4)]])
    found = formats.read(tmp_path / "second.ckpt-4", num_heads=2,
                         vocab_file=tmp_path / "first" / "vocab.txt")
    assert found.weights.keys() == networks.weights.keys()
    assert found.model.generator.hidden_size == 16


def damaged_hugging_face(networks, directory, change):
    """Writes a pair, and its discriminator's weights again after `change`."""
    formats.write(networks, directory, Format.HUGGING_FACE)
    path = directory / "discriminator" / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path)


@pytest.mark.parametrize(("change", "words"), [
    (lambda weights: weights.pop("electra.encoder.layer.1.output.dense.bias"),
     ["lacks 1 weights", "electra.encoder.layer.1.output.dense.bias"]),
    (lambda weights: weights.update({"classifier.weight": np.zeros(3, np.float32)}),
     ["no place in ELECTRA for 1 weights", "classifier.weight"]),
    (lambda weights: weights.update({
        "discriminator_predictions.dense.bias": np.zeros(5, np.float32)}),
     ["another shape for 1 weights", "discriminator_predictions/dense/bias (5,) instead of (32,)"]),
    (lambda weights: weights.update({
        "electra.embeddings.LayerNorm.bias": np.ones(16, np.float32)}),
     ["electra/embeddings/LayerNorm/beta isn't the discriminator's"]),
])
def test_weights_that_dont_fit_are_named(networks, tmp_path, change, words):
    damaged_hugging_face(networks, tmp_path / "out", change)
    with pytest.raises(UserError) as error:
        formats.read(tmp_path / "out")
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize(("changes", "words"), [
    ({"model_type": "bert"}, "model_type is 'bert'; ELECTRA's is 'electra'"),
    ({"hidden_act": "relu"}, "hidden_act is 'relu'"),
    ({"architectures": ["ElectraForCausalLM"]}, "the architecture is ElectraForCausalLM"),
    ({"num_hidden_layers": 3}, "lacks 16 weights: electra.encoder.layer.2"),
])
def test_a_config_of_another_kind_is_refused(networks, tmp_path, changes, words):
    formats.write(networks, tmp_path / "out", Format.HUGGING_FACE)
    path = tmp_path / "out" / "discriminator" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(UserError, match=words):
        formats.read(tmp_path / "out")


def test_damaged_and_missing_files_are_one_line(networks, tmp_path):
    with pytest.raises(UserError, match="holds no checkpoint: neither settings.json"):
        formats.read(tmp_path)
    formats.write(networks, tmp_path / "out", Format.HUGGING_FACE)
    path = tmp_path / "out" / "discriminator" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match="model.safetensors is damaged"):
        formats.read(tmp_path / "out")
    path.unlink()
    with pytest.raises(UserError, match="Only safetensors are read"):
        formats.read(tmp_path / "out")
    google.write(networks, tmp_path / "google")
    (tmp_path / "google" / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n")
    with pytest.raises(UserError, match="vocab.txt has 6 entries, .* 40"):
        formats.read(tmp_path / "google", num_heads=2)


class TestTheCommand:
    @pytest.fixture(autouse=True)
    def program_flags(self):
        with command_flags.defined(convert_checkpoint.define):
            yield

    def call(self, *arguments):
        command_flags.call(convert_checkpoint.main, *map(str, arguments))

    def test_it_converts_and_says_what(self, networks, tmp_path, capsys):
        source = networks.source.split(",")[0]
        self.call(f"--from={source}", f"--to={tmp_path / 'new' / 'hf'}",
                  "--to_format=hugging_face")
        assert capsys.readouterr().out.startswith(f"{len(networks.weights)} weights, ")
        require_equal(networks, formats.read(tmp_path / "new" / "hf"))
        assert [path.name for path in (tmp_path / "new").iterdir()] == ["hf"]

    def test_mistakes_write_nothing(self, networks, tmp_path):
        source = networks.source.split(",")[0]
        target = tmp_path / "new"
        for arguments, words in (
                (["--to_format=torch"], "--to_format must be one of run, google, hugging_face"),
                ([], "--to_format is needed"),
                (["--to_format=run", f"--from={tmp_path}"], "holds no checkpoint"),
                (["--to_format=run", f"--to={tmp_path}"], "exists already")):
            with pytest.raises(UserError, match=words):
                self.call(f"--from={source}", f"--to={target}", *arguments)
        assert list(tmp_path.iterdir()) == []
