"""`run_pretraining.py --recipe=short` and `initialization.*` as a user meets them."""

import contextlib
import io
import json
import shutil
from pathlib import Path

import pytest

from electra_tf.config import pretraining_flags
from electra_tf.platform.errors import UserError
from electra_tf.pretraining import command as pretraining_command
from tests import command_flags, tiny_records, tiny_run

FLAGS = (*tiny_run.OFTEN, "--set=model.hidden_size=32", "--set=model.embedding_size=16",
         "--set=model.intermediate_size=64", "--set=model.max_position_embeddings=32",
         "--set=model.num_layers=1", "--train_batch_size=8")
SHORT = ("--recipe=short", "--learning_rate=3e-4", "--set=model.hidden_dropout=0")


@pytest.fixture(scope="module", autouse=True)
def program_flags():
    with command_flags.defined(pretraining_flags.define):
        yield


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    directory = tmp_path_factory.mktemp("recipes") / "records"
    tiny_records.write(directory)
    return directory


def train(records: Path, model_dir: Path, *flags: str, steps: int = 2) -> dict:
    command_flags.call(pretraining_command.main, f"--data_dir={records}",
                       f"--model_dir={model_dir}", *FLAGS, f"--num_train_steps={steps}", *flags)
    return json.loads((model_dir / "settings.json").read_text())


@pytest.fixture(scope="module")
def finished(records, tmp_path_factory):
    """Returns a run of two steps with a checkpoint, its settings and what it printed."""
    directory = tmp_path_factory.mktemp("finished") / "run"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        saved = train(records, directory, *SHORT)
    return directory, saved, printed.getvalue()


def test_the_short_recipe_is_what_is_trained_and_flags_win_over_it(finished):
    _, saved, printed = finished
    assert saved["initialization.scheme"] == "neighbours"
    assert saved["optimizer.bias_correction"] is True
    assert saved["optimizer.learning_rate"] == 3e-4
    assert [line for line in printed.splitlines() if line.startswith("note")] == [
        "note     optimizer.learning_rate is 0.0003, as given; --recipe=short has 0.001"]


def test_a_run_goes_on_under_another_initialization_and_says_so(
        records, finished, tmp_path, capsys):
    shutil.copytree(finished[0], tmp_path / "run")
    train(records, tmp_path / "run", *SHORT, "--set=initialization.scheme=normal")
    said = capsys.readouterr().out
    assert ("note     initial values matter only at the start, which this run is past: "
            "initialization.scheme: neighbours then, normal now") in said
    assert "2 done, 0 to go" in said


@pytest.mark.slow
def test_lamb_trains_and_is_part_of_what_a_run_is(records, tmp_path, capsys):
    saved = train(records, tmp_path / "run", "--set=optimizer.name=lamb")
    assert saved["optimizer.name"] == "lamb"
    train(records, tmp_path / "run", "--set=optimizer.name=lamb")
    assert "2 done, 0 to go" in capsys.readouterr().out
    with pytest.raises(UserError, match="optimizer.name: lamb then, adam now"):
        train(records, tmp_path / "run")
