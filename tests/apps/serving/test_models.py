"""New versions replace old ones while the server runs; broken ones do not."""

import shutil
import threading

import pytest

from electra_tf.apps.serving.models import ModelVersions, ServedModel, find_models, load
from electra_tf.apps.serving.settings import ServerConfig
from electra_tf.platform.errors import UserError
from tests.apps.serving import string_models
from tests.support import running
from tests.support.running import until


def load_fake(path, number):
    """Returns a model without signatures, or raises an error if the file's content is "broken"."""
    if (path / "saved_model.pb").read_text() == "broken":
        raise UserError(f"{path} is broken")
    return ServedModel(version=number, signatures={}, signature_defs={})


class Directory(ModelVersions):
    """Versions whose files tests write."""

    def __init__(self, path, num_versions=1):
        super().__init__(name="m", directory=path, num_versions=num_versions, load=load_fake)

    def write(self, number, content="good"):
        path = self.directory / str(number) / "saved_model.pb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)

    def refresh_twice(self):
        """A version must be unchanged twice before it is loaded."""
        self.refresh()
        self.refresh()

    def states(self):
        return {number: version.state for number, version in self.known.items()}

    def newest(self):
        return self.find(None).version


@pytest.fixture
def directory(tmp_path):
    directory = Directory(tmp_path)
    directory.write(1)
    directory.start()
    return directory


def test_a_new_version_is_served_until_it_is_removed(directory, capsys):
    directory.write(2)
    directory.refresh_twice()
    assert directory.states() == {1: "END", 2: "AVAILABLE"} and directory.newest() == 2
    shutil.rmtree(directory.directory / "2")
    directory.refresh_twice()
    assert directory.states() == {1: "AVAILABLE"} and directory.newest() == 1
    assert capsys.readouterr().err.splitlines() == [
        "m: version 2 is loaded", "m: version 1 is unloaded", "m: version 1 is loaded",
        "m: version 2 is unloaded"]


def test_a_version_is_not_loaded_while_it_is_copied(directory):
    for number, content in enumerate(("broken", "broken, longer", "good, at last")):
        directory.write(2, content)
        # Clocks of file systems may be coarse.
        (directory.directory / "2" / f"asset{number}").touch()
        directory.refresh()
        assert directory.newest() == 1
    directory.refresh()
    assert directory.newest() == 2


def test_a_broken_version_is_reported_once_and_the_old_one_stays(directory, capsys):
    directory.write(2, "broken")
    for _ in range(5):
        directory.refresh()
    assert directory.states() == {1: "AVAILABLE", 2: "END"}
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"m: version 2 is not served: {directory.directory / '2'} is broken"
    assert directory.known[2].error.endswith("is broken")
    directory.write(2, "mended")
    (directory.directory / "2" / "asset").touch()
    directory.refresh_twice()
    assert directory.newest() == 2


@pytest.mark.parametrize(("num_versions", "served"), [(1, {4}), (2, {3, 4}), (0, {1, 2, 3, 4})])
def test_num_versions_selects_the_newest(tmp_path, num_versions, served):
    directory = Directory(tmp_path, num_versions)
    for number in (1, 2, 3, "v9", "10.tmp"):
        directory.write(number)
    directory.start()
    directory.write(4)
    directory.refresh_twice()
    assert served == {number for number, state in directory.states().items()
                      if state == "AVAILABLE"}


def test_the_newest_version_must_load_at_the_start(tmp_path):
    directory = Directory(tmp_path, num_versions=2)
    directory.write(1, "broken")
    directory.write(2)
    directory.start()
    assert directory.states() == {1: "END", 2: "AVAILABLE"}
    directory.write(3, "broken")
    with pytest.raises(UserError, match="3 is broken"):
        Directory(tmp_path).start()
    with pytest.raises(UserError, match="contains no version"):
        Directory(tmp_path / "nothing").start()


def states(client):
    return [version["state"] for version in client.get("")[1]["model_version_status"]]


def test_requests_are_answered_while_a_version_is_loaded(tmp_path):
    loading, proceed = threading.Event(), threading.Event()

    def load_slowly(path, number):
        if number == 2:
            loading.set()
            assert proceed.wait(20)
        return load(path, number)

    string_models.save_echo(tmp_path / "m" / "1")
    versions = ModelVersions(name="m", directory=tmp_path / "m", load=load_slowly)
    versions.start()
    with running.client_of([versions], poll_seconds=0.05) as client:
        shutil.copytree(tmp_path / "m" / "1", tmp_path / "new")
        (tmp_path / "new").rename(tmp_path / "m" / "2")
        assert loading.wait(20)
        assert client.rows("", ["a"]) == ["a"]
        assert states(client) == ["LOADING", "AVAILABLE"]
        assert client.predict({"instances": ["a"]}, "/versions/2:predict")[0] == 404
        proceed.set()
        until(lambda: states(client) == ["AVAILABLE", "END"])
        assert client.predict({"instances": ["a"]}, "/versions/1:predict")[0] == 404
        assert client.rows("", ["b"]) == ["b"]


def test_several_models_and_versions_are_served_together(models):
    with running.client(models / "texts", models / "numbers", num_versions=0) as client:
        assert client.predict({"instances": ["a"]}, "/versions/1:predict") == (
            200, {"predictions": ["a"]})
        assert client.predict({"instances": ["abcd"]})[1]["predictions"][0]["label"] == "neutral"
        assert client.send("GET", "/v1/models/numbers")[0] == 200
        assert 'href="/?model=numbers"' in client.send("GET", "/")[1]
        assert '<meta name="model" content="numbers">' in client.send("GET", "/?model=numbers")[1]
        metrics = client.send("GET", "/monitoring/prometheus/metrics")[1]
    for line in ('serving_requests_total{model="texts",status="200",version="1"} 1.0',
                 'serving_requests_total{model="",status="404",version=""} ',
                 'serving_request_seconds_count{model="texts",version="2"} ',
                 "serving_call_rows_count ", "serving_waiting_rows 0.0"):
        assert line in metrics


def test_model_dir_names_models_by_directory_or_by_name():
    def names(model_dir):
        return {name: str(model.directory) for name, model in find_models(
            ServerConfig(model_dir=model_dir)).items()}

    assert names("a=/x/1,/y/b") == {"a": "/x/1", "b": "/y/b"}
    for model_dir in ("", "a=/x,/y/a", "a=/x,", "/x/a:b"):
        with pytest.raises(UserError, match="--model_dir must be") as error:
            names(model_dir)
        assert repr(model_dir) in str(error.value)


@pytest.mark.parametrize(("name", "change"), [
    ("saved_model.pb", None), ("saved_model.pb", lambda old: old[:len(old) // 2]),
    ("saved_model.pb", lambda old: old.replace(b"Identity", b"Identitz")),
    ("variables/*.index", None), ("variables/*.data*", lambda _: b""),
    ("variables/*.data*", lambda old: old.replace(b"a few words", b"a fev words"))],
    ids=["missing", "cut", "unknown op", "no index", "data", "flipped bit"])
def test_a_damaged_saved_model_is_refused(models, tmp_path, name, change):
    version = tmp_path / "model" / "1"
    shutil.copytree(models / "echo" / "1", version)
    (file,) = version.glob(name)
    content = file.read_bytes()
    file.unlink()
    if change:
        file.write_bytes(change(content))
    with pytest.raises(UserError, match="; export it again") as error:
        load(version, 1)
    assert str(version) in str(error.value) and "\n" not in str(error.value)
    assert "Graph execution error" not in str(error.value)
