"""Paths on another file system, `ram://` here, behave as paths of this machine."""

import gzip
import pathlib
import pickle

import pytest

from electra_tf.platform import atomic_file, storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import RemotePath


@pytest.fixture(params=["local", "remote"])
def directory(request, tmp_path):
    """A new directory, here or elsewhere: every test runs on both."""
    place = tmp_path if request.param == "local" else storage.path(f"ram:/{tmp_path}")
    place.mkdir(parents=True, exist_ok=True)
    return place / "below"


def test_a_file_is_read_as_it_was_written(directory):
    directory.mkdir()
    (directory / "a").write_bytes(b"one\ntwo\n")
    assert (directory / "a").read_bytes() == b"one\ntwo\n"
    assert (directory / "a").read_text(encoding="utf-8") == "one\ntwo\n"
    assert (directory / "a").stat().st_size == 8
    with (directory / "a").open(encoding="utf-8") as file:
        assert list(file) == ["one\n", "two\n"]


def test_what_is_appended_comes_last(directory):
    directory.mkdir()
    (directory / "a").write_bytes(b"one\n")
    with (directory / "a").open("a", encoding="utf-8") as file:
        file.write("two\n")
    assert (directory / "a").read_bytes() == b"one\ntwo\n"


def test_directories_are_told_from_files(directory):
    assert not directory.exists()
    directory.mkdir()
    (directory / "a").write_bytes(b"")
    assert directory.is_dir() and not directory.is_file()
    assert (directory / "a").is_file() and not (directory / "a").is_dir()
    assert not (directory / "b").exists()
    assert [path.name for path in directory.iterdir()] == ["a"]


def test_names_match_patterns_even_below_a_name_with_brackets(directory):
    odd = directory / "[run] 1"
    odd.mkdir(parents=True)
    for name in ("x.tsv", "y.tsv", "z.txt"):
        (odd / name).write_bytes(b"")
    assert sorted(path.name for path in odd.glob("*.tsv")) == ["x.tsv", "y.tsv"]
    assert list((directory / "none").glob("*")) == []


def test_a_file_that_is_missing_is_an_error_of_the_operating_system(directory):
    with pytest.raises(FileNotFoundError):
        (directory / "a").read_bytes()
    with pytest.raises(FileNotFoundError):
        (directory / "a").stat()
    (directory / "a").unlink(missing_ok=True)


def test_a_file_is_replaced_whole_and_leaves_nothing_else(directory):
    directory.mkdir()
    atomic_file.write_atomically(directory / "a", b"old")
    atomic_file.write_atomically(directory / "a", b"new")
    assert (directory / "a").read_bytes() == b"new"
    assert [path.name for path in directory.iterdir()] == ["a"]


def test_compressed_text_is_read_line_by_line(directory):
    directory.mkdir()
    (directory / "a.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    with (directory / "a.gz").open("rb") as raw:
        assert list(gzip.open(raw)) == [b"one\n", b"two\n"]


def test_a_tree_is_removed_whole(directory):
    directory.mkdir()
    (directory / "a").write_bytes(b"")
    storage.remove_tree(directory)
    storage.remove_tree(directory)
    assert not (directory / "a").exists()


def test_patterns_find_files_sorted(directory):
    directory.mkdir()
    for name in ("b.txt", "a.txt", "c.md"):
        (directory / name).write_bytes(b"")
    assert storage.matching(f"{directory}/*.txt") == [directory / "a.txt", directory / "b.txt"]


def test_a_url_keeps_its_slashes_through_every_way_of_making_paths():
    place = storage.path("gs://bucket/runs") / "small"
    assert str(place) == f"{place}" == "gs://bucket/runs/small"
    assert str(place.with_name("x-1")) == "gs://bucket/runs/x-1"
    assert storage.path(place) == place
    assert pickle.loads(pickle.dumps(place)) == place
    assert str(place.parent.parent) == "gs://bucket"


def test_a_path_of_this_machine_stays_one():
    assert storage.path("a/[b]") == pathlib.Path("a/[b]")
    assert storage.path("file:///tmp/a") == pathlib.Path("/tmp/a")
    assert not isinstance(storage.path("a:b"), RemotePath)


def test_an_unknown_file_system_is_refused_in_one_line():
    with pytest.raises(UserError, match=r"foo://bar/x: TensorFlow has no file system for foo://") \
            as error:
        storage.path("foo://bar/x")
    assert "gs://" in str(error.value) and "\n" not in str(error.value)


def test_what_must_be_local_says_why():
    assert storage.require_local(pathlib.Path("a"), "--output", "it is so") == pathlib.Path("a")
    with pytest.raises(UserError, match="--output=gs://b/x must be a path of this machine: it is"):
        storage.require_local(RemotePath("gs://b/x"), "--output", "it is so")
