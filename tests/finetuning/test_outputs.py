"""Predictions take the form that the reader of the file expects, byte for byte."""

import json

import pytest

from electra_tf.finetuning.outputs import write_submission, writer_for
from electra_tf.platform.errors import UserError
from electra_tf.tasks.examples import Kind

CLASSES = [{"key": "0", "texts": ["a\tb"], "prediction": "1", "probability": 0.75,
            "probabilities": {"0": 0.25, "1": 0.75}},
           {"key": "1", "texts": ["c"], "gold": "1", "prediction": "0", "probability": 0.5,
            "probabilities": {"0": 0.5, "1": 0.5}}]
ANSWERS = [{"key": "q1", "prediction": "Ünal", "no_answer_score": -3.5, "n_best": []},
           {"key": "q2", "prediction": "", "no_answer_score": 2.0, "n_best": []}]
TAGS = [{"key": "1", "words": ["Ada", "wrote"], "prediction": ["B-PER", "O"]}]


def test_every_kind_has_its_own_form_and_json_lines(tmp_path):
    for kind, suffix, records, content in (
            (Kind.CLASSIFICATION, "tsv", CLASSES, (
                "key\tprediction\tprobability of 0\tprobability of 1\ttext_1\tgold\n"
                "0\t1\t0.25\t0.75\ta b\t\n1\t0\t0.5\t0.5\tc\t1\n")),
            (Kind.REGRESSION, "tsv",
             [{"key": "5", "texts": ["a", "b"], "gold": 2.0, "prediction": 2.5}],
             "key\tprediction\tgold\ttext_1\ttext_2\n5\t2.5\t2.0\ta\tb\n"),
            (Kind.TAGGING, "txt", TAGS, "Ada B-PER\nwrote O\n\n"),
            (Kind.QUESTION_ANSWERING, "json", ANSWERS, '{\n "q1": "Ünal",\n "q2": ""\n}\n'),
            (Kind.TAGGING, "jsonl", TAGS, json.dumps(TAGS[0]) + "\n")):
        path = tmp_path / f"out.{suffix}"
        writer_for(path, kind)(records)
        assert path.read_text(encoding="utf-8") == content
    for kind, name in ((Kind.CLASSIFICATION, "a.json"), (Kind.TAGGING, "a.tsv"),
                       (Kind.QUESTION_ANSWERING, "a.txt"), (Kind.REGRESSION, "a")):
        with pytest.raises(UserError, match=r"must end in .jsonl or"):
            writer_for(tmp_path / name, kind)


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
