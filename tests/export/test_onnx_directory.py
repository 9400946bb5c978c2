"""An exported ONNX directory answers strings as the SavedModel does, or it isn't written."""

import itertools
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("tokenizers", reason="The extra `onnx` is not installed.")

from electra_tf.config.finetuning import LongTexts
from electra_tf.export import onnx_directory, onnx_tokenizer
from electra_tf.export.comparison import Quantization
from electra_tf.export.onnx_runtime import FastRowEncoder, OnnxModel
from electra_tf.export.servable import TextEncoder
from electra_tf.formats.hugging_face_tokenizer import read_text
from electra_tf.modeling.fused import inference_mode
from electra_tf.tasks.task import Kind, TaggedExample, TextExample
from electra_tf.text.rows import RowEncoder, first_and_last_values
from electra_tf.text.tokenization import MODES, TextSettings
from electra_tf.text.vocabulary import Vocabulary
from tests.export.served_models import Example, example, tiny_discriminator
from tests.parity import tokenizer_directories
from tests.support.few_words import TEXT
from tests.support.refusals import refused
from tests.support.sources import ROOT
from tests.text import nasty_lines

FIRST = ["The café won (in 1999).", "", "Who?", "a b c a b c a b c a b c a b c"]
SECOND = ["the cafes", "who won?", "a b c a b c a b c a b c", "b b b b b b b b b b b b"]


def export(model, path, quantization="none", **arguments):
    onnx_directory.export(model.servable if isinstance(model, Example) else model, TEXT, path,
                          Quantization(quantization), **arguments)
    return OnnxModel(path)


@pytest.mark.parametrize("kind", [
    Kind.CLASSIFICATION, Kind.REGRESSION, Kind.MULTILABEL, Kind.SENTENCE_EMBEDDINGS])
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


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tokenizers")
    tokenizer_directories.write(directory)
    return directory


@pytest.mark.parametrize("form", [*MODES, *tokenizer_directories.FORMS])
def test_ids_are_those_of_this_programs_tokenizer(form, forms, tmp_path):
    text = TextSettings(vocabulary=Vocabulary(tuple(tokenizer_directories.TOKENS)),
                        normalization=MODES[form]) if form in MODES else read_text(forms / form)
    onnx_tokenizer.write(text, tmp_path, 12)
    lines = [*tokenizer_directories.TEXTS, *nasty_lines.lines(200, seed=2)]
    rows = FastRowEncoder(tmp_path / "tokenizer.json", 12).encode(lines, lines[::-1])
    expected = RowEncoder(text, 12).encode(tf.constant(lines), tf.constant(lines[::-1]))
    for actual, values in zip(rows, expected, strict=True):
        np.testing.assert_array_equal(actual, tf.cast(values, tf.int64))


def test_head_and_tail_of_long_texts_stay(tmp_path):
    onnx_tokenizer.write(TEXT, tmp_path, 12)
    rows = FastRowEncoder(tmp_path / "tokenizer.json", 12, keeps_tail=True)
    encoder = RowEncoder(TEXT, 12)
    for columns in ([FIRST], [FIRST, SECOND], [SECOND, FIRST]):
        expected, _ = encoder.encode_counted(*map(tf.constant, columns), keep=first_and_last_values)
        np.testing.assert_array_equal(rows.encode(*columns)[0], expected.ids)
    export(Example(Kind.CLASSIFICATION, task__long_texts=LongTexts.HEAD_TAIL,
                   task__max_seq_length=8), tmp_path / "kept")  # The probes are longer.
    with refused("reads long texts in windows .task.long_texts=windows"):
        export(Example(Kind.CLASSIFICATION, task__long_texts=LongTexts.WINDOWS), tmp_path / "new")


def test_characters_of_newer_unicode_have_the_same_ids(tmp_path):
    text = TextSettings(vocabulary=Vocabulary(tuple(tokenizer_directories.TOKENS)))
    onnx_tokenizer.write(text, tmp_path, 12)
    characters = nasty_lines.assigned(range(0x20, 0x30000))
    texts = [f"a{character}a" for character in characters]
    actual = FastRowEncoder(tmp_path / "tokenizer.json", 12).encode(texts)[0]
    expected = RowEncoder(text, 12).encode(tf.constant(texts)).ids.numpy()
    different = np.flatnonzero((actual != expected).any(axis=1))
    assert [hex(ord(characters[index])) for index in different] == ["0x166d", "0x1734"]


