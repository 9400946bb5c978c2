"""Predictions take the form that the reader of the file expects, byte for byte."""

import json

import pytest

from electra_tf.finetuning.outputs import Progress, mistakes, require_writable, write_submission
from electra_tf.platform.errors import UserError
from electra_tf.tasks.examples import Kind
from electra_tf.tasks.kinds.registry import KINDS
from electra_tf.tasks.task import TaskSpec

CLASSES = [{"key": "0", "texts": ["a\tb"], "prediction": "1", "probability": 0.75,
            "probabilities": {"0": 0.25, "1": 0.75}},
           {"key": "1", "texts": ["c"], "gold": "1", "prediction": "0", "probability": 0.5,
            "probabilities": {"0": 0.5, "1": 0.5}}]
ANSWERS = [{"key": "q1", "prediction": "Ünal", "no_answer_score": -3.5, "n_best": []},
           {"key": "q2", "prediction": "", "no_answer_score": 2.0, "n_best": []}]
TAGS = [{"key": "1", "words": ["Ada", "wrote"], "prediction": ["B-PER", "O"]}]


def test_every_kind_has_its_own_form():
    for kind, suffix, records, content in (
            (Kind.CLASSIFICATION, "tsv", CLASSES, (
                "key\tprediction\tprobability of 0\tprobability of 1\ttext_1\tgold\n"
                "0\t1\t0.25\t0.75\ta b\t\n1\t0\t0.5\t0.5\tc\t1\n")),
            (Kind.REGRESSION, "tsv",
             [{"key": "5", "texts": ["a", "b"], "gold": 2.0, "prediction": 2.5}],
             "key\tprediction\tgold\ttext_1\ttext_2\n5\t2.5\t2.0\ta\tb\n"),
            (Kind.TAGGING, "txt", TAGS, "Ada B-PER\nwrote O\n\n"),
            (Kind.QUESTION_ANSWERING, "json", ANSWERS, '{\n "q1": "Ünal",\n "q2": ""\n}\n')):
        assert KINDS[kind].suffix == f".{suffix}"
        assert KINDS[kind].written(records) == content


def test_an_output_that_cannot_be_written_is_found_first(tmp_path):
    source, output = tmp_path / "in.tsv", tmp_path / "out.tsv"
    source.write_text("text\nx\n")
    (tmp_path / "link.tsv").symlink_to(source)
    (tmp_path / "hard.tsv").hardlink_to(source)
    (tmp_path / "directory.tsv").mkdir()
    for name in ("in.tsv", "link.tsv", "hard.tsv"):
        with pytest.raises(UserError, match="is --input; name another file"):
            require_writable(tmp_path / name, source, overwrite=True)
    with pytest.raises(UserError, match="exists; name another file, or give --overwrite"):
        require_writable(tmp_path / "directory.tsv", source, overwrite=True)
    with pytest.raises(UserError, match=r"cannot write .*nowhere/out\.tsv: No such file"):
        require_writable(tmp_path / "nowhere" / "out.tsv", source, overwrite=False)
    require_writable(output, source, overwrite=False)
    output.write_text("before")
    with pytest.raises(UserError, match=r"out\.tsv exists"):
        require_writable(output, source, overwrite=False)
    require_writable(output, source, overwrite=True)
    assert output.read_text() == "before" and source.read_text() == "text\nx\n"
    assert not list(tmp_path.glob(".*"))


def test_progress_is_a_line_in_ten_seconds_with_the_time_left(capsys):
    times = iter([0.0, 5.0, 12.0, 15.0, 24.0, 40.0])
    progress = Progress(clock=lambda: next(times))
    for done in (0.1, 0.25, 0.3, 0.5, 1.0):
        progress.show(done)
    assert capsys.readouterr().err.splitlines() == [
        "   25 %  ETA 0:00:36", "   50 %  ETA 0:00:24"]


def test_mistakes_are_counted_and_the_most_confident_come_first():
    spec = TaskSpec(name="classification", kind=Kind.CLASSIFICATION, labels=("no", "yes"),
                    metrics=("accuracy",))
    records = [{"key": str(number), "texts": [f"text\n{number}"], "gold": gold,
                "prediction": found, "probability": share} for number, (gold, found, share) in
               enumerate([("no", "no", 0.9), ("no", "yes", 0.6), ("yes", "no", 0.8)] * 7)]
    lines = mistakes(spec, records, "dev").splitlines()
    assert [line.split()[-3:] for line in lines[1:4]] == [
        ["predicted:", "no", "yes"], ["no", "7", "7"], ["yes", "7", "0"]]
    assert lines[4] == "the most confident mistakes of 14 on dev"
    assert lines[5] == "   80.0 %  no, true: yes; 2: text 2" and len(lines) == 15
    assert [line.split()[0] for line in lines[5:]] == ["80.0"] * 7 + ["60.0"] * 3


def test_mnli_s_server_takes_three_files(tmp_path):
    one = [{"key": "7", "prediction": "neutral"}]
    files = write_submission(tmp_path / "out", "mnli", {
        "test_matched": one, "test_mismatched": one, "diagnostic": one})
    assert [path.name for path in files] == ["MNLI-m.tsv", "MNLI-mm.tsv", "AX.tsv"]
    assert all(path.read_text() == "index\tprediction\n7\tneutral\n" for path in files)


def test_squad_s_evaluation_takes_answers_and_for_2_0_odds(tmp_path):
    files = write_submission(tmp_path, "squad2", {"dev": ANSWERS})
    assert [path.name for path in files] == ["predictions.json", "null_odds.json"]
    assert json.loads(files[0].read_text()) == {"q1": "Ünal", "q2": ""}
    assert json.loads(files[1].read_text()) == {"q1": -3.5, "q2": 2.0}
    without = [{name: value for name, value in record.items() if name != "no_answer_score"}
               for record in ANSWERS]
    for name in ("squad", "newsqa"):
        assert [path.name for path in write_submission(tmp_path, name, {"dev": without})] == [
            "predictions.json"]


def test_a_task_without_a_server_leaves_nothing(tmp_path):
    assert write_submission(tmp_path / "out", "tagging", {"test": TAGS}) == []
    assert not (tmp_path / "out").exists()
