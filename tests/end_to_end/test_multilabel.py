"""The commands of docs/how_to/multilabel.md run, and every form of a model has its threshold."""

import json
import re
import shlex

import numpy as np
import pytest
import tensorflow as tf

import electra_tf
from electra_tf.apps.tools import convert_checkpoint
from electra_tf.finetuning.results import threshold_of
from electra_tf.formats import pretrained
from tests.end_to_end import commands
from tests.end_to_end.commands import HARDWARE
from tests.support import command_flags, sources
from tests.support.text_files import write

PAGE = sources.ROOT / "docs" / "how_to" / "multilabel.md"
QUICK = ("--num_train_epochs=1", "--train_batch_size=8", "--max_seq_length=16", *HARDWARE)
LISTS = "".join(json.dumps({"text": f"word{number} word2", "label": labels}) + "\n"
                for number, labels in enumerate([["sports", "money"], [], ["money"]] * 3))
INDICATORS = "text,toxic,insult,threat\n" + "word1,1,1,0\nword2 word3,0,0,0\nword4,0,1,1\n" * 3


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with the files that the page names."""
    for name, text in (("train.jsonl", LISTS), ("dev.jsonl", LISTS), ("train.csv", INDICATORS),
                       ("new.txt", "word1\nword4\n")):
        write(tmp_path / name, text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_commands_of_the_page_run_and_models_keep_their_threshold(folder, encoder, capsys):
    lines = re.findall(r"(?m)^    python run_finetuning.py (.*)",
                       PAGE.read_text(encoding="utf-8").replace("\\\n", ""))
    for line in lines:
        arguments = [re.sub("google/electra-.*", str(encoder), part) for part in shlex.split(line)]
        commands.finetune(*arguments, *(QUICK if "--mode=predict" not in arguments else HARDWARE))
    printed = capsys.readouterr().out
    assert "baseline: always money" in printed and "3 labels" in printed
    scores = json.loads((folder / "runs/comments/results.json").read_text())["trials"][0][
        "epochs"][0]["scores"]["dev"]
    threshold = scores["threshold"]
    expected = [json.loads(line) for line in (folder / "predicted.jsonl").read_text().splitlines()]
    for record in expected:
        assert record["prediction"] == [label for label, share in record["probabilities"].items()
                                        if share >= threshold]
    for source, target, form in (("runs/comments", "hf", "hugging_face"), ("hf", "back", "run")):
        command_flags.run(convert_checkpoint, f"--from={source}", f"--to={target}",
                          f"--to_format={form}")
    config = json.loads((folder / "hf" / "config.json").read_text())
    assert config["problem_type"] == "multi_label_classification"
    assert config["electra_tf"]["settings"]["task.label_threshold"] == threshold
    assert str(threshold) in (folder / "hf" / "README.md").read_text()
    texts = [record["texts"][0] for record in expected]
    for model in ("runs/comments", "back"):
        records = electra_tf.load_task(model).predict(texts)
        assert [record["prediction"] for record in records] == [
            record["prediction"] for record in expected]
        commands.export(f"--model_dir={model}", f"--export_dir=served/{model}")
        served = tf.saved_model.load(f"served/{model}/1").signatures["serving_default"](
            text=tf.constant(texts))
        assert [[label.decode() for label in row if label]
                for row in served["prediction"].numpy()] == [
                    record["prediction"] for record in expected]
        np.testing.assert_allclose(served["probabilities"], [
            [*record["probabilities"].values()] for record in expected], atol=1e-5)


def test_the_mean_of_the_folds_thresholds_is_kept(folder, encoder):
    commands.finetune("--task=multilabel", "--train=train.jsonl", f"--init_checkpoint={encoder}",
                      "--model_dir=runs/folds", "--label_threshold=0", "--num_folds=2", *QUICK)
    *folds, _ = json.loads((folder / "runs/folds/results.json").read_text())["trials"]
    mean = np.mean([fold["epochs"][0]["scores"]["dev"]["threshold"] for fold in folds])
    assert threshold_of(folder / "runs/folds") == pytest.approx(mean)
    assert pretrained.read(folder / "runs/folds").task_settings[
        "task.label_threshold"] == pytest.approx(mean)


@pytest.mark.parametrize(("flag", "words"), [
    ("--task=multilabel --label_threshold=1", r"must be in \[0, 1\). Received: 1.0"),
    ("--task=multilabel --class_weights=balanced", "--class_weights is for --task=classif"),
    ("--task=tagging --label_threshold=0.3", "--label_threshold is for --task=multilabel"),
    ("--task=tagging --pooling=cls", "--pooling is for --task=sentence_embeddings"),
    ("--task=multilabel --temperature=0.5", "--temperature is for --task=sentence_embeddings"),
    ("--task=multilabel --doc_stride=8", "--doc_stride=8 is for extractive QA and --long_texts"),
    ("--task=classification", r"train.jsonl:1: a text has one label .* use --task=multilabel")])
def test_what_does_not_fit_is_refused_and_writes_nothing(folder, encoder, flag, words):
    own = "words.jsonl" if "tagging" in flag else "train.jsonl"
    write(folder / "words.jsonl", '{"text": ["a", "b"], "label": ["B-X", "O"]}\n' * 4)
    assert re.search(words, commands.refused(
        commands.finetune, *flag.split(), f"--train={own}", f"--dev={own}",
        f"--init_checkpoint={encoder}", "--model_dir=runs/none", *QUICK))
    assert not (folder / "runs").exists()


def test_data_in_memory_has_lists_of_labels(encoder):
    model = electra_tf.finetune(
        "multilabel", ["word1", "word2 word3", "word4"] * 2, [["a"], [], ["a", "b"]] * 2,
        dev=(["word1"], [["b"]]), init_checkpoint=encoder, num_train_epochs=1.0)
    assert model.labels == ("a", "b") and model.results.best.scores["dev"]["f1_macro"] >= 0.0
    assert model.evaluate(["word1", "word2"], [["a"], ["b"]]).keys() == {
        "f1_micro", "f1_macro", "roc_auc_macro", "average_precision_macro"}
