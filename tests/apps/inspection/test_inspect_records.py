"""The command: what it prints and writes, and mistakes in one line."""

import re
import shutil

import pytest

from electra_tf.apps.inspection import inspect_records
from electra_tf.platform.errors import UserError
from tests import command_flags, tiny_records


@pytest.fixture(autouse=True)
def program_flags():
    with command_flags.defined(inspect_records.define):
        yield


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    directory = tmp_path_factory.mktemp("built") / "records"
    tiny_records.write(directory)
    return directory


def call(directory, *arguments):
    command_flags.call(lambda: inspect_records.main(str(directory)), *arguments)


def test_everything_is_printed_and_the_page_holds_the_same(records, tmp_path, capsys):
    page = tmp_path / "records.html"
    call(records, f"--html={page}", "--examples=2", "--set=masking.rate=0.5")
    printed = capsys.readouterr().out
    titles = re.findall(r"^(?=[A-Z])\S.*$", printed, re.MULTILINE)
    assert titles == ["Records", "Lengths", "Words, and those that became [UNK], by script",
                      "Pieces: 35 besides the special tokens", "Repeated text",
                      "Examples, and what masking does to them", "What to look at"]
    assert printed.count("to be found\n") == 2 and "read 96 examples" in printed
    assert printed.endswith(f"wrote {page}\n")
    text = page.read_text(encoding="utf-8")
    assert all(f">{title}</h2>" in text for title in titles)
    assert text.count("<h3>") == 2


def test_parts_and_no_examples(records, capsys):
    call(records, "--max_examples=5", "--examples=0")
    printed = capsys.readouterr().out
    assert "5 of 86 training and 5 of 10 held out" in printed and "read 10 examples" in printed
    assert "Examples, and" not in printed


def test_no_records_are_one_line(records, tmp_path):
    (tmp_path / "file").write_text("text")
    for directory, words in (
            (tmp_path / "nowhere", "nowhere does not exist; name a directory of records"),
            (tmp_path / "file", "file is a file; name a directory of records"),
            (tmp_path, "manifest.json does not exist: the build of these records did not finish"),
            (f"{records}:0.5,{records}:0.5", "several directories; look at one at a time"),
            (f"{records}:1", "does not exist"), ("", "manifest.json does not exist")):
        with pytest.raises(UserError, match=words) as error:
            call(directory)
        assert "\n" not in str(error.value)


def test_damaged_records_are_one_line(records, tmp_path):
    for name, content, words in (
            ("vocab.txt", None, "cannot read the vocabulary"),
            ("vocab.txt", b"[PAD]\n", "no line holds"),
            ("vocab.txt", b"\xff\xfe", "not UTF-8"),
            ("manifest.json", b"{}", "'format_version' is missing"),
            ("train-00001.tfrecord", None, "cannot be read"),
            ("train-00001.tfrecord", b"", "has 0 bytes instead of")):
        damaged = tmp_path / "damaged"
        shutil.rmtree(damaged, ignore_errors=True)
        shutil.copytree(records, damaged)
        (damaged / name).unlink()
        if content is not None:
            (damaged / name).write_bytes(content)
        with pytest.raises(UserError, match=words):
            call(damaged)


@pytest.mark.parametrize(("argument", "words"), [
    ("--html=", "--html must name a file"), ("--html={0}", "--html must name a file"),
    ("--html={0}/nowhere/page.html", "nowhere is no directory"),
    ("--html={0}/file/page.html", "file is no directory"),
    ("--set=masking.rate=2", r"masking.rate must be in \(0, 1\)"),
    ("--set=masking.rates=0.2", "unknown setting 'masking.rates'"),
    ("--config=nowhere.yaml", "nowhere.yaml")])
def test_other_mistakes_are_one_line(records, tmp_path, argument, words):
    (tmp_path / "file").write_text("text")
    with pytest.raises(UserError, match=words):
        call(records, argument.format(tmp_path))


def test_a_page_that_may_not_be_written_is_one_line(records, tmp_path, monkeypatch):
    monkeypatch.setattr(inspect_records.os, "access", lambda *_: False)
    with pytest.raises(UserError, match="may not be written to; choose another directory"):
        call(records, f"--html={tmp_path}/page.html")
