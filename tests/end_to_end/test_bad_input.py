"""Every mistake is one clear line that names the flag or file and the fix; nothing is written."""

import dataclasses
import functools
import shutil

import pytest

from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.run_directory import only_process
from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.core.atomic_file import write_json
from electra_tf.core.errors import UserError
from electra_tf.data import manifest
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.end_to_end import commands
from tests.support import tiny_records


@pytest.fixture
def call(records, tmp_path):
    """Returns a function that pre-trains into "model"."""
    return functools.partial(commands.train, records, tmp_path / "model")


@pytest.fixture
def refused(call, tmp_path):
    """Returns a function to the message of a refusal, which leaves nothing behind."""
    yield functools.partial(commands.refused, call)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(("arguments", "words"), [
    (["--model_size=huge"], ["--model_size", "tiny, small, base, large", "'huge'"]),
    (["--mode=dance"], ["--mode", "train, eval, samples", "'dance'"]),
    (["--max_seq_length=64"], ["--max_seq_length=64", "built with 32"]),
    (["--set=model.max_position_embeddings=16"], ["max_position_embeddings=16", "32 tokens long"]),
    (["--train_batch_size=7", "--distribution_strategy=mirrored"],
     ["--train_batch_size=7", "2 replicas", "multiple of 2"]),
    (["--gradient_accumulation_steps=3"], ["--train_batch_size=8", "3 micro-batches"]),
    (["--data_dir=/nonexistent"], ["/nonexistent", "manifest.json"]),
    (["--mode=eval"], ["model", "no run was started"]),
    (["--mode=eval", "--init_checkpoint=x"], ["--init_checkpoint has no effect with --mode=eval"]),
])
def test_a_wrong_flag_is_refused(refused, arguments, words):
    message = refused(*arguments)
    for word in words:
        assert word in message


def test_an_unusable_vocabulary_manifest_or_directory_is_refused(
        call, refused, records, tmp_path):
    Vocabulary((*SPECIAL_TOKENS, "other")).save(tmp_path / "other.txt")
    message = refused(f"--vocab_file={tmp_path / 'other.txt'}")
    assert "other.txt (6 entries, " in message and "isn't the vocabulary that the rec" in message
    damaged = shutil.copytree(records, tmp_path / "damaged")
    (damaged / "manifest.json").write_text("{")
    assert "manifest.json is damaged" in refused(f"--data_dir={damaged}")
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match="taken"):
        call(f"--model_dir={tmp_path / 'taken'}")


@pytest.fixture
def model_dir(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "model")


def test_what_does_not_fit_an_existing_run_is_refused_by_name(call, records, model_dir, tmp_path):
    def refused(words, *arguments):
        assert words in commands.refused(call, *arguments)

    for words in ("training.num_train_steps: 4 in the run, 1 now",
                  "training.seed: 1 in the run, 5 now",
                  "optimizer.learning_rate: 0.003 in the run, 0.0001 now"):
        refused(words, "--num_train_steps=1", "--learning_rate=1e-4", "--seed=5")
    refused("model.num_heads: 2 in the run, 4 now", "--mode=eval", "--model_size=small")
    refused("masking.mask_token_rate: 0.85 in the run, 0.0 now", "--mode=eval",
            "--set=masking.mask_token_rate=0")
    made = manifest.load(records)
    other = shutil.copytree(records, tmp_path / "other")
    dataclasses.replace(made, shards=made.shards[1:],
                        counts=tiny_records.counts_of(made.shards[1:])).save(other)
    refused("dataset: ", f"--data_dir={other}")
    with only_process(model_dir):
        refused("another process")
    call("--log_every_steps=7", "--gradient_accumulation_steps=2",
         "--keep_checkpoint_max=9")  # They decide no result.
    facts = {name: value for name, value in run_directory.read_identity(model_dir).items()
             if "." not in name}
    write_json(model_dir / "settings.json",
               run_directory.identity(FinetuningConfig(), facts | {"task_name": "cola"}))
    for mode in ("eval", "samples"):
        refused("holds a fine-tuned model", f"--mode={mode}")
    (model_dir / "settings.json").write_text("{")
    refused("settings.json is damaged")
