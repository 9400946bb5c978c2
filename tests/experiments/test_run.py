"""What the command refuses before anything runs."""

import pytest

from electra_tf.platform.errors import UserError
from experiments import run
from tests import command_flags, tiny_records


@pytest.fixture(autouse=True)
def program_flags():
    with command_flags.defined(run.define):
        yield


@pytest.fixture
def place(tmp_path):
    tiny_records.write(tmp_path / "records")
    (tmp_path / "tasks" / "conll2000").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(("arguments", "problem"), [
    ([], "--sweep is needed"),
    (["--sweep=nothing"], "there is no sweep 'nothing'"),
    (["--sweep=tying", "--budget=big"], "--budget must be one of"),
    (["--sweep=tying"], "--data_dir is needed"),
    (["--sweep=tying", "--data_dir=/nowhere", "--tasks_dir={0}/tasks", "--tasks=chunk"],
     "/nowhere/manifest.json does not exist"),
    (["--sweep=tying", "--data_dir={0}/records", "--tasks_dir={0}/tasks"],
     "stsb needs .*/tasks/glue, which doesn't exist"),
    (["--sweep=tying", "--data_dir={0}/records", "--tasks_dir={0}/tasks", "--tasks=sudoku"],
     "--tasks: a task must be one of .* Received: 'sudoku'"),
    (["--sweep=tying", "--data_dir={0}/records", "--tasks_dir={0}/tasks", "--tasks=chunk",
      "--output_dir=/proc/out", "--results={0}/results.sqlite"], "/proc/out"),
])
def test_one_line(place, arguments, problem):
    with pytest.raises(UserError, match=problem) as caught:
        command_flags.call(run.main, *(argument.format(place) for argument in arguments))
    assert "\n" not in str(caught.value)


def test_the_sweeps_are_listed_and_a_name_may_stand_first(capsys):
    command_flags.call(run.main, "--list")
    printed = capsys.readouterr().out
    assert "objectives        From BERT to ELECTRA in single steps" in printed
    assert run.name_first(["run.py", "tying", "--seeds=1"]) == [
        "run.py", "--sweep=tying", "--seeds=1"]
    assert run.name_first(["run.py", "--list"]) == ["run.py", "--list"]
