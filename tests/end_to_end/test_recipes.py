"""`run_pretraining.py --recipe=short` and `initialization.*` as a user meets them."""

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
         "--train_batch_size=8")


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


def test_the_short_recipe_is_what_is_trained_and_flags_win_over_it(records, tmp_path, capsys):
    saved = train(records, tmp_path / "run", "--recipe=short", "--learning_rate=3e-4",
                  "--set=model.hidden_dropout=0")
    assert saved["initialization.scheme"] == "neighbours"
    assert saved["optimizer.bias_correction"] is True
    assert saved["optimizer.learning_rate"] == 3e-4
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("note")] == [
        "note     optimizer.learning_rate is 0.0003, as given; --recipe=short has 0.001"]


def test_an_unknown_recipe_is_refused(records, tmp_path):
    with pytest.raises(UserError, match="--recipe must be one of paper, short. Received: 'fast'"):
        train(records, tmp_path / "run", "--recipe=fast")


@pytest.fixture(scope="module")
def finished(records, tmp_path_factory):
    """A run of two steps with a checkpoint; tests work on copies."""
    directory = tmp_path_factory.mktemp("finished") / "run"
    train(records, directory, "--set=runtime.save_checkpoints_steps=1")
    return directory


def test_a_run_goes_on_under_another_initialization_and_says_so(
        records, finished, tmp_path, capsys):
    shutil.copytree(finished, tmp_path / "run")
    train(records, tmp_path / "run", "--set=initialization.scheme=neighbours",
          "--set=runtime.save_checkpoints_steps=1")
    said = capsys.readouterr().out
    assert ("note     initial values matter only at the start, which this run is past: "
            "initialization.scheme: normal then, neighbours now") in said
    assert "2 done, 0 to go" in said


def test_a_run_without_a_checkpoint_refuses_another_initialization(records, finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    for path in (tmp_path / "run" / "checkpoints").iterdir():
        path.unlink()
    (tmp_path / "run" / "metrics.jsonl").unlink()
    with pytest.raises(UserError, match="initialization.scheme: normal then, neighbours now"):
        train(records, tmp_path / "run", "--set=initialization.scheme=neighbours")


def test_another_optimizer_is_refused(records, finished):
    with pytest.raises(UserError, match="optimizer.name: adam then, lamb now"):
        train(records, finished, "--set=optimizer.name=lamb")


@pytest.mark.slow
def test_lamb_trains_and_is_part_of_what_a_run_is(records, tmp_path, capsys):
    saved = train(records, tmp_path / "run", "--set=optimizer.name=lamb")
    assert saved["optimizer.name"] == "lamb"
    train(records, tmp_path / "run", "--set=optimizer.name=lamb")
    assert "2 done, 0 to go" in capsys.readouterr().out
