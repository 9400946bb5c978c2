"""Checkpoints that continue on records with added tokens, or with longer examples."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints.weights import assign_parts
from electra_tf.core.errors import UserError
from electra_tf.modeling.electra import ElectraModel
from electra_tf.objectives.electric import ElectricModel
from electra_tf.objectives.language_models import MaskedLanguageModel
from electra_tf.pretraining import init_from
from electra_tf.pretraining.run import shape_of
from electra_tf.text.normalization import TextSettings
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import named_arrays, tiny_networks

OLD = (*SPECIAL_TOKENS, "[unused0]", "[unused1]", "hep", "##ar", "##in", "in", "a")
WORDS = "electra/embeddings/word_embeddings"
BIAS = "generator_predictions/output_bias"
POSITIONS = "electra/embeddings/position_embeddings"


def vocabulary(*added, **replaced):
    """The old tokens, of which some are replaced by line (`line_6="word"`), and further ones."""
    tokens = [replaced.get(f"line_{number}", token) for number, token in enumerate(OLD, start=1)]
    return Vocabulary((*tokens, *added))


def fit(new, *, positions=None, **changes):
    initial = tiny_networks.pretrained(Vocabulary(OLD, source="old/vocab.txt"), **changes)
    positions = positions or initial.config.max_position_embeddings
    return initial, *init_from.fit(initial, TextSettings(vocabulary=new), positions, "records")


@pytest.mark.parametrize(("token", "pieces"), [
    ("heparin", ["hep", "##ar", "##in"]), ("hep", ["hep"]), ("##arin", ["##ar", "##in"]),
    ("in", ["in"]), ("##inar", ["##in", "##ar"]), ("xyz", ["[UNK]"]), ("##hep", ["[UNK]"]),
    ("##", ["[UNK]"]), ("hepa", ["[UNK]"])])
def test_a_token_splits_into_the_longest_pieces(token, pieces):
    assert init_from.pieces_of(token, Vocabulary(OLD)) == [OLD.index(piece) for piece in pieces]


def test_an_appended_token_begins_as_the_mean_of_its_pieces():
    initial, fitted, notes = fit(vocabulary("heparin", "##x"))
    assert notes == ["1 token (mean of their pieces)",
                     "1 token (copies of [UNK])"]
    assert fitted.config.vocab_size == 14
    for name in (WORDS, BIAS):
        old, new = initial.weights[name], fitted.weights[name]
        np.testing.assert_array_equal(new[:12], old)
        np.testing.assert_allclose(new[12], (old[7] + old[8] + old[9]) / 3, rtol=1e-6)
        np.testing.assert_array_equal(new[13], old[1])
    same = initial.weights.keys() - {WORDS, BIAS}
    assert all(fitted.weights[name] is initial.weights[name] or
               np.array_equal(fitted.weights[name], initial.weights[name]) for name in same)


@pytest.mark.parametrize("tying", ["none", "token_embeddings", "everything"])
def test_every_table_of_words_grows(tying):
    changes = {"model__embedding_size": 32} if tying == "none" else {}
    _, fitted, _ = fit(vocabulary("heparin"), model__tying=tying, **changes)
    tables = {name: value.shape[0] for name, value in fitted.weights.items()
              if "word_embeddings" in name or "output_bias" in name}
    assert len(tables) == (3 if tying == "none" else 2)
    assert set(tables.values()) == {13}


@pytest.mark.parametrize(("replaced", "line", "sources", "notes"), [
    ({"line_6": "inin"}, 5, [10, 9], ["1 token (mean of their pieces)"]),
    ({"line_6": "a", "line_12": "[unused5]"}, 5, [11], ["1 token (mean of their pieces)"]),
    ({"line_6": "[unused99]"}, 5, [5], []), ({"line_12": "[unused3]"}, 11, [11], [])])
def test_an_unused_line_keeps_its_row_or_gets_one_from_pieces(replaced, line, sources, notes):
    initial, fitted, printed = fit(vocabulary(**replaced))
    old, new = initial.weights[WORDS], fitted.weights[WORDS]
    np.testing.assert_allclose(new[line], old[sources].mean(axis=0), rtol=1e-6)
    np.testing.assert_array_equal(np.delete(new, line, axis=0), np.delete(old, line, axis=0))
    assert printed == notes


def test_further_positions_are_copies_of_the_first():
    initial, fitted, notes = fit(vocabulary(), positions=80)
    old = initial.weights[POSITIONS]
    assert len(old) == 32
    np.testing.assert_array_equal(
        fitted.weights[POSITIONS], np.concatenate([old, old, old[:16]]))
    assert notes == ["positions 32 to 79 (copies of the first 32)"]
    assert fitted.config.max_position_embeddings == 80


def test_rows_of_padding_beyond_the_vocabulary_are_not_kept():
    initial = tiny_networks.pretrained(Vocabulary((*OLD, "pad1", "pad2")))
    padded = dataclasses.replace(initial, text=TextSettings(vocabulary=Vocabulary(OLD)))
    fitted, _ = init_from.fit(padded, TextSettings(vocabulary=vocabulary("heparin")), 32, "r")
    assert fitted.weights[WORDS].shape[0] == 13
    np.testing.assert_allclose(
        fitted.weights[WORDS][12], initial.weights[WORDS][7:10].mean(axis=0), rtol=1e-6)


@pytest.mark.parametrize(("new", "words"), [
    (vocabulary(line_8="other"), "in 1 lines, first in line 8: 'other' instead of 'hep'"),
    (Vocabulary((*SPECIAL_TOKENS, "new", *OLD[5:])), "in 4 lines, first in line 9"),
    (Vocabulary(OLD[:-1]), "has 11 tokens, fewer than the 12")])
def test_other_vocabularies_are_refused_with_the_first_difference(new, words):
    with pytest.raises(UserError) as error:
        fit(new)
    assert words in str(error.value)
    assert "--vocab_file=old/vocab.txt" in str(error.value)


def generator_of_encoder(parts=("generator", "discriminator_predictions"), **changes):
    """An `ElectraModel` on an encoder, of which `parts` are left out, and the new parts' text."""
    checkpoint = tiny_networks.pretrained(
        **{"model__intermediate_size": 128, "model__generator_width": 1.0} | changes)
    model = ElectraModel(checkpoint.config, seed=0)
    weights, notes = init_from.copy_to_generator(
        tiny_networks.without(checkpoint, *parts).weights, model.variables)
    assign_parts(model.variables, weights, "the encoder")
    return model, notes