def test_the_loss_of_int8_is_measured_on_dev(tmp_path):
    model = Example(Kind.CLASSIFICATION, model__hidden_size=64, model__intermediate_size=128)
    texts = [" ".join(part) for part in itertools.product(("the", "cafe", "won", "a"), repeat=3)]
    predicted = model.predicted([TextExample(key="", texts=(text,)) for text in texts])
    labels = [record["prediction"] for record in predicted]
    labels[:16] = ["no" if label == "yes" else "yes" for label in labels[:16]]
    scores = onnx_directory.export(
        model.servable, TEXT, tmp_path / "model", Quantization.DYNAMIC_INT8, [
            TextExample(key="", texts=(text,), label=label)
            for text, label in zip(texts, labels, strict=True)])
    assert scores["none"] == {"accuracy": 0.75}  # 16 of 64 labels are changed.
    assert 0.5 < scores["dynamic_int8"]["accuracy"] < 1.0


@pytest.mark.parametrize("kind", [Kind.REGRESSION, Kind.TAGGING])
def test_dev_scores_are_those_of_training(kind, tmp_path):
    model = example(kind)
    if kind is Kind.TAGGING:
        examples = [TaggedExample(key="", words=("the", "cafes", "won"), tags=("B-X", "I-X", "O")),
                    TaggedExample(key="", words=("a",) * 30, tags=("B-X", "O") * 15)]
    else:
        examples = [TextExample(key="", texts=pair, label=float(index))
                    for index, pair in enumerate(zip(FIRST, SECOND, strict=True))]
    scores = onnx_directory.export(
        model.servable, TEXT, tmp_path / "model", Quantization.NONE, examples)
    assert scores == {"none": pytest.approx(model.scored(examples).scores, rel=1e-4)}


def test_a_difference_leaves_no_directory(tmp_path, monkeypatch):
    score, encode = OnnxModel.score, FastRowEncoder.encode
    for owner, method, changed, words in (
            (OnnxModel, "score", lambda *parts: {
                name: value + 1e-4 for name, value in score(*parts).items()},
             "away from the trained network, more than 1e-05; nothing was exported"),
            (FastRowEncoder, "encode", lambda *parts: [value + 1 for value in encode(*parts)],
             "tokenizer.json gives other ids")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, method, changed)
            with refused(words):
                export(example(Kind.CLASSIFICATION), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_wrong_inputs_and_damaged_directories_are_refused(tmp_path):
    model = export(example(Kind.CLASSIFICATION), tmp_path / "model")
    row = np.ones([1, 3], np.int64)
    for ids, segments, mask, words in (
            (row - 2, row, row, "input_ids must be integers from 0 to 18"),
            (row, row + 1, row, "token_type_ids must be integers from 0 to 1"),
            (row, row, row * 0, "a 1 in attention_mask"),
            (row * 1.5, row, row, "float64"), (row[:0], row[:0], row[:0], "without a 0"),
            (np.ones([1, 17], np.int64),) * 3 + ("at most 16 tokens. Received: 17",)):
        with refused(words):
            model.score(ids, segments, mask)
    for texts, words in (("a text", "give 1 list"), ([5], "strings of Unicode"),
                         (["\ud800"], "strings of Unicode")):
        with refused(words):
            model.answer(texts)
    config = tmp_path / "model" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"vocab_size": 10**6}))
    with refused("is damaged: config.json has another checksum"):
        OnnxModel(tmp_path / "model")
    with refused("holds no assets.extra/sha256.json"):
        OnnxModel(tmp_path)


def test_the_programs_of_the_page_run_without_tensorflow(tmp_path):
    model = export(example(Kind.CLASSIFICATION), tmp_path / "cola_onnx")
    page = (ROOT / "docs" / "how_to" / "onnx.md").read_text()
    alone, package = re.findall(r"(?ms)^```python\n(.*?)^```", page)
    answers = model.answer(["They drank the pub dry.", "They drank the pub."])
    for program, modules, count in ((alone, {"tensorflow", "electra_tf"}, 2),
                                    (package, {"tensorflow"}, 1)):
        check = f"\nimport sys\nassert not {modules} & set(sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", program + check], cwd=tmp_path, capture_output=True, text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])})
        assert done.returncode == 0, done.stderr
        for label in answers["label"][:count]:
            assert label in done.stdout
