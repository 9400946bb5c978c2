"""An exported ONNX directory answers strings as the SavedModel does, or it isn't written."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("tokenizers", reason="The extra `onnx` is not installed.")

from tokenizers import Tokenizer as FastTokenizer

from electra_tf.config.finetuning import LongTexts
from electra_tf.export import onnx_graph
from electra_tf.export.comparison import Quantization
from electra_tf.export.onnx_runtime import OnnxModel
from electra_tf.export.servable import TextEncoder
from electra_tf.formats.hugging_face_tokenizer import read_text, write_exact_text
from electra_tf.modeling.fused import inference_mode
from electra_tf.tasks.kinds.windows import KEEP
from electra_tf.tasks.task import Kind
from electra_tf.text.normalization import MODES, TextSettings
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import Vocabulary
from tests.parity import tokenizer_directories
from tests.support.few_words import TEXT
from tests.support.refusals import refused
from tests.support.served_models import Example, example, tiny_discriminator
from tests.support.sources import ROOT
from tests.text import nasty_lines

FIRST = ["The café won (in 1999).", "", "Who?", "a b c a b c a b c a b c a b c"]
SECOND = ["the cafes", "who won?", "a b c a b c a b c a b c", "b b b b b b b b b b b b"]


def export(model, path, quantization="none", **arguments):
    onnx_graph.export(model.servable if isinstance(model, Example) else model, TEXT, path,
                      Quantization(quantization), **arguments)
    return OnnxModel(path)


def encoder():
    return TextEncoder(tiny_discriminator().encoder, tf.Module(),
                       example(Kind.CLASSIFICATION).row_encoder)


@pytest.mark.parametrize("kind", [
    Kind.CLASSIFICATION, Kind.REGRESSION, Kind.MULTILABEL, Kind.SENTENCE_EMBEDDINGS, None])
def test_answers_to_strings_are_the_saved_models(kind, tmp_path):
    model = example(kind) if kind else encoder()
    columns = [FIRST, SECOND][:1 + (kind is Kind.REGRESSION)]
    actual = export(model, tmp_path / "model").answer(*columns)
    with inference_mode():
        expected = (model.served() if kind else model).answer(*map(tf.constant, columns))
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        if value.dtype == tf.string:
            decoded = np.vectorize(bytes.decode)(value.numpy())
            np.testing.assert_array_equal(actual[name], decoded)
        else:
            np.testing.assert_allclose(actual[name], value.numpy(), atol=1e-5)


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tokenizers")
    tokenizer_directories.write(directory)
    return directory


def pieces(text, directory, lines):
    """Returns the ids of lines by the library and by this program."""
    write_exact_text(text, directory, 12)
    library = FastTokenizer.from_file(str(directory / "tokenizer.json"))
    return ([library.encode(line, add_special_tokens=False).ids for line in lines],
            Tokenizer(text).tokenize(tf.constant(lines)).to_list())


@pytest.mark.parametrize("form", [*MODES, *tokenizer_directories.FORMS])
def test_ids_are_those_of_this_programs_tokenizer(form, forms, tmp_path):
    text = TextSettings(vocabulary=Vocabulary(tuple(tokenizer_directories.TOKENS)),
                        normalization=MODES[form]) if form in MODES else read_text(forms / form)
    actual, expected = pieces(
        text, tmp_path, [*tokenizer_directories.TEXTS, *nasty_lines.lines(200, seed=2)])
    assert actual == expected


def test_characters_of_newer_unicode_have_the_same_ids(tmp_path):
    text = TextSettings(vocabulary=Vocabulary(tuple(tokenizer_directories.TOKENS)))
    characters = nasty_lines.assigned(range(0x20, 0x30000))
    ids = zip(*pieces(text, tmp_path, [f"a{character}a" for character in characters]), strict=True)
    assert [hex(ord(character)) for character, (actual, expected) in zip(
        characters, ids, strict=True) if actual != expected] == ["0x166d", "0x1734"]


@pytest.mark.parametrize("form", [LongTexts.TRUNCATE, LongTexts.HEAD_TAIL])
def test_long_texts_and_pairs_are_cut_as_in_training(form, tmp_path):
    model = Example(Kind.REGRESSION, task__long_texts=form, task__max_seq_length=9)
    exported = export(model, tmp_path / "model")
    for columns in ([FIRST, SECOND], [SECOND, FIRST]):
        expected, _ = model.row_encoder.encode_counted(*map(tf.constant, columns), keep=KEEP[form])
        for actual, values in zip(exported.encode(*columns), expected, strict=True):
            np.testing.assert_array_equal(actual, values)
    with refused("task.long_texts=windows"):
        export(Example(Kind.CLASSIFICATION, task__long_texts=LongTexts.WINDOWS), tmp_path / "new")


def test_a_difference_leaves_no_directory(tmp_path, monkeypatch):
    score, encode = OnnxModel.score, OnnxModel.encode
    for method, changed, words in (
            ("score", lambda *parts: {name: value + 1e-4 for name, value in score(*parts).items()},
             "away from the trained network, more than 1e-05"),
            ("encode", lambda *parts: [value + 1 for value in encode(*parts)], "other ids")):
        with monkeypatch.context() as patch:
            patch.setattr(OnnxModel, method, changed)
            with refused(words):
                export(example(Kind.CLASSIFICATION), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_wrong_inputs_and_damaged_directories_are_refused(tmp_path):
    model = export(example(Kind.CLASSIFICATION), tmp_path / "model")
    row = np.ones([1, 3], np.int64)
    for ids, segments, mask, words in (
            (row - 2, row, row, "input_ids .* 0 to 18"),
            (row, row + 1, row, "token_type_ids .* 0 to 1"),
            (row, row, row * 0, "attention_mask"), (row * 1.5, row, row, "array.*1.5"),
            (np.ones([1, 17], np.int64),) * 3 + ("at most 16 tokens. Received: 17",)):
        with refused(words):
            model.score(ids, segments, mask)
    config = tmp_path / "model" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"vocab_size": 10**6}))
    with refused("damaged: config.json"):
        OnnxModel(tmp_path / "model")
    with refused("sha256.json"):
        OnnxModel(tmp_path)


def test_the_programs_of_the_page_run_without_tensorflow(tmp_path):
    model = export(example(Kind.CLASSIFICATION), tmp_path / "cola_onnx")
    page = (ROOT / "docs" / "how_to" / "export.md").read_text()
    alone, package, measure, _ = re.findall(r"(?ms)^```python\n(.*?)^```", page)
    answers = model.answer(["They drank the pub dry.", "They drank the pub."])
    (tmp_path / "cola_int8").symlink_to(tmp_path / "cola_onnx")
    (tmp_path / "dev.tsv").write_text(
        f"sentence\tlabel\nThey drank the pub dry.\t{answers['label'][0]}\nno\tother\n")
    for program, modules, count in ((alone, {"tensorflow", "electra_tf"}, 2),
                                    (package, {"tensorflow"}, 1), (measure, {"tensorflow"}, 0)):
        check = f"\nimport sys\nassert not {modules} & set(sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", program + check], cwd=tmp_path, capture_output=True, text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])})
        assert done.returncode == 0, done.stderr
        for label in answers["label"][:count]:
            assert label in done.stdout
