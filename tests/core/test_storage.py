"""Paths on another file system, `ram://` here, behave as paths of this machine."""

import gzip
import os
import pathlib
import pickle

import pytest

from electra_tf.core import atomic_file, storage
from electra_tf.core.errors import UserError
from electra_tf.core.storage import RemotePath
from electra_tf.tasks.tables import byte_lines


@pytest.fixture(params=["local", "remote"])
def directory(request, tmp_path):
    """A new directory, here or elsewhere: every test runs on both."""
    parent = tmp_path if request.param == "local" else storage.path(f"ram:/{tmp_path}")
    parent.mkdir(parents=True, exist_ok=True)
    return parent / "below"


def test_files_are_read_as_they_were_written_and_told_from_directories(directory):
    assert not directory.exists()
    directory.mkdir()
    path = directory / "a"
    path.write_bytes(b"one\n")
    with path.open("a", encoding="utf-8") as file:
        file.write("two\n")
    assert path.read_bytes() == path.read_text(encoding="utf-8").encode() == b"one\ntwo\n"
    assert path.stat().st_size == 8
    with path.open(encoding="utf-8") as file:
        assert list(file) == ["one\n", "two\n"]
    assert directory.is_dir() and not directory.is_file()
    assert path.is_file() and not path.is_dir() and not (directory / "b").exists()
    assert [path.name for path in directory.iterdir()] == ["a"]


def test_names_match_patterns_even_below_a_name_with_brackets(directory):
    odd = directory / "[run] 1"
    odd.mkdir(parents=True)
    for name in ("y.tsv", "x.tsv", "z.txt"):
        (odd / name).write_bytes(b"")
    assert sorted(path.name for path in odd.glob("*.tsv")) == ["x.tsv", "y.tsv"]
    assert storage.matching(f"{directory}/*/*.tsv") == [odd / "x.tsv", odd / "y.tsv"]
    assert list((directory / "none").glob("*")) == []


def test_a_file_is_replaced_and_a_tree_removed_whole(directory):
    for method in ("read_bytes", "stat"):
        with pytest.raises(FileNotFoundError):
            getattr(directory / "a", method)()
    (directory / "a").unlink(missing_ok=True)
    directory.mkdir()
    for content in (b"old", b"new"):
        atomic_file.write_atomically(directory / "a", content)
    assert (directory / "a").read_bytes() == b"new"
    assert [path.name for path in directory.iterdir()] == ["a"]
    for _ in range(2):
        storage.remove_tree(directory)
        assert not (directory / "a").exists()


def test_lines_are_unpacked_and_numbered(directory):
    directory.mkdir()
    (directory / "a.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    lines = byte_lines(directory / "a.gz", max_line_bytes=4, max_bytes=8)
    assert list(lines) == [(1, b"one\n"), (2, b"two\n")]
    for max_line_bytes, max_bytes, problem in (
            (3, 8, ":1: a line of more"), (4, 7, ":2: more than 7 bytes decompressed")):
        with pytest.raises(UserError, match=problem):
            list(byte_lines(directory / "a.gz", max_line_bytes=max_line_bytes,
                            max_bytes=max_bytes))


def test_a_url_keeps_its_slashes_through_every_way_of_making_paths():
    path = storage.path("gs://bucket/runs") / "small"
    assert str(path) == f"{path}" == "gs://bucket/runs/small"
    assert str(path.with_name("x-1")) == "gs://bucket/runs/x-1"
    assert storage.path(path) == path
    assert pickle.loads(pickle.dumps(path)) == path
    assert str(path.parent.parent) == "gs://bucket"


def test_a_local_path_stays_local_and_other_file_systems_are_refused():
    assert storage.path("a/[b]") == pathlib.Path("a/[b]")
    assert storage.path("file:///tmp/a") == pathlib.Path("/tmp/a")
    assert not isinstance(storage.path("a:b"), RemotePath)
    with pytest.raises(UserError, match="TensorFlow has no file system for foo://.*gs://"):
        storage.path("foo://bar/x")
    assert storage.require_local(pathlib.Path("a"), "--output", "it is so") == pathlib.Path("a")
    with pytest.raises(UserError, match="--output=gs://b/x must be a path of this machine: it is"):
        storage.require_local(RemotePath("gs://b/x"), "--output", "it is so")


@pytest.mark.parametrize("kind", ["pipe", "device", "link to a pipe"])
def test_a_pipe_or_a_device_is_refused_before_it_is_opened(tmp_path, kind):
    path = pathlib.Path("/dev/zero") if kind == "device" else tmp_path / "settings.json"
    if kind == "link to a pipe":
        path.symlink_to(tmp_path / "pipe")
    if kind != "device":
        os.mkfifo(path.resolve())
    for read in (storage.file_sha256, lambda path: storage.read_bytes(path, 100)):
        with pytest.raises(UserError, match="is a named pipe or a device; copy its content"):
            read(path)


@pytest.mark.parametrize(("address", "name"), [
    ("https://huggingface.co/owner/name", "hf://owner/name"),
    ("https://hf.co/owner/na.me-1_2?library=transformers#use", "hf://owner/na.me-1_2"),
    ("https://huggingface.co/owner/name/tree/refs%2Fpr%2F1/", "hf://owner/name@refs/pr/1"),
    ("https://huggingface.co/owner/name/blob/v1.0/config.json", "hf://owner/name@v1.0"),
    ("https://huggingface.co/owner/name/resolve/main/model.safetensors?download=true",
     "hf://owner/name@main"),
])
def test_the_address_of_a_model_is_its_name(address, name):
    assert str(storage.path(address)) == name


@pytest.mark.parametrize("address", [
    "https://huggingface.co/datasets/owner", "https://huggingface.co.example.org/owner/name",
    "https://huggingface.co/owner/name/tree/main/folder"])
def test_another_address_is_refused_with_the_form_of_a_models_name(address):
    with pytest.raises(UserError, match=f"{address}: this TensorFlow .* hf://OWNER/NAME"):
        storage.path(address)


def test_a_name_of_a_model_has_no_files_here_and_keeps_its_slashes():
    for name in ("hf://user/name@v1", pathlib.Path("hf://user/name@v1")):
        path = storage.path(name)
        assert str(path) == "hf://user/name@v1"
        assert not ((path / "settings.json").exists() or path.is_dir() or list(path.glob("*")))
        with pytest.raises(FileNotFoundError):
            (path / "settings.json").read_bytes()


def test_a_name_that_is_not_utf_8_is_read_but_not_written():
    name = os.fsdecode(b"/tmp/run\xff")
    assert storage.path(name) == pathlib.Path(name)
    with pytest.raises(UserError, match=r"run\\udcff' is not a name in UTF-8"):
        storage.utf8_path(name)
    assert storage.utf8_path("/tmp/läufe/中") == pathlib.Path("/tmp/läufe/中")
