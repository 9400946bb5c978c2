"""The commands with few flags: the defaults that they choose, print and refuse."""

import json

import pytest

from electra_tf.config import finetuning_flags, pretraining_flags
from electra_tf.finetuning import command as finetuning_command
from electra_tf.platform.errors import UserError
from electra_tf.pretraining import command as pretraining_command
from tests import command_flags, tiny_encoder, tiny_records, tiny_run

TABLE = "title\ttopic\n" + "word1 word7\tyes\nword2 word9\tno\n" * 8


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def finetune(*arguments):
    with command_flags.defined(finetuning_flags.define):
        command_flags.call(finetuning_command.main, *arguments)


def pretrain(*arguments):
    with command_flags.defined(pretraining_flags.define):
        command_flags.call(pretraining_command.main, *arguments)


def defaults(printed):
    return [line.split(None, 1)[1] for line in printed.splitlines() if line.startswith("default ")]


def test_pretraining_reads_records_and_names_its_run_after_the_size(directory, capsys):
    tiny_records.write(directory / "records")
    pretrain("--model_size=tiny", *tiny_run.FLAGS, "--num_train_steps=1")
    assert defaults(capsys.readouterr().out) == ["--model_dir=runs/tiny", "--data_dir=records"]
    assert (directory / "runs" / "tiny" / "settings.json").exists()


@pytest.mark.parametrize(("size", "length"), [("base", 512), ("small", 128)])
def test_without_records_the_error_has_the_commands_that_build_them(directory, size, length):
    with pytest.raises(UserError, match=(
            "--data_dir=records holds no records.* from Wikipedia: curl -LO https.*xml.bz2 && "
            "python -m data_prep.build_vocab .* && python -m data_prep.build_pretraining_data "
            f".*--output_dir=records --max_seq_length={length}$")) as error:
        pretrain("--tpu=NAME", f"--model_size={size}")
    assert "\n" not in str(error.value)
    assert not list(directory.iterdir())


def test_finetuning_names_its_run_after_the_task(directory, capsys):
    tiny_encoder.write(directory / "encoder")
    (directory / "rows.tsv").write_text(TABLE, encoding="utf-8")
    finetune("--task=classification", "--train=rows.tsv", "--dev=rows.tsv", "--text_columns=title",
             "--label_column=topic", "--init_checkpoint=encoder", "--num_trials=1",
             "--num_train_epochs=1", "--max_seq_length=16", "--precision=float32",
             "--distribution_strategy=one_device", "--set=runtime.cpu_parts=1")
    assert defaults(capsys.readouterr().out) == ["--model_dir=runs/classification"]
    found = json.loads((directory / "runs" / "classification" / "results.json").read_text())
    assert found["task"] == "classification"


def test_finetuning_begins_with_google_s_small_discriminator(monkeypatch, capsys):
    def read(path, *, generator):
        raise UserError(f"asked for {path}, generator {generator}")

    monkeypatch.setattr("electra_tf.checkpoints.formats.read", read)
    with pytest.raises(UserError, match="google/electra-small-discriminator, generator False"):
        finetune("--task=squad")
    assert defaults(capsys.readouterr().out) == [
        "--model_dir=runs/squad", "--init_checkpoint=google/electra-small-discriminator"]


@pytest.mark.parametrize(("arguments", "source"), [
    (["--task=squad"], True), (["--task=cola,sst2"], True),
    (["--task=squad", "--data_dir=x"], False),
    (["--task=squad", "--train=x"], False),
    (["--task=classification", "--train=x"], False),
    (["--task=squad", "--data_source=files"], False)])
def test_benchmarks_without_files_come_from_tensorflow_datasets(
        directory, monkeypatch, capsys, arguments, source):
    def load(name, data_dir, own, *, from_tfds):
        raise UserError(f"{name} {from_tfds}")

    tiny_encoder.write(directory / "encoder")
    monkeypatch.setattr("electra_tf.tasks.registry.load", load)
    with pytest.raises(UserError, match=f" {source}$"):
        finetune(*arguments, "--init_checkpoint=encoder")
    assert ("--data_source=tfds" in defaults(capsys.readouterr().out)) == source


def test_a_task_of_files_only_names_their_source(directory):
    tiny_encoder.write(directory / "encoder")
    for task in ("chunk", "newsqa"):
        with pytest.raises(UserError, match="by --data_dir; docs/how_to/fine_tuning.md has"):
            finetune(f"--task={task}", "--init_checkpoint=encoder")
    assert not (directory / "runs").exists()


def test_an_empty_flag_is_no_default(directory):
    for flag in ("model_dir", "data_dir"):
        with pytest.raises(UserError, match=f"--{flag} is needed"):
            pretrain(f"--{flag}=")
    for flag in ("model_dir", "init_checkpoint"):
        with pytest.raises(UserError, match=f"--{flag} is needed"):
            finetune("--task=cola", f"--{flag}=")
    assert not list(directory.iterdir())
