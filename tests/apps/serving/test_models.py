"""The newest versions are found and loaded; damaged ones are refused in one line."""

import shutil

import pytest
from tensorflow.core.protobuf import saved_model_pb2

from electra_tf.apps.serving.models import find, load
from electra_tf.core.errors import UserError
from tests.support.refusals import refused


def test_the_newest_version_of_every_model_is_found(tmp_path):
    for name in ("a/2", "a/10", "a/v99", "a/007", "b/1"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a" / "11").touch()
    assert find(f"{tmp_path}/a,x={tmp_path}/b") == {
        "a": tmp_path / "a" / "10", "x": tmp_path / "b" / "1"}
    for model_dir in ("", f"a={tmp_path}/b,{tmp_path}/a", f"{tmp_path}/b,", f"{tmp_path}/a:b"):
        with pytest.raises(UserError) as error:
            find(model_dir)
        assert f"Received: {model_dir!r}" in str(error.value)
    for directory in (tmp_path, tmp_path / "nothing"):
        with refused(f"--model_dir={directory} contains no version"):
            find(str(directory))


def changed(change):
    """Returns what changes the description of a signature's inputs and outputs in a file."""
    def change_file(content):
        model = saved_model_pb2.SavedModel.FromString(content)
        change(model.meta_graphs[0].signature_def["serving_default"])
        return model.SerializeToString()
    return change_file


@pytest.mark.parametrize(("name", "change"), [
    ("saved_model.pb", None), ("saved_model.pb", lambda old: old[:len(old) // 2]),
    ("saved_model.pb", lambda old: old.replace(b"Identity", b"Identitz")),
    ("saved_model.pb", changed(lambda signature: signature.ClearField("method_name"))),
    ("saved_model.pb", changed(lambda signature: signature.inputs["text"].ClearField("name"))),
    ("saved_model.pb", changed(lambda signature: setattr(
        signature.outputs["text"], "name", "other:0"))),
    ("variables/*.index", None), ("variables/*.data*", lambda _: b""),
    ("variables/*.data*", lambda old: old.replace(b"a few words", b"a fev words"))],
    ids=["missing", "cut", "unknown op", "no signature", "no tensor", "another tensor", "no index",
         "data", "flipped bit"])
def test_a_damaged_saved_model_is_refused(models, tmp_path, name, change):
    version = tmp_path / "model" / "1"
    shutil.copytree(models / "echo" / "1", version)
    (file,) = version.glob(name)
    content = file.read_bytes()
    file.unlink()
    if change:
        file.write_bytes(change(content))
    with pytest.raises(UserError, match="; export it") as error:
        load(version)
    assert str(version) in str(error.value) and "\n" not in str(error.value)
    assert "Graph execution error" not in str(error.value)
