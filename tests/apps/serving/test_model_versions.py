"""A new version takes over while the server runs; a broken one doesn't; several are served."""

import asyncio
import pathlib
import shutil
import threading

import numpy as np
import pytest

from electra_tf.apps.serving import catalog, local_server, saved_models, warming
from electra_tf.apps.serving.model_versions import ModelSource, ModelVersions, State
from electra_tf.apps.serving.saved_models import ServedModel
from electra_tf.platform.errors import UserError
from tests.apps.serving import running, string_models
from tests.apps.serving.test_admission import until


def fake(path, name):
    """What loading returns, if the file says so."""
    if (path / "saved_model.pb").read_text() == "broken":
        raise UserError(f"{path} is broken")
    return ServedModel(name=name, version=int(path.name), signatures={}, signature_defs={})


class Directory:
    """Versions of files, and what is made of them."""

    def __init__(self, path, num_versions=1, load=fake):
        self.path = path
        self.lines = []
        self.versions = ModelVersions(
            ModelSource(name="m", directory=path, num_versions=num_versions), load,
            self.lines.append)

    def write(self, number, content="good"):
        path = self.path / str(number) / "saved_model.pb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)

    def look(self, times=2):
        """A version must look the same twice before it is loaded."""
        for _ in range(times):
            asyncio.run(self.versions.refresh())

    def states(self):
        return {number: version.state.upper() for number, version in self.versions.known.items()}


@pytest.fixture
def directory(tmp_path):
    made = Directory(tmp_path)
    made.write(1)
    made.versions.start()
    return made


def test_a_new_version_takes_over_and_the_old_one_goes(directory):
    directory.write(2)
    directory.look()
    assert directory.states() == {1: "END", 2: "AVAILABLE"}
    assert directory.versions.find(None).number == 2
    assert directory.lines == ["m, version 2: loaded and warm", "m, version 1: unloaded"]


def test_a_version_that_is_still_being_copied_is_left_alone(directory):
    for content in ("broken", "broken, longer", "good, at last"):
        directory.write(2, content)
        directory.look(times=1)
        assert directory.versions.find(None).number == 1
    directory.look(times=1)
    assert directory.versions.find(None).number == 2


def test_the_old_version_stays_until_its_last_request_is_answered(directory):
    old = directory.versions.find(None)
    with directory.versions.using(old) as model:
        directory.write(2)
        directory.look()
        assert directory.states() == {1: "UNLOADING", 2: "AVAILABLE"}
        assert model is old.model
    assert directory.states() == {1: "END", 2: "AVAILABLE"} and old.model is None


def test_a_broken_version_is_one_line_and_the_old_one_stays(directory):
    directory.write(2, "broken")
    directory.look(times=5)
    assert directory.states() == {1: "AVAILABLE", 2: "END"}
    (line,) = directory.lines  # Told once, not at every look.
    assert line.startswith("m, version 2 isn't served (version 1 stays): ") and "\n" not in line
    status = catalog.status(list(directory.versions.known.values()))["model_version_status"][0]
    assert (status["version"], status["state"]) == ("2", "END")
    assert "is broken" in status["status"]["error_message"]
    directory.write(2, "mended")
    directory.look()
    assert directory.versions.find(None).number == 2


def test_a_version_that_is_taken_away_gives_way_to_the_one_before(directory):
    directory.write(2)
    directory.look()
    shutil.rmtree(directory.path / "2")
    directory.look()
    assert directory.states() == {1: "AVAILABLE", 2: "END"}


def test_what_is_served_stays_when_the_directory_vanishes(directory):
    shutil.rmtree(directory.path)
    directory.look()
    assert directory.versions.find(None).number == 1 and directory.lines == []


@pytest.mark.parametrize(("num_versions", "served"), [(1, {4}), (2, {3, 4}), (0, {1, 2, 3, 4})])
def test_the_newest_so_many_are_served(tmp_path, num_versions, served):
    directory = Directory(tmp_path, num_versions)
    for number in range(1, 4):
        directory.write(number)
    directory.versions.start()
    directory.write(4)
    directory.look()
    assert served == {number for number, state in directory.states().items()
                      if state == "AVAILABLE"}


def test_at_the_start_the_newest_version_must_be_whole(tmp_path):
    directory = Directory(tmp_path, num_versions=2)
    directory.write(1, "broken")
    directory.write(2)
    directory.versions.start()
    assert directory.states() == {1: "END", 2: "AVAILABLE"}
    directory.write(3, "broken")
    with pytest.raises(UserError, match="3 is broken"):
        Directory(tmp_path).versions.start()


