"""The commands with few flags: the defaults that they choose, print and refuse."""

import json
import re

import pytest

from electra_tf.core.errors import UserError
from tests.end_to_end.commands import HARDWARE, finetune, pretrain, refused
from tests.support import tiny_encoder, tiny_records, tiny_run

TABLE = "title\ttopic\n" + "word1 word7\tyes\nword2 word9\tno\n" * 8


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def defaults(printed):
    return [line.split(None, 1)[1] for line in printed.splitlines() if line.startswith("default ")]


def test_pretraining_reads_records_and_names_its_run_after_the_size(directory, capsys):
    tiny_records.write(directory / "records")
    pretrain("--model_size=tiny", *tiny_run.FLAGS, "--set=model.num_layers=1",
             "--num_train_steps=1")
    assert defaults(capsys.readouterr().out) == ["--model_dir=runs/tiny", "--data_dir=records"]
    assert (directory / "runs" / "tiny" / "settings.json").exists()


@pytest.mark.parametrize(("size", "length"), [("base", 512), ("small", 128)])
def test_without_records_the_error_has_the_commands_that_build_them(directory, size, length):
    assert re.match(
        "--data_dir=records holds no records.* use Wikipedia: curl -LO https.*xml.bz2 && "
        "python -m data_prep.build_vocab .* && python -m data_prep.build_pretraining_data "
        f".*--output_dir=records --max_seq_length={length}$",
        refused(pretrain, "--tpu=NAME", f"--model_size={size}"))
    assert not list(directory.iterdir())


def test_finetuning_names_its_run_after_the_task(directory, capsys):
    tiny_encoder.write(directory / "encoder")
    (directory / "rows.tsv").write_text(TABLE, encoding="utf-8")
    finetune("--task=classification", "--train=rows.tsv", "--dev=rows.tsv", "--text_columns=title",
             "--label_column=topic", "--init_checkpoint=encoder", "--num_trials=1",
             "--num_train_epochs=1", "--max_seq_length=16", *HARDWARE)
    assert defaults(capsys.readouterr().out) == ["--model_dir=runs/classification"]
    results = json.loads((directory / "runs" / "classification" / "results.json").read_text())
    assert results["task"] == "classification"


def test_finetuning_begins_with_google_s_small_discriminator(monkeypatch, capsys):
    def read(path, *, encoder_only):
        raise UserError(f"asked for {path}, encoder only: {encoder_only}")

    monkeypatch.setattr("electra_tf.formats.pretrained.read", read)
    with pytest.raises(UserError, match="google/electra-small-discriminator, encoder only: True"):
        finetune("--task=squad")
    assert defaults(capsys.readouterr().out) == [
        "--model_dir=runs/squad", "--init_checkpoint=google/electra-small-discriminator"]


@pytest.mark.parametrize(("arguments", "source"), [
    (["--task=squad"], True), (["--task=cola,sst2"], True),
    (["--task=squad", "--data_dir=x"], False), (["--task=classification", "--train=x"], False),
    (["--task=squad", "--data_source=files"], False)])
def test_benchmarks_without_files_come_from_tensorflow_datasets(
        directory, monkeypatch, capsys, arguments, source):
    def load(name, data_dir, user_files, *, from_tfds):
        raise UserError(f"{name} {from_tfds}")

    tiny_encoder.write(directory / "encoder")
    monkeypatch.setattr("electra_tf.tasks.registry.load", load)
    with pytest.raises(UserError, match=f" {source}$"):
        finetune(*arguments, "--init_checkpoint=encoder")
    assert ("--data_source=tfds" in defaults(capsys.readouterr().out)) == source
