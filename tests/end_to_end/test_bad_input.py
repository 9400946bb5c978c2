"""Every mistake is one clear line that names the flag or file and the fix; nothing is written."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from electra_tf.checkpoints.run_directory import only_process
from electra_tf.checkpoints.weights import read_weights
from electra_tf.data import manifest
from electra_tf.platform.errors import UserError
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests import tiny_records, tiny_run
from tests.end_to_end import commands


@pytest.fixture
def records(tmp_path):
    tiny_records.write(tmp_path / "records")
    return tmp_path / "records"


def call(records: Path, *arguments: str) -> None:
    commands.pretrain(f"--data_dir={records}", "--model_size=tiny",
                      f"--model_dir={records.parent / 'model'}", *tiny_run.FLAGS, *arguments)


def refused(records: Path, *arguments: str) -> str:
    """Returns the message of the refusal, checked to have left nothing behind."""
    message = commands.refused(call, records, *arguments)
    assert not (records.parent / "model").exists()
    return message


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
    assert "other.txt (6 entries, " in message and "isn't the vocabulary that the rec" in message


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


@pytest.fixture
def model_dir(trained, tmp_path):
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    return tmp_path / "model"


def test_networks_of_a_run_can_begin_another_one_on_the_same_text(model_dir, tmp_path, capsys):
    begin = (f"--init_checkpoint={model_dir}", f"--model_dir={tmp_path / 'second'}")
    call(tmp_path / "records", *begin, "--num_train_steps=1", "--learning_rate=1e-9",
         "--eval_steps=1")
    assert f"begins   with {model_dir}, step 2\n" in capsys.readouterr().out
    first, second = read_weights(model_dir), read_weights(tmp_path / "second")
    assert first.keys() == second.keys() and len(first) > 60
    for name, value in first.items():
        np.testing.assert_allclose(second[name], value, atol=1e-6)
    settings = json.loads((model_dir / "settings.json").read_text())
    (model_dir / "settings.json").write_text(json.dumps(settings | {"lower_case": False}))
    with pytest.raises(UserError, match="another normalization of text"):
        call(tmp_path / "records", *begin)


def test_what_does_not_fit_an_existing_run_is_refused_by_name(model_dir, tmp_path):
    def refused(words, *arguments):
        message = commands.refused(call, tmp_path / "records", "--num_train_steps=2", *arguments)
        assert words in message, message

    for words in ("--num_train_steps (training.num_train_steps): 2 then, 1 now",
                  "--seed (training.seed): 1 then, 5 now",
                  "--learning_rate (optimizer.learning_rate): 0.003 then, 0.0001 now"):
        refused(words, "--num_train_steps=1", "--learning_rate=1e-4", "--seed=5")
    refused("model.num_layers: 2 then, 12 now", "--mode=eval", "--model_size=small")
    made = manifest.load(tmp_path / "records")
    other = shutil.copytree(tmp_path / "records", tmp_path / "other")
    dataclasses.replace(made, shards=made.shards[1:],
                        counts=tiny_records.counts_of(made.shards[1:])).save(other)
    refused("dataset: ", f"--data_dir={other}")
    with only_process(model_dir):
        refused("another process")
    call(tmp_path / "records", "--num_train_steps=2", "--log_every_steps=7",
         "--gradient_accumulation_steps=2", "--keep_checkpoint_max=9")  # They decide no result.
    (model_dir / "settings.json").write_text("{")
    refused("settings.json is damaged")