def test_requests_are_answered_while_a_version_takes_over(tmp_path):
    loading, go_on = threading.Event(), threading.Event()

    def load(path, name):
        if path.name == "2":
            loading.set()
            assert go_on.wait(20)
        return saved_models.load(path, name)

    string_models.save_echo(tmp_path / "m" / "1")
    directory = Directory(tmp_path / "m", load=load)
    directory.versions.start()
    with running.client_of_all([directory.versions],
                               local_server.Settings(poll_seconds=0.05)) as client:
        string_models.save_echo(tmp_path / "new")
        (tmp_path / "new").rename(tmp_path / "m" / "2")
        assert loading.wait(20)
        assert client.rows("", ["a"]) == ["a"]
        assert [each["state"] for each in client.get("")[1]["model_version_status"]] == [
            "LOADING", "AVAILABLE"]
        assert client.predict({"instances": ["a"]}, "/versions/2:predict")[0] == 404
        go_on.set()
        until(lambda: client.get("/versions/2")[1]["model_version_status"][0]["state"]
              == "AVAILABLE")
        until(lambda: directory.states()[1] == State.END.upper())
        assert client.predict({"instances": ["a"]}, "/versions/1:predict")[0] == 404
        assert client.rows("", ["b"]) == ["b"]


def test_several_models_and_versions_are_answered_side_by_side(models):
    made = [ModelVersions(ModelSource(name=name, directory=models / name, num_versions=0),
                          saved_models.load, print) for name in ("texts", "numbers")]
    for each in made:
        each.start()
    with running.client_of_all(made, local_server.Settings(poll_seconds=0)) as client:
        assert client.predict({"instances": ["a"]}, "/versions/1:predict") == (
            200, {"predictions": ["a"]})
        assert client.predict({"instances": ["abcd"]})[1]["predictions"][0]["label"] == "neutral"
        assert client.send("GET", "/v1/models/numbers")[0] == 200
        assert 'href="/?model=numbers"' in client.send("GET", "/")[1]
        assert '<meta name="model" content="numbers">' in client.send("GET", "/?model=numbers")[1]
        assert client.send("GET", "/?model=x")[0] == 404
        metrics = client.send("GET", "/monitoring/prometheus/metrics")[1]
    for line in ('serving_requests_total{model="texts",status="200",version="1"} 1.0',
                 'serving_requests_total{model="",status="404",version=""} 1.0',
                 'serving_request_seconds_count{model="texts",version="2"} 1.0',
                 'serving_model_state{model="numbers",state="AVAILABLE",version="3"} 1.0',
                 "serving_call_rows_count 2.0", "serving_waiting_requests 0.0"):
        assert line in metrics


class TestNames:
    def sources(self, model_dir, name=None):
        return [(source.name, str(source.directory)) for source in catalog.sources(
            model_dir, name, 1, pathlib.Path)]

    def test_one_directory_has_its_own_name_or_another(self, tmp_path):
        assert self.sources(str(tmp_path / "cola")) == [("cola", str(tmp_path / "cola"))]
        assert self.sources(str(tmp_path / "cola"), "x") == [("x", str(tmp_path / "cola"))]
        (tmp_path / "a=b,c").mkdir()
        assert self.sources(str(tmp_path / "a=b,c"))[0][0] == "a=b,c"

    def test_several_have_names(self):
        assert self.sources("a=/x/1,b=/y=z") == [("a", "/x/1"), ("b", "/y=z")]

    @pytest.mark.parametrize(("model_dir", "name", "words"), [
        ("a=/x,a=/y", None, "'a' twice"), ("a=/x,b", None, "name=directory"),
        ("a=/x", "b", "--name is for one"), ("/x", "a:b", "no '/' or ':'"),
        ("=/x", None, "at least one character"), ("/", None, "at least one character"),
        ("a\n=/x", None, "no '/' or ':'")])
    def test_mistakes_are_one_line(self, model_dir, name, words):
        with pytest.raises(UserError) as error:
            self.sources(model_dir, name)
        assert words in str(error.value) and "\n" not in str(error.value)


class TestWarming:
    def calls_of(self, tmp_path, monkeypatch, **recorded):
        """Rows of the calls that warm a model, by signature."""
        monkeypatch.setattr(warming, "_recorded", lambda path: [
            (name, inputs) for name, inputs in recorded.items()])
        string_models.save_numbers(tmp_path / "1")
        model, seen = saved_models.load(tmp_path / "1", "m"), []
        for signature in model.signatures.values():
            def call(*values, name=signature.name, function=signature.function):
                seen.append((name, *{value.shape[0] for value in values}))
                return function(*values)
            object.__setattr__(signature, "function", call)
        warming.warm(model, tmp_path / "1", most_rows=8)
        return seen

    def test_every_signature_is_called_and_recorded_ones_with_full_calls(
            self, tmp_path, monkeypatch):
        seen = self.calls_of(tmp_path, monkeypatch,
                             words={"text": np.array([b"a b", b"c", b"d"], object)})
        assert [call for call in seen if call[0] == "words"] == [
            ("words", 3), ("words", 1), ("words", 8)]
        assert {call for call in seen if call[0] != "words"} == {
            (name, 1) for name in ("serving_default", "mixed", "batch_size", "refuses_bad", "count",
                                   "raw", "divide", "tokens", "slow")}

    def test_a_damaged_record_is_one_line(self, tmp_path):
        string_models.save_echo(tmp_path / "1")
        path = tmp_path / "1" / warming.FILE
        path.parent.mkdir()
        path.write_bytes(b"no record, but long enough to be read as one")
        with pytest.raises(UserError, match="is damaged") as error:
            warming.warm(saved_models.load(tmp_path / "1", "m"), tmp_path / "1", 8)
        assert "\n" not in str(error.value)
