"""An export for TensorFlow Serving is complete and checked, or it does not exist."""

import dataclasses
import os
import shutil
import time
import types

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import prediction_log_pb2

from electra_tf.export import saved_model, servable
from electra_tf.export.atomic_directory import ABANDONED_SECONDS, atomic_directory
from electra_tf.export.checksums import require_intact
from electra_tf.tasks.task import Kind
from tests.support import python_process, tiny_networks
from tests.support.refusals import refused
from tests.support.served_models import example, unlinked_ops

CLASSIFIER = example(Kind.CLASSIFICATION)


def export(directory, precision="float32"):
    saved_model.export(CLASSIFIER.servable, directory / "1", precision)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    directory = tmp_path_factory.mktemp("served") / "classifier"
    export(directory)
    return directory / "1"


CLIENT = """
import sys, tensorflow as tf, tensorflow_text
answer = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
print(*answer(text=tf.constant(["The cafés won.", ""]))["label"].numpy())
"""


@pytest.mark.slow
def test_a_process_without_this_program_answers_strings(exported, tmp_path):
    done = python_process.run("-c", CLIENT, exported, cwd=tmp_path)
    expected = CLASSIFIER.served().answer(tf.constant(["The cafés won.", ""]))
    assert done.stdout.split() == [str(label) for label in expected["label"].numpy()]


def test_warm_up_requests_can_be_read_and_no_other_files_are_left(exported):
    logs = [prediction_log_pb2.PredictionLog.FromString(record.numpy())
            for record in tf.data.TFRecordDataset(str(exported / saved_model.WARM_UP_FILE))]
    assert [log.predict_log.request.inputs["text"].tensor_shape.dim[0].size for log in logs] == [
        4, 1]
    assert {log.predict_log.request.model_spec.name for log in logs} == {"classifier"}
    assert [path.name for path in exported.parent.iterdir()] == ["1"]


def test_an_export_removes_directories_of_killed_ones_and_never_replaces_another(tmp_path):
    for name, age in ((".unfinished-1-1", 2 * ABANDONED_SECONDS), (".unfinished-2-1", 60)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    with atomic_directory(tmp_path / "1") as unfinished:
        unfinished.mkdir()
    assert {path.name for path in tmp_path.iterdir()} == {"1", ".unfinished-2-1"}
    with refused("served/2: .*another process"):
        with atomic_directory(tmp_path / "served" / "2") as second:
            second.mkdir()
            with atomic_directory(tmp_path / "served" / "2") as first:
                first.mkdir()
                (first / "saved_model.pb").touch()
    assert [path.name for path in (tmp_path / "served").iterdir()] == ["2"]


@pytest.mark.slow
def test_bfloat16_is_half_the_size_and_serving_links_all_ops(exported, tmp_path):
    export(tmp_path, precision="bfloat16")
    for directory in (tmp_path / "1", exported):
        model = saved_model_pb2.SavedModel.FromString((directory / "saved_model.pb").read_bytes())
        assert unlinked_ops(model.meta_graphs[0].graph_def) == set()

    def weights(directory):
        return (directory / "variables" / "variables.data-00000-of-00001").stat().st_size

    assert weights(tmp_path / "1") < 0.6 * weights(exported)


def test_a_flipped_bit_is_named_with_its_file(exported, tmp_path):
    copy = shutil.copytree(exported, tmp_path / "1")
    require_intact(copy)
    path = copy / "variables" / "variables.data-00000-of-00001"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    with refused("1 is damaged: variables/variables.data-0.* has another"):
        require_intact(copy)
    path.unlink()
    with refused("00001 is missing"):
        require_intact(copy)


def test_a_difference_leaves_no_directory(tmp_path, monkeypatch):
    load = tf.saved_model.load

    def other(directory):
        answer = load(directory).signatures["serving_default"]
        return types.SimpleNamespace(signatures={"serving_default": lambda **texts: {
            name: value + 1.0 if name == "score" else value
            for name, value in answer(**texts).items()}})

    monkeypatch.setattr(tf.saved_model, "load", other)
    with refused("the exported model's score is .* nothing was exported"):
        export(tmp_path / "model")
    assert list((tmp_path / "model").iterdir()) == []


def test_a_version_is_a_number_and_is_never_overwritten(exported, tmp_path):
    for version in ("1.5", "-1", "0", "", "²", " 1", "9" * 19, "1", "01"):
        with refused("exists.* --export_version" if version in ("1", "01") else "positive integer"):
            saved_model.new_version(exported.parent, version)


def test_energies_are_not_served_as_probabilities():
    electric = dataclasses.replace(tiny_networks.pretrained(), objective="electric")
    with refused("name=electric: its outputs are energies.*score_text"):
        servable.build(electric)
