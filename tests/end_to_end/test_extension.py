"""A finished run gets more steps, and commands on a run take its settings from it."""

import json
import shutil
from unittest import mock

import pytest

from electra_tf.checkpoints import checkpoint_files
from electra_tf.core.errors import UserError
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.reporting.metrics_log import read_metrics
from tests.end_to_end import commands
from tests.end_to_end.commands import ONE_LAYER
from tests.support import named_arrays, tiny_networks
from tests.support.processes import state, step_of


@pytest.fixture
def directory(records, finished, tmp_path):
    """Records and a finished run of four steps."""
    (tmp_path / "records").symlink_to(records)
    shutil.copytree(finished, tmp_path / "first")
    return tmp_path


def call(directory, run, *arguments):
    commands.pretrain(f"--data_dir={directory / 'records'}", f"--model_dir={directory / run}",
                      *commands.OFTEN, *arguments, "--keep_checkpoint_max=0")


def rates(model_dir):
    return {line["step"]: line["learning_rate"]
            for line in read_metrics(model_dir / "metrics.jsonl") if line["kind"] == "train"}


@pytest.mark.slow
def test_an_extension_that_was_killed_ends_with_the_same_weights(directory, capsys):
    call(directory, "first", "--num_train_steps=10", "--log_every_steps=1")
    printed = capsys.readouterr().out
    assert "steps    4 done, 6 to go\nextended at step 4: " in printed
    assert "--num_train_steps=20\n" in printed
    expected = state(directory / "first")
    assert step_of(directory / "first") == 10
    # From step 4 on a warm-up of 0.6 steps and a decay over 6.
    assert rates(directory / "first")[5] == 0.0
    for step in range(6, 11):
        assert rates(directory / "first")[step] == pytest.approx(3e-3 * (1 - (step - 5) / 6))
    for name, left in ("killed", 6), ("damaged", 2):
        shutil.copytree(directory / "first", directory / name)
        checkpoint_files.remove(directory / name / "checkpoints", range(left + 1, 11))
        (directory / name / "checkpoints" / "checkpoint").unlink()
        call(directory, name, "--num_train_steps=10")
        assert f"steps    {left} done, {10 - left} to go" in capsys.readouterr().out
        named_arrays.assert_close(state(directory / name), expected)
    call(directory, "first")
    assert "10 done, 0 to go: this run is finished" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"training.num_train_steps: 10 in the run, 4 now"):
        call(directory, "first", "--num_train_steps=4")


def test_a_run_at_a_constant_rate_is_extended_and_decayed_at_its_end(directory, capsys):
    def extend(steps, fraction, *flags):
        call(directory, "stable", *flags, f"--num_train_steps={steps}", "--log_every_steps=1",
             f"--set=optimizer.decay_fraction={fraction}")

    extend(2, 0, *ONE_LAYER)
    extend(3, 0)
    assert "extended at step 2: the learning rate continues\n" in capsys.readouterr().out
    extend(6, 0.5)
    assert "extended at step 2, 3: the learning rate continues\n" in capsys.readouterr().out
    saved = json.loads((directory / "stable" / "settings.json").read_text())
    assert saved["stable_until"] == 3 and saved["optimizer.decay_fraction"] == 0.5
    assert list(rates(directory / "stable").values()) == pytest.approx(
        [3e-3 * factor for factor in (0, 1 / 2, 1, 1, 2 / 3, 1 / 3)])
    expected = state(directory / "stable")
    checkpoint_files.remove(directory / "stable" / "checkpoints", [6])
    (directory / "stable" / "checkpoints" / "checkpoint").unlink()
    call(directory, "stable")
    named_arrays.assert_close(state(directory / "stable"), expected)
    with pytest.raises(UserError, match="decay_fraction: 0.5 in the run, 0.25 now"):
        extend(8, 0.25)


