"""Directories of sentence-transformers: pooling, normalization and length are those of `embed`."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.api import electra
from electra_tf.core import storage
from electra_tf.formats import hugging_face, pretrained
from electra_tf.formats.pretrained import Format, Pooling
from electra_tf.tasks.task import Kind
from tests.support import hugging_face_files, tiny_networks
from tests.support.refusals import refused

TYPES = "sentence_transformers.models."
TEXTS = ["a text", "the longer text of the other", ""]
ALL = ("cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens",
       "lasttoken")


def write(directory, *names, pooling=None, encoder=None, folder="", kind="Transformer"):
    paths = [folder, *(f"{index}_{name}" for index, name in enumerate(names, start=1))]
    (directory / "modules.json").write_text(json.dumps([
        {"idx": index, "name": str(index), "path": path, "type": TYPES + name}
        for index, (path, name) in enumerate(zip(paths, (kind, *names), strict=True))]))
    if pooling is not None:
        (directory / "1_Pooling").mkdir(exist_ok=True)
        (directory / "1_Pooling" / "config.json").write_text(
            json.dumps({"word_embedding_dimension": 32} | pooling))
    if encoder is not None:
        (directory / folder / "sentence_bert_config.json").write_text(json.dumps(encoder))


def by_hand(loaded, modes, length):
    """Pools the vectors of the tokens with NumPy, row by row, as the formulas say."""
    rows = []
    for text in TEXTS:
        ids = loaded.encoder.tokens(tf.constant([text])).ids.numpy()[0]
        if len(ids) > length:
            ids = np.append(ids[:length - 1], ids[-1])
        vectors = loaded.encoder(ids[np.newaxis]).numpy()[0]
        positions = np.arange(1, len(ids) + 1)
        pooled = {"cls_token": vectors[0], "max_tokens": vectors.max(0),
                  "mean_tokens": vectors.mean(0), "lasttoken": vectors[-1],
                  "mean_sqrt_len_tokens": vectors.sum(0) / np.sqrt(len(ids)),
                  "weightedmean_tokens": positions @ vectors / positions.sum()}
        rows.append(np.concatenate([pooled[mode] for mode in modes]))
    return np.stack(rows)


def test_the_pooling_normalization_and_length_are_those_of_its_files(pair):
    directory = pair / "discriminator"
    write(directory, "Pooling", "Normalize", encoder={"max_seq_length": 6},
          pooling={f"pooling_mode_{mode}": True for mode in ALL})
    loaded = electra.load(directory)
    expected = by_hand(loaded, ALL, 6)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    cls = by_hand(loaded, ["cls_token"], 6)
    cls /= np.linalg.norm(cls, axis=1, keepdims=True)
    for arguments, expected_vectors in ({}, expected), ({"pooling": "cls"}, cls):
        with pytest.warns(UserWarning, match="1 of 3 texts are longer than max_length=6 tokens"):
            vectors = loaded.embed(TEXTS, **arguments)
        np.testing.assert_allclose(vectors, expected_vectors, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("encoder", "tokenizer", "length"), [
    ({"transformer_task": "feature-extraction"}, {"model_max_length": 7}, 7),  # Versions 5 and 6.
    (None, {"model_max_length": 7}, 7),
    ({"max_seq_length": 5}, {"model_max_length": 7}, 5),
    ({"max_seq_length": None}, {"model_max_length": int(1e30)}, 32),
    ({}, {"model_max_length": 512}, 32), ({}, {"model_max_length": None, "max_len": 3}, 3)])
def test_without_a_length_the_tokenizers_is_that_of_vectors(pair, encoder, tokenizer, length):
    """min(max_position_embeddings, model_max_length), as sentence-transformers takes."""
    directory = pair / "discriminator"
    hugging_face_files.change_json(directory / "tokenizer_config.json", **tokenizer)
    assert pretrained.read(directory).pooling == Pooling()  # Without modules.json.
    write(directory, "Pooling", encoder=encoder, pooling={})
    pooling = pretrained.read(directory).pooling
    assert (pooling.max_length or 32, pooling.modes) == (length, ("mean",))


@pytest.mark.parametrize(("pooling", "modes"), [
    ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, ("cls",)),
    ({"pooling_mode_cls_token": True}, ("cls", "mean")),
    ({"pooling_mode": "lasttoken"}, ("lasttoken",)),
    ({"pooling_mode": ["mean", "cls"], "include_prompt": True}, ("mean", "cls")),
    ({"pooling_mode_max_tokens": True, "pooling_mode_cls_token": True}, ("cls", "max", "mean")),
    ({"pooling_mode_mean_sqrt_len_tokens": True, "pooling_mode_mean_tokens": False},
     ("mean_sqrt_len_tokens",))])
def test_every_form_of_its_configuration_is_read(pair, tmp_path, pooling, modes):
    """A list has an order; switches have that of `Pooling.forward` of version 6.2.0."""
    write(pair / "discriminator", "Pooling", "Normalize", pooling=pooling)
    checkpoint = pretrained.read(pair / "discriminator")
    assert checkpoint.pooling.modes == modes
    hugging_face.write_encoder(
        tiny_networks.without(checkpoint, "discriminator"), storage.path(tmp_path / "copy"))
    assert pretrained.read(tmp_path / "copy").pooling.modes == modes


@pytest.mark.parametrize(("folder", "kind"), [("0_Transformer", "Transformer"), ("0_BERT", "BERT")])
def test_the_old_layout_has_the_encoder_in_a_folder(pair, folder, kind):
    (pair / "discriminator").rename(pair / folder)
    write(pair, "Pooling", folder=folder, kind=kind, pooling={},
          encoder={"max_seq_length": 5, "do_lower_case": True})
    checkpoint = pretrained.read(pair)
    assert (checkpoint.pooling.max_length, checkpoint.text.normalization.lower_case) == (5, True)


@pytest.mark.parametrize(("names", "pooling", "words"), [
    (("Pooling", "Dense"), {}, "Transformer, Pooling, Dense; .* modules.json"),
    (("Pooling",), {"pooling_mode_attention": True}, "'mean', 'pooling_mode_attention'"),
    (("Pooling",), {"pooling_mode": "first"}, "1_Pooling/config.json"),
    (("Pooling",), {}, "default_prompt_name is 'query'")])
def test_modules_that_are_not_computed_are_refused_by_name(pair, names, pooling, words):
    write(pair / "discriminator", *names, pooling=pooling)
    if "prompt" in words:
        hugging_face_files.change_json(
            pair / "discriminator" / "config_sentence_transformers.json",
            prompts={"query": "query: "}, default_prompt_name="query")
    with refused(words):
        pretrained.read(pair / "discriminator")


# `SentenceTransformer(directory).encode` of version 6.2.0 on the two texts, the first 3 components,
# for directories as this test writes them.
ENCODED = {
    "cls": ((-0.165615365, 0.035028234, 0.030478405), (-0.084265418, 0.110005662, 0.043485507)),
    "max": ((-0.032842591, 0.035024285, 0.112384483), (0.063356131, 0.130343556, 0.042881247)),
    "mean": ((-0.122906774, -0.016685124, 0.042940192), (-0.066621698, 0.067003243, -0.088734791)),
    "mean_sqrt_len_tokens": ((-0.122906759, -0.016685123, 0.042940188),
                             (-0.066621698, 0.067003243, -0.088734783)),
    "weightedmean": ((-0.104151890, -0.028407402, 0.047220517),
                     (-0.046766702, 0.077854343, -0.115756698)),
    "lasttoken": ((-0.104344286, -0.038683701, 0.053417612),
                  (-0.034197014, 0.156433702, -0.121962406)),
}


@pytest.mark.parametrize("mode", ENCODED)
def test_trained_embeddings_are_written_as_it_reads_them(tmp_path, mode):
    settings = {"task.pooling": mode, "task.max_seq_length": 8}
    checkpoint = dataclasses.replace(
        tiny_networks.finetuned(tiny_networks.pretrained(), Kind.SENTENCE_EMBEDDINGS, (), {},
                                settings=settings),
        pooling=Pooling(modes=(mode,), normalize=True, max_length=8))
    directory = storage.path(tmp_path / "model")
    pretrained.write(checkpoint, directory, Format.HUGGING_FACE)
    with pytest.warns(UserWarning, match="were cut"):
        vectors = electra.load(directory).embed([
            "word1 word2 word3", "word4 word5 word6 word7 word8 word9 word1 word2"])
    np.testing.assert_allclose(vectors[:, :3], ENCODED[mode], rtol=0, atol=1e-6)
    switch = {"cls": "cls_token", "lasttoken": "lasttoken",
              "mean_sqrt_len_tokens": "mean_sqrt_len_tokens"}.get(mode, f"{mode}_tokens")
    content = json.loads((directory / "1_Pooling" / "config.json").read_text())
    assert [name for name, value in content.items() if value is True] == [f"pooling_mode_{switch}"]
    read_again = pretrained.read(directory)
    assert (read_again.task.kind, read_again.task_settings) == (
        Kind.SENTENCE_EMBEDDINGS, settings)
