"""The commands with few flags: the defaults that they choose, print and refuse."""

import functools

import pytest

from electra_tf.core.errors import UserError
from electra_tf.finetuning import loop as finetuning_loop
from electra_tf.pretraining import loop as pretraining_loop
from tests.end_to_end.commands import finetune, pretrain
from tests.support import tiny_encoder, tiny_records, tiny_run

TABLE = "title\ttopic\n" + "word1 word7\tyes\nword2 word9\tno\n" * 8


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def defaults(printed):
    return [line.split(None, 1)[1] for line in printed.splitlines() if line.startswith("default ")]


def not_trained(run, *_):
    raise UserError(f"not trained: {run.model_dir}")


def test_pretraining_reads_records_and_names_its_run_after_the_size(
        directory, monkeypatch, capsys):
    monkeypatch.setattr(pretraining_loop, "train", not_trained)
    tiny_records.write(directory / "records")
    with pytest.raises(UserError, match="not trained: runs/tiny$"):
        pretrain("--model_size=tiny", *tiny_run.FLAGS)
    assert defaults(capsys.readouterr().out) == ["--model_dir=runs/tiny", "--data_dir=records"]


def test_finetuning_names_its_run_after_the_task(directory, monkeypatch, capsys):
    monkeypatch.setattr(finetuning_loop, "train", not_trained)
    tiny_encoder.write(directory / "encoder")
    (directory / "rows.tsv").write_text(TABLE, encoding="utf-8")
    with pytest.raises(UserError, match="not trained: runs/classification$"):
        finetune("--task=classification", "--train=rows.tsv", "--dev=rows.tsv",
                 "--text_columns=title", "--label_column=topic", "--init_checkpoint=encoder",
                 "--max_seq_length=16")
    assert defaults(capsys.readouterr().out) == ["--model_dir=runs/classification"]


def test_finetuning_begins_with_google_s_small_discriminator(monkeypatch, capsys):
    def read(path, *, encoder_only):
        raise UserError(f"asked for {path}, encoder only: {encoder_only}")

    monkeypatch.setattr("electra_tf.formats.pretrained.read", read)
    with pytest.raises(UserError, match="google/electra-small-discriminator, encoder only: True"):
        finetune("--task=squad")
    assert defaults(capsys.readouterr().out) == [
        "--model_dir=runs/squad", "--init_checkpoint=google/electra-small-discriminator"]


@pytest.mark.parametrize(("command", "flag", "message"), [
    (finetune, "--task=clasification", "'clasification'. Did you mean 'classification'"),
    (finetune, "--task=classification", "--train is needed"),
    (pretrain, "--data_dir=", "--data_dir is needed"),
    (pretrain, "--recipe=shrt", "Did you mean 'short'"),
    (functools.partial(pretrain, "--data_dir=."), "--model_size=smal", "Did you mean 'small'")])
def test_wrong_flags_are_refused_before_defaults_are_printed(command, flag, message, capsys):
    with pytest.raises(UserError, match=message):
        command(flag)
    assert defaults(capsys.readouterr().out) == []


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