@pytest.mark.parametrize("tying", ["all_embeddings", "token_embeddings", "none"])
def test_a_generator_of_all_layers_computes_the_encoder_s_vectors(tying):
    embedding_size = 32 if tying == "none" else 16
    model, notes = generator_of_encoder(
        model__tying=tying, model__embedding_size=embedding_size, model__num_heads=4)
    assert notes == ["generator (copy of the encoder's first 2 layers)"]
    ids = tf.constant([[2, 7, 8, 9, 3], [2, 5, 3, 0, 0]])
    segments, padding_mask = tf.zeros_like(ids), ids > 0
    np.testing.assert_array_equal(model.generator.encode(ids, segments, padding_mask),
                                  model.discriminator.encoder(ids, segments, padding_mask))


def test_a_generator_of_fewer_layers_begins_with_the_first():
    model, notes = generator_of_encoder(model__generator_depth=0.5)
    assert notes == ["generator (copy of the encoder's first layer)"]
    weights = {variable.name.split(":")[0]: variable.numpy() for variable in model.variables}
    copies = {name for name in weights if name.startswith("generator/")}
    assert copies and not any("layer_1" in name for name in copies)
    for name in copies:
        np.testing.assert_array_equal(
            weights[name], weights[name.replace("generator/", "electra/")])


@pytest.mark.parametrize("options", [
    {"model__generator_width": 0.5}, {"model__intermediate_size": 64}, {"parts": ("nothing",)}])
def test_a_generator_of_another_shape_or_of_the_checkpoint_is_no_copy(options):
    model, notes = generator_of_encoder(**options)
    assert notes == []
    query = "encoder/layer_0/attention/self/query/kernel"
    own, encoders = (next(variable for variable in model.variables if variable.name.startswith(
        f"{part}/{query}")).numpy() for part in ("generator", "electra"))
    assert own.shape != encoders.shape or not np.array_equal(own, encoders)


