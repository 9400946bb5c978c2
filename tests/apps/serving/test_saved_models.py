"""Which version is served, and one clear line about what can't be."""

import shutil

import pytest

from electra_tf.apps.serving import saved_models
from electra_tf.platform.errors import UserError


def refusal(call):
    with pytest.raises(UserError) as error:
        call()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_the_newest_version_has_the_largest_number(tmp_path):
    for name in ("2", "10", "9", "v11", "12.tmp", ".13"):
        (tmp_path / name).mkdir()
    assert saved_models.newest_version(tmp_path) == tmp_path / "10"


def test_a_directory_without_versions_is_refused(tmp_path, models):
    def newest(path):
        return refusal(lambda: saved_models.newest_version(path))

    assert "holds no version" in newest(tmp_path)
    assert "isn't a directory" in newest(tmp_path / "nothing")
    assert "is a version itself" in newest(models / "echo" / "1")


def damage_nothing_but(path, name, content):
    (file,) = path.glob(name)
    file.write_bytes(content(file.read_bytes()))


@pytest.mark.parametrize("damage", [
    lambda path: (path / "saved_model.pb").unlink(),
    lambda path: damage_nothing_but(path, "saved_model.pb", lambda _: b""),
    lambda path: damage_nothing_but(path, "saved_model.pb", lambda _: b"not a protobuf"),
    lambda path: damage_nothing_but(path, "saved_model.pb", lambda old: old[:len(old) // 2]),
    lambda path: damage_nothing_but(path, "saved_model.pb",
                                    lambda old: old.replace(b"Identity", b"Identitz")),
    lambda path: shutil.rmtree(path / "variables"),
    lambda path: damage_nothing_but(path, "variables/*.index", lambda old: old[:10]),
    lambda path: damage_nothing_but(path, "variables/*.data*", lambda _: b""),
], ids=["missing", "empty", "junk", "cut", "unknown op", "no variables", "index", "data"])
def test_a_broken_saved_model_is_one_line(models, tmp_path, damage):
    version = tmp_path / "model" / "1"
    shutil.copytree(models / "echo" / "1", version)
    damage(version)
    message = refusal(lambda: saved_models.load(version, "model"))
    assert str(version) in message and "; export it again" in message


def test_signatures_know_their_tensors(models):
    model = saved_models.load(models / "numbers" / "3", "numbers")
    mixed, count = model.signatures["mixed"], model.signatures["count"]
    assert (model.name, model.version) == ("numbers", 3)
    assert {name: (spec.dtype.name, spec.shape.as_list()) for name, spec in mixed.inputs.items()} \
        == {"x": ("float32", [None, None]), "n": ("int32", [None]), "flag": ("bool", [None])}
    assert mixed.has_rows and not count.has_rows
