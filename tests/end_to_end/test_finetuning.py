"""Fine-tuning on small made-up tasks: what it writes, continues, refuses, predicts and exports."""

import functools
import gzip
import io
import itertools
import json
import os
import re
import shutil
import signal
import zipfile
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from electra_tf.checkpoints.weights import ENCODER
from electra_tf.config.overrides import override
from electra_tf.core import signals
from electra_tf.core.errors import UserError
from electra_tf.export.checksums import CHECKSUMS
from electra_tf.finetuning import loop, results
from electra_tf.finetuning import predict as finetuning_predict
from electra_tf.finetuning.predict import CompiledByShape
from tests.end_to_end import commands
from tests.end_to_end.commands import HARDWARE, export
from tests.end_to_end.commands import finetune as call
from tests.support import named_arrays, running, tiny_encoder
from tests.support.text_files import write

QUICK = ("--train_batch_size=8", "--eval_batch_size=8", "--max_seq_length=16",
         "--learning_rate=3e-3", *HARDWARE)
refused = functools.partial(commands.refused, call)


def predict(model: Path, source: object, output: object, *flags: str) -> None:
    call("--mode=predict", f"--model_dir={model}", f"--input={source}", f"--output={output}",
         *HARDWARE[:1], *flags)


def texts(count: int, seed: int) -> list[tuple[str, str]]:
    """Texts of words, "yes" where word7 is among them."""
    numbers = np.random.default_rng(seed)
    rows = []
    for index in range(count):
        words = [f"word{number}" for number in numbers.integers(8, 35, 4)]
        if index % 2:
            words[numbers.integers(4)] = "word7"
        rows.append((" ".join(words), "yes" if index % 2 else "no"))
    return rows


def table(path: Path, rows: list[tuple[str, str]]) -> Path:
    return write(path, "\n".join(["title\ttopic", *("\t".join(row) for row in rows)]) + "\n")


def json_of(path: Path) -> dict:
    return json.loads(path.read_text())


