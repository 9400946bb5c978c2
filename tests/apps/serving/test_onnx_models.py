"""The server answers from an exported ONNX directory as from a SavedModel."""

import numpy as np
import pytest

pytest.importorskip("tokenizers", reason="The extra `onnx` is not installed.")

from electra_tf.export import onnx_directory
from electra_tf.export.comparison import Quantization
from electra_tf.tasks.task import Kind
from tests.export.served_models import example
from tests.support import running
from tests.support.few_words import TEXT
from tests.support.refusals import refused


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("served") / "pairs"
    onnx_directory.export(example(Kind.CLASSIFICATION).servable, TEXT, directory,
                          Quantization.NONE)
    return directory


def test_strings_and_token_ids_are_answered(directory):
    model = onnx_directory.OnnxModel(directory)
    with running.client(directory) as client:
        rows = client.predict({"instances": ["The café won.", "who"]})[1]["predictions"]
        expected = model.answer(["The café won.", "who"])
        assert [row["label"] for row in rows] == expected["label"].tolist()
        np.testing.assert_allclose(
            [row["probabilities"] for row in rows], expected["probabilities"], atol=1e-6)
        tokens = dict(zip(model.inputs, model.encode(["who"]), strict=True))
        answer = client.predict({"signature_name": "token_ids", "inputs": {
            name: array.tolist() for name, array in tokens.items()}})[1]["outputs"]
        np.testing.assert_allclose(answer["probabilities"][0], rows[1]["probabilities"], atol=1e-6)
        assert "input_ids must be integers from 0 to 18" in client.error(
            {"signature_name": "token_ids", "inputs": {
                name: [[-1]] for name in tokens}})
        outputs = client.get("/metadata")[1]["metadata"]["signature_def"]["signature_def"][
            "serving_default"]["outputs"]
        assert outputs["labels"]["dtype"] == "DT_STRING"


def test_versions_may_be_onnx_directories(directory, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "3").symlink_to(directory)
    with running.client(tmp_path / "model") as client:
        assert client.predict({"instances": ["who"]}, "/versions/3:predict")[0] == 200


def test_a_damaged_directory_is_refused(directory, tmp_path):
    for path in directory.rglob("*"):
        copy = tmp_path / "copy" / path.relative_to(directory)
        copy.parent.mkdir(exist_ok=True, parents=True)
        if path.is_file():
            copy.write_bytes(path.read_bytes()[:-1])
    (tmp_path / "copy" / "assets.extra" / "sha256.json").write_bytes(
        (directory / "assets.extra" / "sha256.json").read_bytes())
    with refused("copy is damaged: "), running.client(tmp_path / "copy"):
        pass
