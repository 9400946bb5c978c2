"""ModernBERT's layers, heads and directories are those of transformers, to 1e-5 in float32."""

import dataclasses
import subprocess

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from electra_tf.config.model import Architecture
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.modeling.encoder import create_encoder
from electra_tf.modeling.layers import LayerOptions
from electra_tf.tasks.task import Kind
from tests.parity import modernbert_outputs, our_outputs
from tests.support import golden_files, named_arrays, peers, seeded, tiny_networks

GOLDEN = golden_files.load("modernbert_hidden")
MODERN = {"model__architecture": Architecture.MODERNBERT, "model__embedding_size": 32,
          "model__attention_window": 4, "model__generator_width": 1.0, "model__num_layers": 3,
          "model__generator_depth": 0.5}
HEADS = {
    "classes": (Kind.CLASSIFICATION, ("a", "b", "c"), {"task.hidden_layer": True}),
    "classes_of_means": (Kind.CLASSIFICATION, ("a", "b"), {
        "task.hidden_layer": True, "task.classifier_pooling": "mean"}),
    "number": (Kind.REGRESSION, (), {"task.hidden_layer": True}),
    "tags": (Kind.TAGGING, ("B-X", "I-X", "O"), {"task.hidden_layer": True}),
    "questions": (Kind.QUESTION_ANSWERING, (), {
        "task.hidden_layer": True, **tiny_networks.NO_ANSWERABILITY})}


def tuned(name):
    """A fine-tuned model with all weights of its head by their names."""
    kind, labels, settings = HEADS[name]
    checkpoint = tiny_networks.finetuned(
        tiny_networks.pretrained(**MODERN), kind, labels, {}, settings=settings)
    objective = tiny_networks.task_objective(
        kind, len(labels), **{key.removeprefix("task."): value for key, value in settings.items()})
    head = named_arrays.of(objective.build_head(checkpoint.config, seed=0).variables)
    return dataclasses.replace(checkpoint, weights=checkpoint.weights | {
        name: seeded.weight(name, value.shape) for name, value in head.items()})


@pytest.mark.parametrize("name", modernbert_outputs.CASES)
def test_hidden_vectors_of_every_length_are_the_golden_ones(tmp_path, name):
    modernbert_outputs.write(name, tmp_path / name)
    checkpoint = pretrained.read(tmp_path / name)
    encoder = create_encoder(checkpoint.config.discriminator, LayerOptions(seed=0))
    named_arrays.assign(encoder.variables, checkpoint.weights)
    for length in modernbert_outputs.LENGTHS:
        ids, mask = modernbert_outputs.batch(length)
        ids = tf.constant(ids, tf.int32)
        hidden = encoder(ids, tf.zeros_like(ids), tf.constant(mask)).numpy()
        np.testing.assert_allclose(modernbert_outputs.kept(hidden), GOLDEN[f"{name}|{length}"],
                                   rtol=0, atol=1e-5, err_msg=str(length))


@pytest.mark.parametrize("name", modernbert_outputs.CASES)
def test_a_directory_is_written_as_it_was_read(tmp_path, name):
    modernbert_outputs.write(name, tmp_path / name)
    pretrained.write(pretrained.read(tmp_path / name), tmp_path / "out", Format.HUGGING_FACE)
    theirs, ours = (load_file(path / "model.safetensors")
                    for path in (tmp_path / name, tmp_path / "out" / "discriminator"))
    assert {f"model.{key}" for key in theirs} == ours.keys()
    for key, value in theirs.items():
        np.testing.assert_array_equal(ours[f"model.{key}"], value)


def test_the_golden_file_has_every_case():
    assert GOLDEN.keys() == {f"{name}|{length}" for name in modernbert_outputs.CASES
                             for length in modernbert_outputs.LENGTHS}


@pytest.fixture(scope="module")
def pytorch(tmp_path_factory):
    """Returns PyTorch's outputs of everything that the converter writes: one process for all."""
    root = tmp_path_factory.mktemp("pytorch")
    pretrained.write(tiny_networks.pretrained(**MODERN), root / "pair", Format.HUGGING_FACE)
    for name in HEADS:
        pretrained.write(tuned(name), root / name, Format.HUGGING_FACE)
    return root, peers.run(root, ["a text"])


@peers.needed
class TestInPyTorch:
    def test_nothing_is_missing_or_left_over(self, pytorch):
        _, outputs = pytorch
        assert len(outputs.report) == 2 + len(HEADS)
        for name, report in outputs.report.items():
            assert not any(report["model"].values()), (name, report["model"])
            assert not any(key.startswith("model.") for keys in report["auto_model"].values()
                           for key in keys), (name, report["auto_model"])

    def test_pre_trained_networks_compute_the_same(self, pytorch):
        values = our_outputs.of_networks(tiny_networks.pretrained(**MODERN))
        mask = seeded.batch()["attention_mask"] > 0
        for network in ("discriminator", "generator"):
            arrays = {name.split("|")[1]: value for name, value in pytorch[1].arrays.items()
                      if name.startswith(f"pair/{network}|")}
            shared = arrays.keys() & values[network].keys()
            assert len(shared) >= (3 if network == "generator" else 4)
            for name in shared:
                np.testing.assert_allclose(values[network][name][mask], arrays[name][mask], rtol=0,
                                           atol=1e-5, err_msg=f"{network} {name}")

    @pytest.mark.parametrize("name", HEADS)
    def test_fine_tuned_models_compute_the_same(self, pytorch, tmp_path, name):
        values = our_outputs.of_task(tuned(name), tmp_path / "run")
        mask = seeded.batch()["attention_mask"] > 0
        for key in ("logits", "start_logits", "end_logits"):
            expected = pytorch[1].arrays.get(f"{name}|{key}")
            if expected is not None and key in values:
                by_token = expected.shape[:2] == mask.shape
                np.testing.assert_allclose(*(value[mask] if by_token else value for value in (
                    values[key], expected)), rtol=0, atol=1e-5, err_msg=key)

    @pytest.mark.parametrize("name", ["pair", *HEADS])
    def test_what_transformers_saves_has_the_same_weights(self, pytorch, name):
        root, outputs = pytorch
        network = "pair/generator" if name == "pair" else name
        written, saved = (load_file(path / network / "model.safetensors")
                          for path in (root, outputs.saved))
        assert written.keys() == saved.keys()
        for key, value in written.items():
            np.testing.assert_array_equal(saved[key], value)
        checkpoint = pretrained.read(outputs.saved / network)
        assert checkpoint.config.is_modern
        assert (checkpoint.task is None) == (name == "pair")

    def test_the_golden_numbers_are_theirs(self, tmp_path):
        subprocess.run([str(peers.PYTHON), "-m", "tests.parity.modernbert_outputs",
                        str(tmp_path / "hidden.npz")], cwd=peers.ROOT, check=True,
                       timeout=peers.TIME_LIMIT)
        with np.load(tmp_path / "hidden.npz") as arrays:
            assert {*arrays.files} == GOLDEN.keys()
            for name, value in GOLDEN.items():
                np.testing.assert_allclose(arrays[name], value, rtol=0, atol=5e-6, err_msg=name)