@pytest.mark.parametrize(("generator_width", "new_head"), [(0.5, True), (1.0, False)])
def test_a_masked_language_models_head_is_new_above_a_generator_that_is_no_copy(
        generator_width, new_head):
    sizes = {"model__intermediate_size": 128, "model__generator_width": generator_width}
    language_model = tiny_networks.without(
        tiny_networks.pretrained(model__tying="everything", **sizes), "discriminator_predictions")
    model = ElectraModel(tiny_networks.pretrained(**sizes).config, seed=0)
    weights, _ = init_from.copy_to_generator(language_model.weights, model.trainable_variables)
    new = assign_parts(model.trainable_variables, weights, "the language model")
    assert new == ["discriminator_predictions"] + new_head * ["generator", "generator_predictions"]
    assert np.array_equal(model.generator.head.output_bias,
                          language_model.weights[BIAS]) is not new_head


@pytest.mark.parametrize("generator_width", [0.5, 1.0])
def test_a_generators_head_is_not_put_above_the_encoder(generator_width):
    checkpoint = tiny_networks.pretrained(model__generator_width=generator_width)
    model = MaskedLanguageModel(checkpoint.config, seed=0)
    weights, _ = init_from.copy_to_generator(checkpoint.weights, model.trainable_variables)
    assert assign_parts(model.trainable_variables, weights, "both") == ["generator_predictions"]


@pytest.mark.parametrize(("generator_width", "notes"), [
    (0.5, []), (1.0, ["generator (copy of the encoder's first 2 layers)"])])
def test_electrics_embeddings_alone_are_no_generator(generator_width, notes):
    config = tiny_networks.pretrained(model__generator_width=generator_width, model__num_heads=2,
                                      model__intermediate_size=128,
                                      model__tying="token_embeddings").config
    electric, model = ElectricModel(config, seed=0), ElectraModel(config, seed=1)
    weights, copies = init_from.copy_to_generator(
        named_arrays.of(electric.variables), model.trainable_variables)
    assert copies == notes
    assert assign_parts(model.trainable_variables, weights, "electric") == (
        [] if notes else ["generator"]) + ["generator_predictions"]
    loaded, again = named_arrays.of(model.variables), ElectricModel(config, seed=1)
    for variable in electric.discriminator.variables:
        np.testing.assert_array_equal(loaded[variable.name.split(":")[0]], variable)
    # And back: Electric's embeddings are those of the generator, or copies of the encoder's.
    for parts, words in (((), []), (("generator/",), ["generator (copy of the encoder's "
                                                      "embeddings)"])):
        kept = {name: value for name, value in loaded.items() if not name.startswith(parts)}
        weights, copies = init_from.copy_to_generator(kept, again.trainable_variables)
        assert copies == words
        assert "generator" not in assign_parts(again.trainable_variables, weights, "electra")


@pytest.mark.parametrize(("changes", "has_generator"), [
    ({"model__positions": "rotary"}, True), ({"model__tying": "everything"}, False)])
def test_a_run_takes_the_size_of_a_generator_without_a_discriminator(changes, has_generator):
    """Directories of RoFormer lack that head; a masked language model has no generator."""
    initial = tiny_networks.without(
        tiny_networks.pretrained(model__generator_depth=0.5, **changes),
        "discriminator_predictions")
    shape = shape_of(initial)
    assert shape["model.hidden_size"] == 32
    assert shape.get("model.generator_depth") == (0.5 if has_generator else None)
    assert shape.get("model.tying") == ("all_embeddings" if has_generator else None)


def test_a_run_takes_the_size_of_electrics_towers():
    initial = tiny_networks.pretrained(model__generator_width=0.5, model__generator_depth=0.5)
    towers = named_arrays.of(ElectricModel(initial.config, seed=0).variables)
    shape = shape_of(dataclasses.replace(initial, objective="electric", weights=towers))
    assert (shape["model.generator_width"], shape["model.generator_depth"]) == (0.5, 0.5)
