"""Predictions take the form that the reader of the file expects, byte for byte."""

import json
import types

from electra_tf.finetuning.outputs import submission_files
from electra_tf.finetuning.predict import predict_file, require_free
from electra_tf.tasks.files import Files
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import Kind, TaskSpec
from tests.support.refusals import refused

CLASSES = [{"key": "0", "texts": ["a\tb"], "prediction": "1", "probability": 0.75,
            "probabilities": {"0": 0.25, "1": 0.75}},
           {"key": "1", "texts": ["c"], "gold": "1", "prediction": "0", "probability": 0.5,
            "probabilities": {"0": 0.5, "1": 0.5}}]
ANSWERS = [{"key": "q1", "prediction": "Ünal", "no_answer_score": -3.5},
           {"key": "q2", "prediction": "", "no_answer_score": 2.0}]
TAGS = [{"key": "1", "words": ["Ada", "wrote"], "gold": ["O", "O"], "prediction": ["B-PER", "O"],
         "probability": [0.75, 0.5]},
        {"key": "4", "words": [], "prediction": [], "probability": []},
        {"key": "6", "words": ["."], "prediction": ["O"], "probability": [1.0]}]


def spec_of(name, texts=("text",), kind=Kind.CLASSIFICATION):
    return TaskSpec(name=name, kind=kind, metrics=("accuracy",), text_columns=texts)


def test_every_kind_has_its_own_form():
    for kind, suffix, records, content in (
            (Kind.CLASSIFICATION, "tsv", CLASSES, (
                "key\tprediction\tprobability of 0\tprobability of 1\ttitle\tgold\n"
                "0\t1\t0.25\t0.75\ta b\t\n1\t0\t0.5\t0.5\tc\t1\n")),
            (Kind.REGRESSION, "tsv",
             [{"key": "5", "texts": ["a", "b"], "gold": 2.0, "prediction": 2.5}],
             "key\tprediction\tgold\ttitle\ttext_2\n5\t2.5\t2.0\ta\tb\n"),
            (Kind.TAGGING, "txt", TAGS, "Ada B-PER\nwrote O\n\n\n. O\n\n"),
            (Kind.TAGGING, "txt", [{"words": ["New York", "\n"], "prediction": ["B-LOC", "O"]}],
             "New_York B-LOC\n_ O\n\n"),
            (Kind.TAGGING, "tsv", TAGS, (
                "key\tword\tprediction\tprobability\tgold\n"
                "1\tAda\tB-PER\t0.75\tO\n1\twrote\tO\t0.5\tO\n6\t.\tO\t1\t\n")),
            (Kind.QUESTION_ANSWERING, "json", ANSWERS, '{\n "q1": "Ünal",\n "q2": ""\n}\n')):
        texts = ("title", "gold")[:len(records[0].get("texts", "a"))]  # "gold" is a column of ours.
        assert KINDS[kind].formatters(spec_of("own", texts))[f".{suffix}"](records) == content


def test_a_table_has_the_keys_labels_and_texts_of_its_input():
    record = {"key": "a  1", "texts": ["x\u00a0 y\r\n\tz "], "prediction": "New\u00a0York"}
    content = KINDS[Kind.CLASSIFICATION].formatters(spec_of("own"))[".tsv"]([record])
    assert content == "key\tprediction\ttext\na  1\tNew\u00a0York\tx\u00a0 y z \n"


def test_predictions_replace_neither_their_input_nor_a_file_by_default(tmp_path):
    source, output = tmp_path / "in.tsv", tmp_path / "out.tsv"
    source.write_text("text\nx\n")
    (tmp_path / "link.tsv").symlink_to(source)
    (tmp_path / "hard.tsv").hardlink_to(source)
    (tmp_path / "directory.tsv").mkdir()
    output.write_text("before")
    for name, overwrite, message in (
            *((name, True, "is --input") for name in ("in.tsv", "link.tsv", "hard.tsv")),
            ("directory.tsv", True, "exists; .*--over"), ("out.tsv", False, r"out\.tsv exists")):
        with refused(message):
            require_free(tmp_path / name, source, overwrite=overwrite)
    require_free(output, source, overwrite=True)
    require_free(tmp_path / "new.tsv", source, overwrite=False)


def test_an_output_that_cannot_be_written_is_found_before_the_model_is_read(tmp_path):
    (tmp_path / "in.tsv").write_text("text\nx\n")
    run = types.SimpleNamespace(kind=KINDS[Kind.CLASSIFICATION], spec=spec_of("own"))
    with refused(r"nowhere/out\.tsv: No such"):
        predict_file(run, str(tmp_path / "in.tsv"), str(tmp_path / "nowhere" / "out.tsv"), Files(),
                     overwrite=False)


def test_servers_take_files_of_their_own():
    records = [{"key": "7", "prediction": "neutral"}]
    assert submission_files(spec_of("mnli"), dict.fromkeys(
        ("test_matched", "test_mismatched", "diagnostic"), records)) == dict.fromkeys(
            ("MNLI-m.tsv", "MNLI-mm.tsv", "AX.tsv"), "index\tprediction\n7\tneutral\n")
    kind = Kind.QUESTION_ANSWERING
    files = submission_files(spec_of("squad2", kind=kind), {"dev": ANSWERS})
    assert {name: json.loads(content) for name, content in files.items()} == {
        "predictions.json": {"q1": "Ünal", "q2": ""}, "null_odds.json": {"q1": -3.5, "q2": 2.0}}
    without = [{name: value for name, value in record.items() if name != "no_answer_score"}
               for record in ANSWERS]
    for name in ("squad", "newsqa"):
        assert submission_files(spec_of(name, kind=kind), {"dev": without}).keys() == {
            "predictions.json"}
    assert submission_files(spec_of("tagging"), {"test": TAGS}) == {}
