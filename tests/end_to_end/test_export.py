"""A table becomes a model, the model an export, and the export answers over HTTP."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from electra_tf.export.new_directory import CHECKSUMS
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
    """A run and its export."""
    path = tmp_path_factory.mktemp("topics")
    finetune("--task=classification", f"--train={table(path / 'train.tsv', 64)}",
             f"--dev={table(path / 'dev.tsv', 20)}", "--text_columns=title",
             "--label_column=topic", f"--init_checkpoint={encoder}", f"--model_dir={path / 'run'}",
             "--num_train_epochs=6", "--train_batch_size=8", "--max_seq_length=16",
             "--learning_rate=3e-3", *HARDWARE)
    export(f"--model_dir={path / 'run'}", f"--export_dir={path / 'served'}")
    return path


def test_an_export_serves_what_was_learned(trained):
    with running.client(trained / "served") as client:
        answers = client.rows("serving_default", ["word8 word7", "word9 word10 word11"])
        assert [answer["label"] for answer in answers] == ["yes", "no"]
        assert client.get("/metadata")[0] == 200
        assert "input 'title'" in client.error({"instances": [1]})


def test_another_version_has_another_precision_and_a_card(trained, capsys):
    target = trained / "served" / "2"
    export(f"--model_dir={trained / 'run'}", f"--export_dir={trained / 'served'}",
           "--export_version=2", "--serving_precision=bfloat16")
    printed = capsys.readouterr().out
    assert f"exported {target}: bfloat16" in printed
    assert "compared with the trained model" in printed
    card = (target / "README.md").read_text()
    assert "fine-tuned on classification" in card and "labels: no, yes" in card
    assert f'tf.saved_model.load("{target}").signatures["serving_default"]' in card
    assert "README.md" in json.loads((target / CHECKSUMS).read_text())


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
    (["--model_dir=nowhere"], "nowhere holds no checkpoint"),
])
def test_what_cannot_be_exported_is_one_line(trained, tmp_path, arguments, message):
    target = tmp_path / "served"
    assert message in refused(
        export, f"--model_dir={trained / 'run'}", f"--export_dir={target}", *arguments)
    assert not target.exists() or list(target.iterdir()) == []


def test_a_damaged_checkpoint_or_task_exports_nothing(trained, tmp_path):
    run = shutil.copytree(trained / "run", tmp_path / "run")
    settings = json.loads((run / "settings.json").read_text())
    command = (export, f"--model_dir={run}", f"--export_dir={tmp_path / 'served'}")
    (run / "settings.json").write_text(json.dumps(settings | {"task_kind": "dance"}))
    assert f"settings.json of {run}" in refused(*command)
    (run / "settings.json").write_text(json.dumps(settings))
    (data,) = (run / "checkpoints").glob("*.data-*")
    data.write_bytes(data.read_bytes()[:1000])
    refused(*command)
    assert list((tmp_path / "served").iterdir()) == []
