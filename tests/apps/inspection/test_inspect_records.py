"""The command: what it prints and writes, and mistakes in one line."""

import re

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
                      "Pieces: 35 besides the special tokens",
                      "Examples, and what masking does to them", "What to look at"]
    assert printed.count("to be found\n") == 2
    assert printed.endswith(f"wrote {page}\n")
    text = page.read_text(encoding="utf-8")
    assert all(f">{title}</h2>" in text for title in titles)
    assert text.count("<h3>") == 2


def test_mistakes_are_one_line(records, tmp_path):
    for directory, argument, words in (
            (tmp_path / "nowhere", "", "nowhere is no directory; name one directory of records"),
            (tmp_path, "", "manifest.json does not exist"),
            (records, "--html=", "--html must name a file"),
            (records, f"--html={tmp_path}/nowhere/page.html", "in a directory that exists"),
            (records, "--set=masking.rate=2", r"masking.rate must be in \(0, 1\)")):
        with pytest.raises(UserError, match=words) as error:
            call(directory, *filter(None, [argument]))
        assert "\n" not in str(error.value)
