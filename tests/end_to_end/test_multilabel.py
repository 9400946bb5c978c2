"""The commands of docs/how_to/multilabel.md run, and every form of a model has its threshold."""

import json
import re
import shlex

import numpy as np
import pytest
import tensorflow as tf

import electra_tf
from electra_tf.apps.tools import convert_checkpoint
from electra_tf.finetuning.results import Epoch, Results, Trial
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
        commands.export(f"--model_dir={model}", f"--output=served/{model}")
        served = tf.saved_model.load(f"served/{model}/1").signatures["serving_default"](
            text=tf.constant(texts))
        assert [[label.decode() for label in row if label]
                for row in served["prediction"].numpy()] == [
                    record["prediction"] for record in expected]
        np.testing.assert_allclose(served["probabilities"], [
            [*record["probabilities"].values()] for record in expected], atol=1e-5)


def test_the_mean_of_the_folds_thresholds_is_kept(tmp_path):
    trials = [Trial(seed=1, losses=((1, 0.5),), kept_epoch=1, seconds=1.0, examples_per_second=1.0,
                    fold=fold, epochs=(Epoch(epoch=1, step=2, loss=0.5, scores=scores),))
              for fold, scores in ((1, {"dev": {"f1_micro": 0.5, "threshold": 0.2}}),
                                   (2, {"dev": {"f1_micro": 0.5, "threshold": 0.4}}), (0, {}))]
    Results(task="multilabel", metrics=("f1_micro",), initial="none", trials=tuple(trials)).save(
        tmp_path)
    assert Results.load(tmp_path).threshold == pytest.approx(0.3)


@pytest.mark.parametrize(("flag", "words"), [
    ("--task=multilabel --label_threshold=1", r"must be in \[0, 1\). Received: 1.0"),
    ("--task=tagging --label_threshold=0.3", "--label_threshold is for --task=multilabel"),
    ("--task=multilabel --doc_stride=8", "--doc_stride=8 is for extractive QA and --long_texts"),
    ("--task=classification", r"train.jsonl:1: a text has one label .* use --task=multilabel")])
def test_what_does_not_fit_is_refused_and_writes_nothing(folder, encoder, flag, words):
    own = "words.jsonl" if "tagging" in flag else "train.jsonl"
    write(folder / "words.jsonl", '{"text": ["a", "b"], "label": ["B-X", "O"]}\n' * 4)
    assert re.search(words, commands.refused(
        commands.finetune, *flag.split(), f"--train={own}", f"--dev={own}",
        f"--init_checkpoint={encoder}", "--model_dir=runs/none", *QUICK))
    assert not (folder / "runs").exists()
