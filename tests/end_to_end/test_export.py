"""A table becomes a model, the model an export, and the export answers over HTTP."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests import tiny_run
from tests.apps.serving import running
from tests.end_to_end.commands import HARDWARE, export, finetune, refused


def table(path: Path, count: int) -> Path:
    """Rows whose topic is "yes" where the title says word7."""
    numbers = np.random.default_rng(count)
    rows = ["title\ttopic"]
    for index in range(count):
        words = [f"word{number}" for number in numbers.integers(8, 35, 4)]
        rows.append(" ".join(words) + (" word7\tyes" if index % 2 else "\tno"))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory, encoder):
    """A run that exported its model at the end."""
    path = tmp_path_factory.mktemp("topics")
    finetune("--task=classification", f"--train={table(path / 'train.tsv', 64)}",
             f"--dev={table(path / 'dev.tsv', 20)}", "--text_columns=title",
             "--label_column=topic", f"--init_checkpoint={encoder}", f"--model_dir={path / 'run'}",
             "--num_train_epochs=6", "--train_batch_size=8", "--max_seq_length=16",
             "--learning_rate=3e-3", f"--export_dir={path / 'served'}", *HARDWARE)
    return path


def test_training_ends_with_an_export_that_serves_what_it_learned(trained):
    with running.client(trained / "served") as client:
        answers = client.rows("serving_default", ["word8 word7", "word9 word10 word11"])
        assert [answer["label"] for answer in answers] == ["yes", "no"]
        assert client.get("/metadata")[0] == 200
        assert "input 'title'" in client.error({"instances": [1]})


def test_a_trained_model_is_exported_later_in_another_precision(trained, capsys):
    finetune("--mode=export", f"--model_dir={trained / 'run'}",
             f"--export_dir={trained / 'served'}", "--export_version=2",
             "--serving_precision=bfloat16")
    printed = capsys.readouterr().out
    assert f"exported {trained / 'served' / '2'}: bfloat16" in printed
    assert "compared with the trained model" in printed
    card = (trained / "served" / "2" / "README.md").read_text()
    assert "fine-tuned on classification" in card and "labels: no, yes" in card


@pytest.mark.slow
def test_a_pre_trained_discriminator_marks_words_and_embeds_texts(encoder, tmp_path):
    export(f"--model_dir={encoder}", f"--export_dir={tmp_path / 'served'}")
    with running.client(tmp_path / "served") as client:
        (answer,) = client.rows("detect", ["word8 word9 word10"])
        assert answer["words"] == ["word8", "word9", "word10"]
        assert all(0.0 < share < 1.0 for share in answer["replaced_probability"])
        (vectors,) = client.rows("embed", ["word8 word9"])
        assert len(vectors["pooled"]) == tiny_run.config().model.hidden_size


@pytest.mark.parametrize(("arguments", "message"), [
    (["--export_version=latest"], "--export_version must be a positive integer"),
    (["--serving_precision=int8"], "--serving_precision must be one of"),
    (["--model_dir=nowhere"], "no run was started in nowhere"),
    (["--learning_rate=1"], "--learning_rate (optimizer.learning_rate) is the trained model's"),
    (["--export_dir="], "--export_dir is needed"),
])
def test_what_cannot_be_exported_is_one_line(trained, tmp_path, arguments, message):
    target = tmp_path / "served"
    assert message in refused(finetune, "--mode=export", f"--model_dir={trained / 'run'}",
                              f"--export_dir={target}", *arguments)
    assert not target.exists() or list(target.iterdir()) == []


def test_an_export_that_exists_stops_training_before_it_starts(trained, encoder, tmp_path):
    assert "exists already" in refused(
        finetune, "--task=classification", f"--train={trained / 'train.tsv'}",
        f"--dev={trained / 'dev.tsv'}", "--text_columns=title", "--label_column=topic",
        f"--init_checkpoint={encoder}", f"--model_dir={tmp_path / 'run'}",
        f"--export_dir={trained / 'served'}", *HARDWARE)
    assert not (tmp_path / "run").exists()


def test_a_run_without_a_discriminator_or_a_task_says_so(trained, encoder, tmp_path):
    target = f"--export_dir={tmp_path / 'served'}"
    assert "has no discriminator to export" in refused(
        export, f"--model_dir={trained / 'run'}", target)
    assert "holds no fine-tuned model" in refused(
        finetune, "--mode=export", f"--model_dir={encoder}", target)


def test_a_damaged_checkpoint_exports_nothing(trained, tmp_path):
    shutil.copytree(trained / "run", tmp_path / "run")
    (data,) = (tmp_path / "run" / "checkpoints").glob("*.data-*")
    data.write_bytes(data.read_bytes()[:1000])
    refused(finetune, "--mode=export", f"--model_dir={tmp_path / 'run'}",
            f"--export_dir={tmp_path / 'served'}")
    assert list((tmp_path / "served").iterdir()) == []