def json_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def cells(path: Path) -> list[list[str]]:
    """Heading and rows of a table."""
    return [line.split("\t") for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def classified(tmp_path_factory, encoder):
    """Two trials on a table of one's own; the arguments and where everything is."""
    path = tmp_path_factory.mktemp("classification")
    arguments = (
        "--task=classification", f"--train={table(path / 'train.tsv', texts(64, 1))}",
        f"--dev={table(path / 'dev.tsv', texts(20, 2))}", "--text_columns=title",
        f"--test={table(path / 'test.tsv', texts(6, 3))}",
        "--label_column=topic", f"--init_checkpoint={encoder}", f"--model_dir={path / 'run'}",
        "--num_trials=2", "--num_train_epochs=6", "--keep_best", *QUICK)
    call(*arguments)
    return path, arguments


@pytest.fixture(scope="module")
def model(classified):
    return classified[0] / "run"


def test_a_run_leaves_results_model_predictions_and_pictures(model):
    results = json_of(model / "results.json")
    assert [trial["seed"] for trial in results["trials"]] == [1, 2]
    for trial in results["trials"]:
        scores = [epoch["scores"]["dev"]["accuracy"] for epoch in trial["epochs"]]
        assert trial["kept_epoch"] == 1 + scores.index(max(scores))
        assert trial["losses"][-1][0] == trial["epochs"][-1]["step"] == 48
    assert results["summary"]["dev"]["accuracy"]["best"] == max(
        epoch["scores"]["dev"]["accuracy"] for trial in results["trials"]
        for epoch in trial["epochs"]) > 0.9
    assert (model / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    first, *others = json_lines(model / "predictions" / "test.jsonl")
    assert len(others) == 5 and first["key"] == "2" and first["prediction"] in ("yes", "no")
    assert 0.5 <= first["probability"] <= 1.0
    assert {item.name for item in model.iterdir()} == {
        "settings.json", "vocab.txt", "vocab.txt.manifest.json", "checkpoints", "results.json",
        "predictions", "learning_curve.png"}


def test_a_finished_run_runs_missing_trials_and_refuses_other_settings(
        classified, model, capsys):
    _, arguments = classified
    results = json_of(model / "results.json")
    call(*arguments)
    printed = capsys.readouterr().out
    assert "2 done, 0 to go" in printed and "\ncompile " not in printed
    assert json_of(model / "results.json") == results
    assert "optimizer.learning_rate: 0.003 in the run, 0.001 now" in refused(
        *arguments, "--learning_rate=1e-3")
    write(model / "results.json", json.dumps(results | {"trials": results["trials"][:1]}))
    call(*arguments, "--num_trials=1")
    assert "1 done, 0 to go" in capsys.readouterr().out
    call(*arguments)
    assert re.search(r"1 done, 1 to go.*\ncompile  .* up to \d row lengths.* take longer\n",
                     capsys.readouterr().out)
    again = json_of(model / "results.json")["trials"]
    assert again[0] == results["trials"][0]
    assert_same_losses(again[1:], results["trials"][1:])


def assert_same_losses(trials, expected):
    for trial, other in zip(trials, expected, strict=True):
        assert trial["losses"] == [
            [step, pytest.approx(loss, rel=1e-4)] for step, loss in other["losses"]]


def test_a_trial_killed_before_its_scores_are_saved_leaves_the_old_pair(
        classified, tmp_path, monkeypatch):
    arguments = (*classified[1], f"--model_dir={tmp_path}", "--num_train_epochs=1")
    call(*arguments, "--num_trials=1")
    names = sorted(path.name for path in tmp_path.rglob("*"))
    before, scores = named_arrays.of_run(tmp_path), (tmp_path / "results.json").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(results.Results, "best", property(lambda self: self.trials[-1]))
        patched.setattr(results.Results, "save", mock.Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            call(*arguments)
    assert (tmp_path / "results.json").read_bytes() == scores
    named_arrays.assert_close(named_arrays.of_run(tmp_path), before)
    # A finished run removes what a killed process left.
    assert (tmp_path / "checkpoints" / "ckpt-2.json").exists()
    for name in ("checkpoints/.unfinished-1-ab-ckpt-3.json", ".unfinished-1-cd-results.json"):
        (tmp_path / name).touch()
    call(*arguments, "--num_trials=1")
    assert sorted(path.name for path in tmp_path.rglob("*")) == names
    call(*arguments)
    assert len(json_of(tmp_path / "results.json")["trials"]) == 2


@pytest.mark.parametrize(("number", "step", "finished"), [
    (signal.SIGINT, 48 + 2, "1 of 2 trials"),
    pytest.param(signal.SIGTERM, 2 * 48, "1 of 2 trials", marks=pytest.mark.slow)])
def test_a_signal_keeps_the_trials_that_are_finished(
        classified, model, tmp_path, monkeypatch, number, step, finished):
    arguments = (*classified[1], f"--model_dir={tmp_path}")
    replicas_step, steps = CompiledByShape.__call__, itertools.count(1)

    def signalled(self, length, batch):
        results = replicas_step(self, length, batch)
        if next(steps) == step:
            os.kill(os.getpid(), number)
        return results

    monkeypatch.setattr(CompiledByShape, "__call__", signalled)
    watch = signals.Interrupts()
    try:
        with pytest.raises(signals.Interrupted, match=finished) as ended, watch:
            call(*arguments)
    finally:
        watch.number = None  # After a signal it would stay in force until the process ends.
        watch.__exit__()
    assert ended.value.number == number and "\n" not in str(ended.value)
    monkeypatch.undo()
    call(*arguments)
    again, whole = (json_of(path / "results.json")["trials"] for path in (tmp_path, model))
    assert [trial["seed"] for trial in again] == [1, 2]
    assert_same_losses(again, whole)


LONG_TEXT = "word9 " * 20
CUT = "1 of {} rows are longer than --max_seq_length=16 tokens and were cut (longest: 22)"
"""20 words, [CLS] and [SEP] are 22 tokens."""


def test_the_best_trial_is_what_evaluation_and_prediction_use(classified, model, tmp_path, capsys):
    dev = classified[0] / "dev.tsv"
    call("--mode=eval", f"--model_dir={model}", f"--dev={dev}", *HARDWARE[:1])
    assert json_of(model / "eval_results.json")["dev"]["accuracy"] == (
        json_of(model / "results.json")["summary"]["dev"]["accuracy"]["best"])
    capsys.readouterr()
    call("--mode=eval", f"--model_dir={model}", *HARDWARE[:1],
         f"--dev={table(tmp_path / 'dev.tsv', [(LONG_TEXT, 'no'), *texts(5, 2)])}")
    assert f"\n  {CUT.format(6)}\n" in capsys.readouterr().out
    written = [text for text, _ in texts(6, 3)]
    predict(model, write(tmp_path / "new.csv", "\n".join(["title", *written])),
            tmp_path / "new.tsv")
    heading, *rows = cells(tmp_path / "new.tsv")
    assert heading == ["key", "prediction", "probability of no", "probability of yes", "title"]
    assert [(row[1], row[4]) for row in rows] == [
        (record["prediction"], text) for record, text in zip(
            json_lines(model / "predictions" / "test.jsonl"), written, strict=True)]
    assert "6 predictions" in capsys.readouterr().out


@pytest.fixture(scope="module")
def unprepared(tmp_path_factory, encoder):
    """A run on two packed files without one for dev, with a run from scratch beside it."""
    path = tmp_path_factory.mktemp("unprepared")
    for number in (1, 2):
        content = table(path / "a.tsv", texts(40, number)).read_bytes()
        (path / f"{number}.tsv.gz").write_bytes(gzip.compress(content))
    call("--task=classification", f"--train={path}/1.tsv.gz,{path}/2.tsv.gz",
         "--text_columns=title", "--label_column=topic", f"--init_checkpoint={encoder}",
         f"--model_dir={path / 'run'}", "--num_train_epochs=1", "--scratch_baseline", *QUICK)
    return path / "run"


def test_own_files_need_no_preparation(unprepared, encoder):
    saved = json_of(unprepared / "results.json")
    assert saved["baseline"] == {"name": "always no", "scores": {
        "dev": {"accuracy": 0.5, "f1_macro": pytest.approx(1 / 3)}}}
    records = json_lines(unprepared / "predictions" / "dev.jsonl")
    assert [record["gold"] for record in records].count("yes") == 4 and len(records) == 8
    assert all(record["texts"][0].startswith("word") for record in records)
    assert all(sum(record["probabilities"].values()) == pytest.approx(1.0) for record in records)
    scratch = unprepared / "from_scratch_normal_initialization"
    assert json_of(scratch / "results.json")["initial"] == "none"
    assert saved["initial"] == f"{encoder}, step 7"
    settings, others = (json_of(path / "settings.json") for path in (unprepared, scratch))
    assert {name for name, value in settings.items() if others.get(name) != value} == {
        "initial", "initial_digest"}
    assert not (unprepared / "from_scratch_encoder_initialization").exists()  # It is the same.


def test_controls_begin_with_the_initialization_of_the_encoder_and_normal(
        classified, tmp_path, monkeypatch, capsys):
    runs = []

    def train(run, task, initial):
        runs.append((run, initial))
        epoch = results.Epoch(epoch=1, step=1, loss=0.5, scores={"dev": {
            "accuracy": len(runs) / 8, "f1_macro": 0.5}})
        return results.Results(task=run.spec.name, metrics=run.spec.metrics, initial="", trials=(
            results.Trial(seed=1, losses=((1, 0.5),), epochs=(epoch,), kept_epoch=1, seconds=1.0,
                          examples_per_second=1.0),))

    monkeypatch.setattr(loop, "train", train)
    tiny_encoder.write(tmp_path / "encoder", initialization__scheme="adjacent",
                       model__initializer_range=0.1591)
    call(*classified[1], f"--init_checkpoint={tmp_path / 'encoder'}",
         f"--model_dir={tmp_path / 'run'}", "--scratch_baseline")
    (tuned, encoders, normal), (initial, *others) = zip(*runs, strict=True)
    assert initial.source == f"{tmp_path / 'encoder'}, step 7" and others == [None, None]
    assert [run.model_dir.name for run in (tuned, encoders, normal)] == [
        "run", "from_scratch_encoder_initialization", "from_scratch_normal_initialization"]
    assert encoders.config == override(tuned.config, {"initialization.scheme": "adjacent"})
    assert normal.config == override(tuned.config, {"model.initializer_range": 0.02})
    rows = re.search(r"classification, dev, medians\n +accuracy +f1_macro\n"
                     r"  pre-trained +(\S+) .*\n"
                     r"  from scratch, encoder's initialization +(\S+) .*\n"
                     r"  from scratch, normal initialization +(\S+) ", capsys.readouterr().out)
    assert [float(score) for score in rows.groups()] == [12.5, 25.0, 37.5]


def test_standard_input_and_output_and_files_give_the_same_predictions(
        unprepared, tmp_path, monkeypatch, capsys):
    source = write(tmp_path / "new.txt", f"word9 word7\n{LONG_TEXT}\n")
    output = tmp_path / "out.tsv"
    predict(unprepared, source, output)
    written = output.read_text()
    assert [row[-1] for row in cells(output)] == ["title", "word9 word7", LONG_TEXT]
    assert f"note     {CUT.format(2)}\n" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(source.read_bytes())))
    predict(unprepared, "-", "-")
    assert capsys.readouterr().out == written
    monkeypatch.setattr(finetuning_predict, "PART", 1)  # The note counts all parts.
    predict(unprepared, source, output, "--overwrite")
    assert output.read_text() == written
    assert f"note     {CUT.format(2)}\n" in capsys.readouterr().err


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    """CoNLL columns: word7 begins a name, which word8 continues."""
    path = tmp_path_factory.mktemp("sentences")
    numbers = np.random.default_rng(4)
    lines = []
    for _ in range(64):
        words = [f"word{number}" for number in numbers.integers(9, 35, 5)]
        position = numbers.integers(4)
        words[position:position + 2] = ["word7", "word8"]
        tags = ["O"] * 5
        tags[position:position + 2] = ["B-PER", "I-PER"]
        lines += [f"{word} {tag}" for word, tag in zip(words, tags, strict=True)] + [""]
    return write(path / "train.txt", "\n".join(lines) + "\n")


@pytest.fixture
def tagged(encoder, sentences, tmp_path):
    """Returns a function from flags to a tagger and the weights of its encoder that changed."""
    def tagged(*flags):
        call("--task=tagging", f"--train={sentences}", f"--dev={sentences}",
             f"--model_dir={tmp_path}", f"--init_checkpoint={encoder}", *QUICK, *flags)
        before = named_arrays.of_run(encoder)
        return tmp_path, [name for name, value in named_arrays.of_run(tmp_path).items()
                          if name.startswith(ENCODER) and not np.array_equal(before[name], value)]

    return tagged


def test_tags(tagged, capsys):
    path, changed = tagged("--num_train_epochs=6")
    assert json_of(path / "results.json")["summary"]["dev"]["f1"]["best"] > 0.95
    assert len(changed) == 39  # All of them.
    predict(path, write(path / "new.txt", "word9\nword7\nword8\n\nword30\n"), path / "out.txt")
    assert (path / "out.txt").read_text() == (
        "word9 O\nword7 B-PER\nword8 I-PER\n\nword30 O\n\n")
    predict(path, write(path / "new.jsonl", '{"text": ["word7"], "label": ["I-LOC"]}'),
            path / "out.tsv")
    heading, (*row, probability, gold) = cells(path / "out.tsv")
    assert heading == ["key", "word", "prediction", "probability", "gold"]
    assert (row, gold) == (["1", "word7", "B-PER"], "B-LOC")
    assert 0.5 < float(probability) <= 1.0
    predict(path, write(path / "numbered.txt", "# id 1\n1\tword9\n2\tword7\n"), path / "out.txt",
            "--text_columns=2", "--overwrite")
    assert (path / "out.txt").read_text() == "word9 O\nword7 B-PER\n\n"
    assert "words in column 2; 1 comment lines left out" in capsys.readouterr().err
    with pytest.raises(UserError, match="one word per line"):
        predict(path, write(path / "plain.txt", "word9 word7 word8\n"), "-")


def test_lower_layers_stay_as_they_were(tagged):
    _, changed = tagged("--num_train_epochs=1", "--freeze_layers=1")
    assert {"/".join(name.split("/")[1:3]) for name in changed} == {"encoder/layer_1"}


def squad(path: Path) -> Path:
    """Questions about which word follows word7; every third has no answer."""
    numbers = np.random.default_rng(5)
    paragraphs = []
    for index in range(48):
        words = [f"word{number}" for number in numbers.integers(8, 35, 6)]
        position, answers = int(numbers.integers(5)), []
        if index % 3:
            words[position] = "word7"
            answers = [{"text": words[position + 1],
                        "answer_start": len(" ".join(words[:position + 1])) + 1}]
        paragraphs.append({"context": " ".join(words), "qas": [{
            "id": f"q{index}", "answers": answers,
            "question": "word1 word2" if index else "word1 " * 11,
            "is_impossible": not answers}]})
    return write(path, json.dumps({"data": [{"paragraphs": paragraphs}]}))


def test_questions(encoder, tmp_path, capsys):
    data, run = squad(tmp_path / "train-v2.0.json"), tmp_path / "run"
    call("--task=squad2", f"--data_dir={tmp_path}", f"--dev={data}", f"--init_checkpoint={encoder}",
         f"--model_dir={run}", "--num_train_epochs=20", *QUICK, "--max_seq_length=32",
         "--set=task.max_query_length=8", "--set=task.beam_size=4")
    printed = capsys.readouterr().out
    for split in ("train", "dev"):
        assert (f"note     {split}: 1 of 48 questions are longer than task.max_query_length=8 "
                "tokens and were cut (longest: 11)\n") in printed
    scores = json_of(run / "results.json")["summary"]["dev"]
    threshold = scores["threshold"]["best"]
    assert scores["f1"]["best"] > 0.8 and np.isfinite(threshold)
    answers, odds = (json_of(run / "submission" / f"{name}.json")
                     for name in ("predictions", "null_odds"))
    assert len(answers) == 48 and answers.keys() == odds.keys()
    assert all((answers[key] == "") == (odds[key] > threshold) for key in answers)
    predict(run, data, tmp_path / "answers.json")
    assert json_of(tmp_path / "answers.json") == answers
    # A copy in another format has no results; it keeps the threshold, also to be scored with.
    commands.convert(f"--from={run}", f"--to={tmp_path / 'copy'}", "--to_format=run")
    evaluations = []
    for model in (run, tmp_path / "copy"):
        call("--mode=eval", f"--model_dir={model}", f"--dev={data}", *HARDWARE[:1])
        evaluations.append(json_of(model / "eval_results.json")["dev"])
    assert evaluations[1] == evaluations[0] and "threshold" not in evaluations[0]


def test_several_tasks_of_glue_share_a_table_and_an_archive(encoder, tmp_path, capsys):
    glue, run = tmp_path / "glue", tmp_path / "run"
    sentence = "".join(f"x\t{int(label == 'yes')}\t\t{text}\n" for text, label in texts(16, 1))
    for split in ("train", "dev"):
        write(glue / "CoLA" / f"{split}.tsv", sentence)
        write(glue / "RTE" / f"{split}.tsv", "index\tsentence1\tsentence2\tlabel\n" + "".join(
            f"0\t{text}\tword9\t{'' if label == 'yes' else 'not_'}entailment\n"
            for text, label in texts(16, 2)))
    write(glue / "CoLA" / "test.tsv", "index\tsentence\n0\tword7\n1\tword8\n")
    call("--task=cola,rte", f"--data_dir={glue}", f"--init_checkpoint={encoder}",
         f"--model_dir={run}", "--num_train_epochs=1", *QUICK)
    assert "average over 2 of 8 tasks" in capsys.readouterr().out
    with zipfile.ZipFile(run / "submission.zip") as packed:
        assert packed.namelist() == ["CoLA.tsv"]
        submitted = packed.read("CoLA.tsv").decode()
    assert re.fullmatch(r"index\tprediction\n0\t[01]\n1\t[01]\n", submitted)
    for split in ("dev", "test"):
        assert {record["prediction"] for record in json_lines(
            run / "cola" / "predictions" / f"{split}.jsonl")} <= {"acceptable", "unacceptable"}


@pytest.mark.parametrize(("arguments", "words"), [
    (["--task=cola,squad"], ["only GLUE's tasks can share a run"]),
    (["--init_checkpoint=nowhere"], ["nowhere holds no checkpoint"]),
    (["--init_checkpoint=none", "--train="], ["--train and --vocab_file are needed",
                                              "For example: ", "run_finetuning.py --task="]),
    (["--text_columns=body"], ["train.tsv:2", "no column 'body'", "title, topic"]),
    (["--dev=other.tsv"], ["the label 'perhaps' isn't among the labels of the training file"]),
    (["--train=crooked.tsv"], ["crooked.tsv:3", "3 columns, but 2 are expected"]),
    (["--max_seq_length=500"], ["task.max_seq_length", "max_position_embeddings=32", "500"]),
    (["--freeze_layers=3"], ["training.freeze_layers", "num_layers=2"]),
    (["--learning_rate=1e-4,0.0001"], ["--learning_rate must be different values"]),
    (["--eval_batch_size=4,8"], ["runtime.eval_batch_size takes one value", "Received: 4, 8"]),
    (["--class_weights=no=2,yes=0"], ["a number above 0 for each label, such as no=1,yes=1"]),
    (["--set=model.num_layers=3"], ["model.num_layers is 2", "leave --set model.num_layers=3 out"]),
    (["--task=cola", "--data_dir=nowhere"], ["--task=cola", "--train goes with"]),
])
def test_a_mistake_is_one_line_that_leaves_nothing(
        classified, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    rows = texts(4, 1)
    table(tmp_path / "other.tsv", [("word9", "perhaps")])
    table(tmp_path / "crooked.tsv", [rows[0], ("word9", "yes\tno")])
    message = refused(*classified[1], "--model_dir=run", *arguments)
    assert all(word in message for word in words), message
    assert not (tmp_path / "run").exists()


def test_values_with_commas_form_a_grid(classified, tmp_path, monkeypatch):
    runs = []
    monkeypatch.setattr(loop, "train", lambda run, *_: runs.append(run))
    config = write(tmp_path / "grid.yaml", "task: {dropout: '0.1, 0.2'}")
    call(*classified[1], f"--config={config}", "--set=optimizer.name=adam,lamb",
         "--train_batch_size=8,16", f"--model_dir={tmp_path / 'run'}")
    assert runs[0].grid == {"task.dropout": (0.1, 0.2), "optimizer.name": ("adam", "lamb"),
                            "training.train_batch_size": (8, 16)}
    assert len(runs[0].combinations) == 8 and runs[0].combinations[1] == {
        "task.dropout": 0.1, "optimizer.name": "adam", "training.train_batch_size": 16}


def test_a_model_is_needed_to_use_one(classified, model, encoder, tmp_path):
    evaluation, prediction = (("--mode=eval", *HARDWARE[:1]),
                              ("--mode=predict", f"--input={classified[0] / 'test.tsv'}"))
    trained = f"--model_dir={model}"
    for words, *arguments in (
            ("holds no fine-tuned model", *evaluation, f"--model_dir={encoder}", "--task=cola"),
            ("holds a model for --task=classification", *evaluation, trained, "--task=cola"),
            ("--input and --output are needed. For example: ", "--mode=predict", trained),
            ("must end in .tsv or .jsonl", *prediction, trained, f"--output={tmp_path}/a.txt"),
            ("optimizer.learning_rate is fixed in a trained model", *prediction,
             trained, f"--output={tmp_path}/a.tsv", "--learning_rate=1"),
            ("holds a model for --task=classification", *prediction, trained, "--task=cola",
             f"--output={tmp_path}/a.tsv"),
            ("--init_checkpoint has no effect with --mode=predict; leave it out", *prediction,
             trained, f"--output={tmp_path}/a.tsv", f"--init_checkpoint={encoder}"),
            ("--test has no effect with --mode=eval", *evaluation, trained, "--test=a.tsv"),
            ("--input has no effect with --mode=train", "--task=cola", *prediction[1:], trained)):
        assert words in refused(*arguments)


@pytest.fixture(scope="module")
def served(model, tmp_path_factory):
    """The export of a run."""
    directory = tmp_path_factory.mktemp("exports") / "served"
    export(f"--model_dir={model}", f"--output={directory}")
    return directory


def test_an_export_serves_what_was_learned(served):
    with running.client(served) as client:
        answers = client.rows("serving_default", ["word8 word7", "word9 word10 word11"])
        assert [answer["label"] for answer in answers] == ["yes", "no"]
        assert client.get("/metadata")[0] == 200
        assert "input 'title'" in client.error({"instances": [1]})


def test_another_version_has_another_precision_and_a_card(model, served, capsys):
    target = served / "2"
    export(f"--model_dir={model}", f"--output={served}", "--export_version=2",
           "--serving_precision=bfloat16")
    printed = capsys.readouterr().out
    assert f"exported {target}: bfloat16" in printed
    assert "compared with the trained model" in printed
    card = (target / "README.md").read_text()
    assert "fine-tuned on classification" in card and "labels: no, yes" in card
    assert f'tf.saved_model.load("{target}").signatures["serving_default"]' in card
    assert "README.md" in json_of(target / CHECKSUMS)


def test_a_damaged_checkpoint_or_task_exports_nothing(model, tmp_path):
    run = shutil.copytree(model, tmp_path / "run")
    settings = json_of(run / "settings.json")
    command = (export, f"--model_dir={run}", f"--output={tmp_path / 'served'}")
    write(run / "settings.json", json.dumps(settings | {"task_kind": "dance"}))
    assert f"settings.json of {run} is damaged" in commands.refused(*command)
    write(run / "settings.json", json.dumps(settings))
    (data,) = (run / "checkpoints").glob("*.data-*")
    data.write_bytes(data.read_bytes()[:1000])
    commands.refused(*command)
    assert list((tmp_path / "served").iterdir()) == []
