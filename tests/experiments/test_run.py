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
    (["--budget=big"], "--budget must be one of"),
    (["--data_dir=/nowhere", "--tasks=chunk"], "/nowhere/manifest.json does not exist"),
    ([], "stsb needs .*/tasks/glue, which doesn't exist"),
    (["--tasks=sudoku"], "--tasks: a task must be one of .* Received: 'sudoku'"),
    (["--tasks=chunk", "--output_dir=/proc/out"], "/proc/out"),
])
def test_one_line(place, arguments, problem):
    with pytest.raises(UserError, match=problem) as caught:
        command_flags.call(lambda: run.main("tying"), f"--data_dir={place}/records",
                           f"--tasks_dir={place}/tasks", f"--results={place}/results.sqlite",
                           *arguments)
    assert "\n" not in str(caught.value)
