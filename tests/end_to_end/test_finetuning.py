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

import numpy as np
import pytest

from electra_tf.checkpoints.weights import ENCODER, read_checkpoint
from electra_tf.export.new_directory import CHECKSUMS
from electra_tf.finetuning import results
from electra_tf.finetuning.finetuner import ByLength
from electra_tf.platform import signals
from tests.apps.serving import running
from tests.end_to_end import commands
from tests.end_to_end.commands import HARDWARE, export
from tests.end_to_end.commands import finetune as call

QUICK = ("--train_batch_size=8", "--eval_batch_size=8", "--max_seq_length=16",
         "--learning_rate=3e-3", *HARDWARE)


refused = functools.partial(commands.refused, call)


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


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def table(path: Path, rows: list[tuple[str, str]]) -> Path:
    return write(path, "\n".join(["title\ttopic", *("\t".join(row) for row in rows)]) + "\n")


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


def results_of(directory: Path) -> dict:
    return json.loads((directory / "results.json").read_text())


def test_a_run_leaves_results_model_predictions_and_pictures(classified):
    path, _ = classified
    results = results_of(path / "run")
    assert [trial["seed"] for trial in results["trials"]] == [1, 2]
    for trial in results["trials"]:
        scores = [epoch["scores"]["dev"]["accuracy"] for epoch in trial["epochs"]]
        assert trial["kept_epoch"] == 1 + scores.index(max(scores))
        assert trial["losses"][-1][0] == trial["epochs"][-1]["step"] == 48
    summary = results["summary"]["dev"]["accuracy"]
    best = [max(epoch["scores"]["dev"]["accuracy"] for epoch in trial["epochs"])
            for trial in results["trials"]]
    assert summary["best"] == max(best) > 0.9
    assert summary["mean"] == pytest.approx(np.mean(best))
    assert summary["std"] == pytest.approx(np.std(best, ddof=1))
    assert (path / "run" / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    lines = (path / "run" / "predictions" / "test.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    assert len(lines) == 6 and first["key"] == "2" and first["prediction"] in ("yes", "no")
    assert 0.5 <= first["probability"] <= 1.0
    assert {item.name for item in (path / "run").iterdir()} == {
        "settings.json", "vocab.txt", "vocab.txt.manifest.json", "checkpoints", "results.json",
        "predictions", "learning_curve.png"}


def test_a_finished_run_says_so_missing_trials_are_run_and_another_setting_is_refused(
        classified, capsys):
    path, arguments = classified
    results = results_of(path / "run")
    call(*arguments)
    printed = capsys.readouterr().out
    assert "2 done, 0 to go" in printed and "\ncompile " not in printed
    assert results_of(path / "run") == results
    assert "--learning_rate (optimizer.learning_rate): 0.003 then, 0.001 now" in refused(
        *arguments, "--learning_rate=1e-3")
    (path / "run" / "results.json").write_text(
        json.dumps(results | {"trials": results["trials"][:1]}))
    call(*arguments, "--num_trials=1")
    assert "1 done, 0 to go" in capsys.readouterr().out
    call(*arguments)
    assert re.search(r"1 done, 1 to go.*\ncompile  .* up to \d row lengths.* take longer\n",
                     capsys.readouterr().out)
    again = results_of(path / "run")["trials"]
    assert again[0] == results["trials"][0]
    assert_same_losses(again[1:], results["trials"][1:])


def assert_same_losses(trials, expected):
    for trial, other in zip(trials, expected, strict=True):
        assert trial["losses"] == [
            [step, pytest.approx(loss, rel=1e-4)] for step, loss in other["losses"]]


def test_a_trial_that_is_killed_before_its_scores_are_saved_leaves_the_old_pair(
        classified, encoder, tmp_path, monkeypatch):
    _, arguments = classified
    arguments = [one for one in arguments if not one.startswith(("--model_dir", "--num_trials"))]
    arguments += [f"--model_dir={tmp_path}", "--set=training.num_train_epochs=1"]
    call(*arguments, "--num_trials=1")
    before, scores = read_checkpoint(tmp_path)[0], (tmp_path / "results.json").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(results.Results, "best", property(lambda self: self.trials[-1]))
        patched.setattr(results.Results, "save", interrupt)
        with pytest.raises(KeyboardInterrupt):
            call(*arguments, "--num_trials=2")
    assert (tmp_path / "results.json").read_bytes() == scores
    after = read_checkpoint(tmp_path)[0]
    assert all(np.array_equal(after[name], value) for name, value in before.items())
    call(*arguments, "--num_trials=2")
    assert len(json.loads((tmp_path / "results.json").read_text())["trials"]) == 2


def interrupt(*_arguments):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("number", "step", "finished"), [
    pytest.param(signal.SIGTERM, 2, "0 of 2 trials", marks=pytest.mark.slow),
    (signal.SIGINT, 48 + 2, "1 of 2 trials"),
    pytest.param(signal.SIGTERM, 2 * 48, "1 of 2 trials", marks=pytest.mark.slow)])
def test_a_signal_keeps_the_trials_that_are_finished(
        classified, tmp_path, monkeypatch, number, step, finished):
    path, arguments = classified
    arguments = (*arguments, f"--model_dir={tmp_path / 'run'}")
    replicas_step, steps = ByLength.__call__, itertools.count(1)

    def signalled(self, length, batch):
        results = replicas_step(self, length, batch)
        if next(steps) == step:
            os.kill(os.getpid(), number)
        return results

    monkeypatch.setattr(ByLength, "__call__", signalled)
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
    again, whole = results_of(tmp_path / "run")["trials"], results_of(path / "run")["trials"]
    assert [trial["seed"] for trial in again] == [1, 2]
    assert_same_losses(again, whole)


def test_the_best_trial_is_what_evaluation_and_prediction_use(classified, capsys):
    path, _ = classified
    results = results_of(path / "run")
    call("--mode=eval", f"--model_dir={path / 'run'}", f"--dev={path / 'dev.tsv'}", *HARDWARE[:1])
    scores = json.loads((path / "run" / "eval_results.json").read_text())["dev"]
    assert scores["accuracy"] == results["summary"]["dev"]["accuracy"]["best"]
    rows = texts(6, 3)
    fresh = write(path / "new.csv", "title\n" + "\n".join(text for text, _ in rows) + "\n")
    call("--mode=predict", f"--model_dir={path / 'run'}", f"--input={fresh}",
         f"--output={path / 'new.tsv'}", *HARDWARE[:1])
    predicted = [line.split("\t") for line in (path / "new.tsv").read_text().splitlines()]
    assert predicted[0] == ["key", "prediction", "probability of no", "probability of yes", "title"]
    test = [json.loads(line)["prediction"] for line in
            (path / "run" / "predictions" / "test.jsonl").read_text().splitlines()]
    assert [row[1] for row in predicted[1:]] == test
    assert [row[4] for row in predicted[1:]] == [text for text, _ in rows]
    assert "6 predictions" in capsys.readouterr().out


@pytest.fixture(scope="module")
def unprepared(tmp_path_factory, encoder):
    """A run on two packed files without one for dev, with a run from scratch beside it."""
    path = tmp_path_factory.mktemp("unprepared")
    files = []
    for number in (1, 2):
        table(path / "a.tsv", texts(40, number))
        files.append(path / f"{number}.tsv.gz")
        files[-1].write_bytes(gzip.compress((path / "a.tsv").read_bytes()))
    call("--task=classification", f"--train={files[0]},{files[1]}", "--text_columns=title",
         "--label_column=topic", f"--init_checkpoint={encoder}", f"--model_dir={path / 'run'}",
         "--num_train_epochs=1", "--scratch_baseline", *QUICK)
    return path


def test_own_files_need_no_preparation(unprepared, encoder):
    found = results_of(unprepared / "run")
    assert found["baseline"] == {"name": "always no", "scores": {
        "dev": {"accuracy": 0.5, "f1_macro": pytest.approx(1 / 3)}}}
    records = [json.loads(line) for line in (
        unprepared / "run" / "predictions" / "dev.jsonl").read_text().splitlines()]
    assert [one["gold"] for one in records].count("yes") == 4 and len(records) == 8
    assert all(one["texts"][0].startswith("word") for one in records)
    assert all(sum(one["probabilities"].values()) == pytest.approx(1.0) for one in records)
    scratch = unprepared / "run" / "from_scratch"
    assert (results_of(scratch)["initial"], found["initial"]) == ("none", f"{encoder}, step 7")
    settings = [json.loads((path / "settings.json").read_text()) for path in (
        unprepared / "run", scratch)]
    assert {name for name in settings[0] if settings[0][name] != settings[1][name]} == {"initial"}


class _Pipes:
    def __init__(self, content):
        self.buffer = io.BytesIO(content)


def test_standard_input_and_output_and_files_give_the_same_predictions(
        unprepared, tmp_path, monkeypatch, capsys):
    command = ("--mode=predict", f"--model_dir={unprepared / 'run'}", *HARDWARE[:1])
    source = write(tmp_path / "new.txt", "word9 word7\nword10\n")
    call(*command, f"--input={source}", f"--output={tmp_path / 'out.tsv'}")
    written = (tmp_path / "out.tsv").read_text()
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", _Pipes(source.read_bytes()))
    call(*command, "--input=-", "--output=-")
    assert capsys.readouterr().out == written
    assert [line.split("\t")[-1] for line in written.splitlines()] == [
        "title", "word9 word7", "word10"]
    call(*command, f"--input={source}", f"--output={tmp_path / 'out.tsv'}", "--overwrite")
    assert (tmp_path / "out.tsv").read_text() == written


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    """CoNLL columns: word7 begins a name, which word8 continues."""
    path = tmp_path_factory.mktemp("sentences")
    numbers = np.random.default_rng(4)
    lines = []
    for _ in range(64):
        words = [f"word{number}" for number in numbers.integers(9, 35, 5)]
        place = numbers.integers(4)
        words[place:place + 2] = ["word7", "word8"]
        tags = ["O"] * 5
        tags[place:place + 2] = ["B-PER", "I-PER"]
        lines += [f"{word} {tag}" for word, tag in zip(words, tags, strict=True)] + [""]
    return write(path / "train.txt", "\n".join(lines) + "\n")


def test_tags(encoder, sentences, tmp_path):
    call("--task=tagging", f"--train={sentences}", f"--dev={sentences}", f"--model_dir={tmp_path}",
         f"--init_checkpoint={encoder}", "--num_train_epochs=6", *QUICK)
    assert results_of(tmp_path)["summary"]["dev"]["f1"]["best"] > 0.95
    before, after = (
        {name: value for name, value in read_checkpoint(path)[0].items()
         if name.startswith(ENCODER)}
        for path in (encoder, tmp_path))
    assert len(after) == 39
    assert not any(np.array_equal(before[name], value) for name, value in after.items())
    fresh = write(tmp_path / "new.txt", "word9\nword7\nword8\n\nword30\n")
    command = ("--mode=predict", f"--model_dir={tmp_path}", *HARDWARE[:1])
    call(*command, f"--input={fresh}", f"--output={tmp_path / 'tagged.txt'}")
    assert (tmp_path / "tagged.txt").read_text() == (
        "word9 O\nword7 B-PER\nword8 I-PER\n\nword30 O\n\n")
    tagged = write(tmp_path / "new.jsonl", json.dumps({"text": ["word7"], "label": ["I-LOC"]}))
    call(*command, f"--input={tagged}", f"--output={tmp_path / 'tagged.tsv'}")
    rows = [line.split("\t") for line in (tmp_path / "tagged.tsv").read_text().splitlines()]
    assert rows[0] == ["key", "word", "prediction", "probability", "gold"]
    assert (rows[1][:3], rows[1][4]) == (["1", "word7", "B-PER"], "B-LOC")
    assert 0.5 < float(rows[1][3]) <= 1.0
    plain = write(tmp_path / "plain.txt", "word9 word7 word8\n")
    assert "one word per line" in refused(*command, f"--input={plain}", "--output=-")


def test_lower_layers_stay_as_they_were(encoder, sentences, tmp_path):
    call("--task=tagging", f"--train={sentences}", f"--dev={sentences}", f"--model_dir={tmp_path}",
         f"--init_checkpoint={encoder}", "--num_train_epochs=1", "--freeze_layers=1", *QUICK)
    before, after = read_checkpoint(encoder)[0], read_checkpoint(tmp_path)[0]
    changed = {"/".join(name.split("/")[1:3]) for name, value in after.items()
               if name.startswith(ENCODER) and not np.array_equal(before[name], value)}
    assert changed == {"encoder/layer_1"}


def squad(path: Path, *, impossible: bool) -> Path:
    """Questions about which word follows word7; every third has no answer, if so asked."""
    numbers = np.random.default_rng(5)
    questions = []
    for index in range(48):
        words = [f"word{number}" for number in numbers.integers(8, 35, 6)]
        none = impossible and index % 3 == 0
        place = int(numbers.integers(5))
        if not none:
            words[place] = "word7"
        context = " ".join(words)
        answer = words[place + 1]
        start = len(" ".join(words[:place + 1])) + 1
        questions.append({"context": context, "qas": [{
            "id": f"q{index}", "question": "word1 word2",
            "answers": [] if none else [{"text": answer, "answer_start": start}],
            "is_impossible": none}]})
    return write(path, json.dumps({"data": [{"paragraphs": questions}]}))


def test_questions(encoder, tmp_path):
    data = squad(tmp_path / "train-v2.0.json", impossible=True)
    call("--task=squad2", f"--data_dir={tmp_path}", f"--dev={data}", f"--init_checkpoint={encoder}",
         f"--model_dir={tmp_path / 'run'}", "--num_train_epochs=20", *QUICK, "--max_seq_length=32",
         "--set=task.max_query_length=8", "--set=task.beam_size=4")
    scores = results_of(tmp_path / "run")["summary"]["dev"]
    assert scores["f1"]["best"] > 0.8 and np.isfinite(scores["threshold"]["best"])
    answers = json.loads((tmp_path / "run" / "submission" / "predictions.json").read_text())
    odds = json.loads((tmp_path / "run" / "submission" / "null_odds.json").read_text())
    assert len(answers) == 48 and answers.keys() == odds.keys()
    threshold = scores["threshold"]["best"]
    assert all((answers[key] == "") == (odds[key] > threshold) for key in answers)
    call("--mode=predict", f"--model_dir={tmp_path / 'run'}", f"--input={data}",
         f"--output={tmp_path / 'answers.json'}", *HARDWARE[:1])
    assert json.loads((tmp_path / "answers.json").read_text()) == answers


def test_several_tasks_of_glue_share_a_table_and_an_archive(encoder, tmp_path, capsys):
    sentence = "".join(f"x\t{int(label == 'yes')}\t\t{text}\n" for text, label in texts(16, 1))
    for split in ("train", "dev"):
        write(tmp_path / "glue" / "CoLA" / f"{split}.tsv", sentence)
        write(tmp_path / "glue" / "RTE" / f"{split}.tsv", "index\tsentence1\tsentence2\tlabel\n"
              + "".join(f"0\t{text}\tword9\t{'' if label == 'yes' else 'not_'}entailment\n"
                        for text, label in texts(16, 2)))
    write(tmp_path / "glue" / "CoLA" / "test.tsv", "index\tsentence\n0\tword7\n1\tword8\n")
    call("--task=cola,rte", f"--data_dir={tmp_path / 'glue'}", f"--init_checkpoint={encoder}",
         f"--model_dir={tmp_path / 'run'}", "--num_train_epochs=1", *QUICK)
    printed = capsys.readouterr().out
    assert "average over 2 of 8 tasks" in printed
    with zipfile.ZipFile(tmp_path / "run" / "submission.zip") as packed:
        assert packed.namelist() == ["CoLA.tsv"]
        lines = packed.read("CoLA.tsv").decode().splitlines()
    assert lines[0] == "index\tprediction"
    assert [line.split("\t")[0] for line in lines[1:]] == ["0", "1"]
    assert all(line.split("\t")[1] in "01" for line in lines[1:])
    for split in ("dev", "test"):
        records = (tmp_path / "run" / "cola" / "predictions" / f"{split}.jsonl").read_text()
        assert {json.loads(line)["prediction"] for line in records.splitlines()} <= {
            "acceptable", "unacceptable"}


@pytest.mark.parametrize(("arguments", "words"), [
    (["--task=cola,squad"], ["only GLUE's tasks can share a run"]),
    (["--mode=dance"], ["--mode must be one of train, eval, predict", "'dance'"]),
    (["--init_checkpoint="], ["--init_checkpoint is needed"]),
    (["--init_checkpoint=nowhere"], ["nowhere holds no checkpoint"]),
    (["--init_checkpoint=none"], ["--vocab_file is needed"]),
    (["--init_checkpoint=none", "--train="], ["--train and --vocab_file are needed",
                                              "For example: python run_finetuning.py --task="]),
    (["--model_size=small"], ["--model_size is for an encoder that begins from scratch"]),
    (["--text_columns=body"], ["train.tsv:2", "no column 'body'", "title, topic"]),
    (["--dev=OTHER_LABEL"], ["the label 'perhaps' isn't among those of the training file"]),
    (["--train=EMPTY"], ["empty.tsv holds no rows"]),
    (["--train=CROOKED"], ["crooked.tsv:3", "3 columns, but 2 are expected"]),
    (["--max_seq_length=500"], ["task.max_seq_length", "max_position_embeddings=32", "500"]),
    (["--freeze_layers=3"], ["training.freeze_layers", "num_layers=2"]),
    (["--set=model.num_layers=3"], ["lacks 16 weights: electra/encoder/layer_2", "another model"]),
    (["--task=cola", "--data_dir=nowhere"], ["--task=cola", "--train goes with"]),
])
def test_a_mistake_is_one_line_that_leaves_nothing(classified, tmp_path, arguments, words):
    _, rest = classified
    rows = texts(4, 1)
    files = {
        "OTHER_LABEL": table(tmp_path / "other.tsv", [*rows, ("word9", "perhaps")]),
        "EMPTY": write(tmp_path / "empty.tsv", ""),
        "CROOKED": table(tmp_path / "crooked.tsv", [rows[0], ("word9", "yes\tno")]),
    }
    asked = []
    for argument in arguments:
        flag, value = argument.split("=", 1) if "=" in argument else (argument, None)
        asked.append(f"{flag}={files[value]}" if value in files else argument)
    message = refused(*rest, f"--model_dir={tmp_path / 'run'}", *asked)
    assert all(word in message for word in words), message
    assert not (tmp_path / "run").exists()


def test_a_model_is_needed_to_use_one(classified, encoder, tmp_path):
    path, _ = classified
    assert "holds no fine-tuned model" in refused(
        "--mode=eval", f"--model_dir={encoder}", "--task=cola")
    assert "--input and --output are needed. For example: python run_finetuning.py --mode=pr" in (
        refused("--mode=predict", f"--model_dir={path / 'run'}"))
    assert "--model_dir, --input and --output are needed" in refused("--mode=predict")
    wanted = ["--mode=predict", f"--model_dir={path / 'run'}",
              f"--input={path / 'test.tsv'}", *HARDWARE[:1]]
    assert "must end in .tsv or .jsonl" in refused(*wanted, f"--output={tmp_path / 'a.txt'}")
    assert "--learning_rate (optimizer.learning_rate) is the trained model's" in refused(
        *wanted, f"--output={tmp_path / 'a.tsv'}", "--learning_rate=1")
    assert "--dev is needed" in refused(
        "--mode=eval", f"--model_dir={path / 'run'}", *HARDWARE[:1])
    assert "--model_dir holds a model for --task=classification" in refused(
        "--mode=eval", f"--model_dir={path / 'run'}", "--task=cola", *HARDWARE[:1])


@pytest.fixture(scope="module")
def served(classified, tmp_path_factory):
    """The export of a run."""
    directory = tmp_path_factory.mktemp("exports") / "served"
    export(f"--model_dir={classified[0] / 'run'}", f"--export_dir={directory}")
    return directory


def test_an_export_serves_what_was_learned(served):
    with running.client(served) as client:
        answers = client.rows("serving_default", ["word8 word7", "word9 word10 word11"])
        assert [answer["label"] for answer in answers] == ["yes", "no"]
        assert client.get("/metadata")[0] == 200
        assert "input 'title'" in client.error({"instances": [1]})


def test_another_version_has_another_precision_and_a_card(classified, served, capsys):
    path, _ = classified
    target = served / "2"
    export(f"--model_dir={path / 'run'}", f"--export_dir={served}",
           "--export_version=2", "--serving_precision=bfloat16")
    printed = capsys.readouterr().out
    assert f"exported {target}: bfloat16" in printed
    assert "compared with the trained model" in printed
    card = (target / "README.md").read_text()
    assert "fine-tuned on classification" in card and "labels: no, yes" in card
    assert f'tf.saved_model.load("{target}").signatures["serving_default"]' in card
    assert "README.md" in json.loads((target / CHECKSUMS).read_text())


def test_a_damaged_checkpoint_or_task_exports_nothing(classified, tmp_path):
    path, _ = classified
    run = shutil.copytree(path / "run", tmp_path / "run")
    settings = json.loads((run / "settings.json").read_text())
    command = (export, f"--model_dir={run}", f"--export_dir={tmp_path / 'served'}")
    (run / "settings.json").write_text(json.dumps(settings | {"task_kind": "dance"}))
    assert f"settings.json of {run}" in commands.refused(*command)
    (run / "settings.json").write_text(json.dumps(settings))
    (data,) = (run / "checkpoints").glob("*.data-*")
    data.write_bytes(data.read_bytes()[:1000])
    commands.refused(*command)
    assert list((tmp_path / "served").iterdir()) == []
