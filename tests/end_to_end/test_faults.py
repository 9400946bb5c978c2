"""Runs whose files were damaged, moved or removed."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints import checkpoint_files
from electra_tf.checkpoints.run_directory import text_settings
from electra_tf.core import storage
from electra_tf.core.errors import UserError
from electra_tf.pretraining import loop
from electra_tf.reporting.metrics_log import read_metrics
from electra_tf.text.vocabulary import Vocabulary
from tests.end_to_end import commands
from tests.end_to_end.commands import train
from tests.support import named_arrays, tiny_records, tiny_run
from tests.support.processes import state, step_of


def logged(model_dir) -> list[int]:
    return [record["step"] for record in read_metrics(model_dir / "metrics.jsonl")
            if record["kind"] == "train"]


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / finished.name)


def test_a_run_with_a_damaged_newest_checkpoint_uses_the_one_before(
        records, finished, run, capsys):
    (run / "checkpoints" / "ckpt-4.data-00000-of-00001").write_bytes(b"cut")
    (run / "checkpoints" / "ckpt-6_temp").mkdir()  # A process was killed while it saved.
    capsys.readouterr()
    train(records, run)
    captured = capsys.readouterr()
    assert "ckpt-4 is damaged" in captured.err and "step 2" in captured.err
    assert "2 done, 2 to go" in captured.out
    assert logged(run) == [2, 4] and not (run / "checkpoints" / "ckpt-6_temp").exists()
    named_arrays.assert_close(named_arrays.of_run(run), named_arrays.of_run(finished), atol=1e-6)


def test_a_run_that_lost_its_checkpoints_is_refused_and_keeps_its_metrics(records, run):
    for remove in (lambda: checkpoint_files.remove(run / "checkpoints", {2, 4}),
                   lambda: shutil.rmtree(run / "checkpoints")):
        remove()
        with pytest.raises(UserError, match="none is left.*--restart"):
            train(records, run)
    assert logged(run) == [2, 4]


def test_a_vocabulary_with_two_lines_swapped_is_refused(run):
    vocabulary = Vocabulary.load(run / "vocab.txt")
    tokens = list(vocabulary.tokens)
    tokens[7], tokens[8] = tokens[8], tokens[7]
    Vocabulary(tuple(tokens)).save(run / "vocab.txt")
    with pytest.raises(UserError, match="vocab.txt isn't the vocabulary that the run was trained"):
        text_settings(run)


@pytest.mark.slow
def test_records_and_run_may_live_on_another_file_system(tmp_path, capsys):
    home = storage.path(f"ram:/{tmp_path}")
    tiny_records.write(home / "records")
    for _ in range(2):
        train(f"{home}/records", f"{home}/run")
    printed = capsys.readouterr().out
    assert "this run is finished" in printed and f"{home}/run/loss_curves.png" in printed
    assert logged(home / "run") == [2, 4]
    names = {path.name for path in (home / "run").iterdir()}
    assert {"settings.json", "vocab.txt", "metrics.jsonl", "loss_curves.png", "eval_results.json",
            "tensorboard", "checkpoints"} <= names
    commands.export(f"--model_dir={home}/run", f"--output={home}/served")
    loaded = tf.saved_model.load(f"{home}/served/1")
    assert loaded.signatures["detect"](tf.constant(["word1 word2"]))["words"].shape == (1, 2)
    assert not Path("ram:").exists()


@pytest.mark.parametrize("steps_per_loop", [
    1, pytest.param(100, marks=pytest.mark.slow)])
def test_non_finite_steps_are_named_and_the_last_checkpoint_is_good(
        records, tmp_path, monkeypatch, steps_per_loop):
    run = tiny_run.run_on(records, tmp_path / "model", model__num_layers=1,
                          training__num_train_steps=12, runtime__save_checkpoints_steps=4,
                          runtime__log_every_steps=4, runtime__steps_per_loop=steps_per_loop)
    compute = type(run.objective).compute

    def poisoned(self, model, inputs, rng, *, training):
        output = compute(self, model, inputs, rng, training=training)
        factor = tf.where((rng.step == 5) | (rng.step == 6), np.nan, 1.0)
        sums = {name: value * factor for name, value in output.loss_sums.items()}
        return output._replace(loss_sums=sums)

    monkeypatch.setattr(type(run.objective), "compute", poisoned)
    with pytest.raises(UserError, match="loss is not finite at step 6, 7. Begin again with --rest"):
        loop.train(run)
    assert step_of(tmp_path / "model") == 4
    assert all(np.isfinite(value).all() for value in state(tmp_path / "model").values())
