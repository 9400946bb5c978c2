"""Every mistake is one clear line that names the flag or file and the fix; nothing is written."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from electra_tf.checkpoints.weights import read_weights
from electra_tf.config import pretraining_flags
from electra_tf.data import manifest
from electra_tf.platform.errors import UserError
from electra_tf.pretraining import command as pretraining_command
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests import command_flags, tiny_records, tiny_run


@pytest.fixture(scope="module", autouse=True)
def program_flags():
    with command_flags.defined(pretraining_flags.define):
        yield


@pytest.fixture
def records(tmp_path):
    tiny_records.write(tmp_path / "records")
    return tmp_path / "records"


def call(records: Path, *arguments: str) -> None:
    """What the command line does with these arguments, in this process."""
    command_flags.call(
        pretraining_command.main, f"--data_dir={records}", "--model_size=tiny",
        f"--model_dir={records.parent / 'model'}", *tiny_run.FLAGS, *arguments)


def refused(records: Path, *arguments: str) -> str:
    """Returns the message of the refusal, checked to be one line that left nothing behind."""
    with pytest.raises(UserError) as error:
        call(records, *arguments)
    assert "\n" not in str(error.value)
    assert not (records.parent / "model").exists()
    return str(error.value)


@pytest.mark.parametrize(("arguments", "words"), [
    (["--model_size=huge"], ["--model_size", "tiny, small, base, large", "'huge'"]),
    (["--mode=dance"], ["--mode", "train, eval, samples", "'dance'"]),
    (["--set=masking.rte=0.1"], ["masking.rte", "Did you mean 'masking.rate'"]),
    (["--num_train_steps=ten"],
     ["--num_train_steps (training.num_train_steps) must", "whole number", "'ten'"]),
    (["--num_train_steps=-5"], ["training.num_train_steps", "greater than 0", "-5"]),
    (["--config=nowhere.yaml"], ["--config=nowhere.yaml", "can't be read"]),
    (["--max_seq_length=64"], ["--max_seq_length=64", "built with 32"]),
    (["--set=model.max_position_embeddings=16"], ["max_position_embeddings=16", "32 tokens long"]),
    (["--train_batch_size=7", "--distribution_strategy=mirrored"],
     ["--train_batch_size=7", "2 replicas", "multiple of 2"]),
    (["--gradient_accumulation_steps=3"], ["--train_batch_size=8", "3 micro-batches"]),
    (["--tpu=x", "--distribution_strategy=mirrored"], ["distribution_strategy", "tpu='x'"]),
    (["--vocab_file=/nonexistent/vocab.txt"], ["/nonexistent/vocab.txt"]),
    (["--data_dir=/nonexistent"], ["/nonexistent", "manifest.json"]),
    (["--data_dir="], ["--data_dir is needed"]),
    (["--mode=eval"], ["model", "no run was started"]),
])
def test_a_wrong_flag_is_refused(records, arguments, words):
    message = refused(records, *arguments)
    for word in words:
        assert word in message


def test_another_vocabulary_is_refused(records, tmp_path):
    Vocabulary((*SPECIAL_TOKENS, "other")).save(tmp_path / "other.txt")
    message = refused(records, f"--vocab_file={tmp_path / 'other.txt'}")
    assert "other.txt (6 entries) isn't the vocabulary" in message


def test_a_damaged_manifest_is_refused(records):
    (records / "manifest.json").write_text("{")
    assert "manifest.json is damaged" in refused(records)


def test_a_model_dir_that_is_a_file_is_refused(records):
    (records.parent / "taken").write_text("")
    with pytest.raises(UserError, match="taken"):
        call(records, f"--model_dir={records.parent / 'taken'}")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Records and a run of two steps on them; tests work on copies."""
    directory = tmp_path_factory.mktemp("trained")
    tiny_records.write(directory / "records")
    call(directory / "records", "--num_train_steps=2", "--eval_steps=1")
    return directory


class TestAnExistingRun:
    @pytest.fixture
    def records(self, trained, tmp_path):
        shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
        return tmp_path / "records"

    @pytest.fixture
    def model_dir(self, records):
        return records.parent / "model"

    def test_its_networks_can_begin_another_run(self, records, model_dir, tmp_path, capsys):
        call(records, f"--init_checkpoint={model_dir}", f"--model_dir={tmp_path / 'second'}",
             "--num_train_steps=1", "--learning_rate=1e-9", "--eval_steps=1")
        assert f"begins   with {model_dir}, step 2\n" in capsys.readouterr().out
        first, second = read_weights(model_dir), read_weights(tmp_path / "second")
        assert first.keys() == second.keys() and len(first) > 60
        for name, value in first.items():
            np.testing.assert_allclose(second[name], value, atol=1e-6)

    def test_networks_of_another_shape_or_text_begin_nothing(self, records, model_dir, tmp_path):
        other = f"--model_dir={tmp_path / 'second'}"
        with pytest.raises(UserError, match="model.intermediate_size is 64 there, 96 here"):
            call(records, f"--init_checkpoint={model_dir}", other,
                 "--set=model.intermediate_size=96")
        settings = json.loads((model_dir / "settings.json").read_text())
        (model_dir / "settings.json").write_text(json.dumps(settings | {"lower_case": False}))
        with pytest.raises(UserError, match="another normalization of text"):
            call(records, f"--init_checkpoint={model_dir}", other)

    def test_changed_settings_are_refused_each_by_name(self, records, model_dir):
        with pytest.raises(UserError) as error:
            call(records, "--num_train_steps=1", "--learning_rate=1e-4", "--seed=5")
        message = str(error.value)
        for words in ("--num_train_steps (training.num_train_steps): 2 then, 1 now",
                      "--seed (training.seed): 1 then, 5 now",
                      "--learning_rate (optimizer.learning_rate): 0.003 then, 0.0001 now"):
            assert words in message
        assert "\n" not in message

    def test_settings_of_speed_may_change(self, records, model_dir):
        call(records, "--num_train_steps=2", "--log_every_steps=7",
             "--gradient_accumulation_steps=2", "--keep_checkpoint_max=9")

    def test_other_records_are_refused(self, records, model_dir, tmp_path):
        made = manifest.load(records)
        shutil.copytree(records, tmp_path / "other")
        dataclasses.replace(
            made, shards=made.shards[1:], counts=tiny_records.counts_of(made.shards[1:]),
        ).save(tmp_path / "other")
        with pytest.raises(UserError, match="dataset: "):
            call(records, "--num_train_steps=2", f"--data_dir={tmp_path / 'other'}")

    def test_evaluation_of_another_size_is_refused(self, records, model_dir):
        with pytest.raises(UserError, match="model.num_layers: 2 then, 12 now"):
            call(records, "--mode=eval", "--model_size=small")

    def test_a_damaged_settings_file_is_refused(self, records, model_dir):
        (model_dir / "settings.json").write_text("{")
        with pytest.raises(UserError, match="settings.json is damaged"):
            call(records, "--num_train_steps=2")

    def test_a_second_process_is_refused(self, records, model_dir):
        from electra_tf.checkpoints.run_directory import only_process
        with only_process(model_dir), pytest.raises(UserError, match="another process"):
            call(records, "--num_train_steps=2")