def test_only_a_finished_run_with_equal_settings_is_extended(directory):
    with pytest.raises(UserError, match="optimizer.learning_rate: 0.003 in the run, 0.0001 now"):
        call(directory, "first", "--num_train_steps=6", "--learning_rate=1e-4")
    checkpoint_files.remove(directory / "first" / "checkpoints", {4})
    with pytest.raises(UserError, match=r"=8 would extend .* at step 2 of 4. Only a finished run"):
        call(directory, "first", "--num_train_steps=8")
    (directory / "first" / "notes.txt").write_text("mine")
    call(directory, "first", "--restart", *ONE_LAYER, "--num_train_steps=6")
    assert (directory / "first" / "notes.txt").read_text() == "mine"
    assert "finished_at" not in json.loads((directory / "first" / "settings.json").read_text())


@pytest.mark.slow
def test_two_stages_are_extended_in_the_second(directory, capsys):
    call(directory, "both", *ONE_LAYER, "--set=objective.name=two_stage", "--num_train_steps=4")
    assert "--num_train_steps=8\n" in capsys.readouterr().out
    call(directory, "both", "--num_train_steps=8")
    assert (step_of(directory / "both" / "generator"), step_of(directory / "both")) == (2, 6)


def test_networks_of_a_run_begin_another_one_of_their_shape_on_the_same_text(directory, capsys):
    initial = f"--init_checkpoint={directory / 'first'}"
    call(directory, "second", initial, "--num_train_steps=1", "--learning_rate=1e-9",
         "--set=model.max_position_embeddings=40")
    assert (f"begins   with {directory / 'first'}, step 4; new: positions 32 to 39 (copies of the "
            "first 32)\n") in capsys.readouterr().out
    first, second = ({name: value for name, value in named_arrays.of_run(directory / run).items()
                      if "position" not in name} for run in ("first", "second"))
    assert len(first) > 40
    named_arrays.assert_close(second, first, atol=1e-6)
    first, second = (json.loads((directory / name / "settings.json").read_text())
                     for name in ("first", "second"))
    for name in ("hidden_size", "num_layers", "num_heads", "generator_width", "tying"):
        assert second[f"model.{name}"] == first[f"model.{name}"]
    call(directory, "second", "--num_train_steps=2")
    for change, words in (
            ("--set=model.generator_width=1.0", "model.generator_width is 0.5, not 1.0"),
            ("--set=model.num_heads=4", "model.num_heads is 2, not 4"),
            ("--set=model.tying=none", "model.tying is all_embeddings, not none. Leave"),
            ("--model_size=small", "model.hidden_size is 32, not 256")):
        with pytest.raises(UserError, match=words):
            call(directory, "third", initial, change)
    (directory / "first" / "settings.json").write_text(json.dumps(first | {"lower_case": False}))
    with pytest.raises(UserError, match="normalization lower_case=False, strip_acc.* built with"):
        call(directory, "third", initial)
    assert not (directory / "third").exists()


def test_an_encoder_alone_can_give_a_wide_generator_its_layers(directory, capsys):
    checkpoint = tiny_networks.pretrained(model__intermediate_size=128)
    pretrained.write(tiny_networks.without(checkpoint, "generator", "discriminator"),
                     directory / "encoder", Format.RUN)
    call(directory, "second", f"--init_checkpoint={directory / 'encoder'}", "--num_train_steps=1",
         "--set=model.generator_width=1.0")
    assert ("; new: discriminator_predictions, generator_predictions, generator (copy of the "
            "encoder's first 2 layers)\n") in capsys.readouterr().out
    assert pretrained.read(directory / "second").config.generator.num_heads == 2


def test_a_failed_start_leaves_the_directory_free(directory, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("electra_tf.pretraining.loop.restore",
                        mock.Mock(side_effect=UserError("no room")))
        with pytest.raises(UserError, match="no room"):
            call(directory, "new", *ONE_LAYER, "--num_train_steps=2")
    assert (directory / "new" / "settings.json").exists()
    call(directory, "new", *ONE_LAYER, "--num_train_steps=2", "--seed=7")
    assert step_of(directory / "new") == 2
