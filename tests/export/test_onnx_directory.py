"""An exported ONNX directory answers strings as the SavedModel does, or it isn't written."""

import json

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("tokenizers", reason="The extra `onnx` is not installed.")

from electra_tf.export import onnx_directory
from electra_tf.export.onnx_runtime import OnnxModel
from electra_tf.export.servable import TextEncoder
from electra_tf.modeling.fused import inference_mode
from electra_tf.tasks.task import Kind, TextExample
from electra_tf.text.rows import RowEncoder
from electra_tf.text.tokenization import UNCASED, Normalization, TextSettings
from electra_tf.text.vocabulary import Vocabulary
from tests.export.served_models import Example, example, tiny_discriminator
from tests.parity import tokenizer_directories
from tests.support.few_words import TEXT
from tests.support.refusals import refused
from tests.text import nasty_lines

FIRST = ["The café won (in 1999).", "", "Who?", "a b c a b c a b c a b c a b c"]
SECOND = ["the cafes", "who won?", "a b c a b c a b c a b c", "b b b b b b b b b b b b"]


def export(model, path, quantization="none", **arguments):
    onnx_directory.export(model.servable if isinstance(model, Example) else model, TEXT, path,
                          onnx_directory.Quantization(quantization), **arguments)
    return OnnxModel(path)


@pytest.mark.parametrize("kind", [Kind.CLASSIFICATION, Kind.REGRESSION])
def test_answers_to_strings_are_the_saved_models(kind, tmp_path):
    columns = [FIRST, SECOND][:1 + (kind is Kind.REGRESSION)]
    actual = export(example(kind), tmp_path / "model").answer(*columns)
    with inference_mode():
        expected = example(kind).served().answer(*map(tf.constant, columns))
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        if value.dtype == tf.string:
            decoded = np.vectorize(bytes.decode)(value.numpy())
            np.testing.assert_array_equal(actual[name], decoded)
        else:
            np.testing.assert_allclose(actual[name], value.numpy(), atol=1e-5)


def test_an_encoder_embeds_texts(tmp_path):
    encoder = TextEncoder(tiny_discriminator().encoder, tf.Module(),
                          example(Kind.CLASSIFICATION).row_encoder)
    actual = export(encoder, tmp_path / "model").answer(FIRST)
    for name, value in encoder.embed(tf.constant(FIRST)).items():
        np.testing.assert_allclose(actual[name], value.numpy(), atol=1e-5)


@pytest.mark.parametrize("normalization", [
    UNCASED, Normalization.of(False), Normalization(lower_case=False, strip_accents=False, nfc=True),
    Normalization(strip_accents=False), Normalization(final_sigma=False, max_word_characters=100)])
def test_ids_are_those_of_this_programs_tokenizer(normalization, tmp_path):
    tokens = tokenizer_directories.TOKENS
    text = TextSettings(vocabulary=Vocabulary(tuple(tokens)), normalization=normalization)
    onnx_directory.write_tokenizer(text, tmp_path, 64)
    lines = nasty_lines.lines(400, seed=2) + tokenizer_directories.TEXTS
    exported = export(example(Kind.REGRESSION), tmp_path / "model")
    exported._tokenizer = exported._tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    expected = RowEncoder(text, 12).encode(tf.constant(lines), tf.constant(lines[::-1]))
    for actual, values in zip(exported.encode(lines, lines[::-1]), expected, strict=True):
        np.testing.assert_array_equal(actual, tf.cast(values, tf.int64))
