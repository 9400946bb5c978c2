"""GLUE's nine files as the benchmark publishes them, two or three rows each."""

import pytest

from electra_tf.platform.errors import UserError
from electra_tf.tasks import glue
from electra_tf.tasks.examples import Kind

MNLI = ["index", "promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse",
        "sentence1_parse", "sentence2_parse", "sentence1", "sentence2"]
PARSED = ["0", "1", "1n", "fiction", "( a )", "( b )", "(ROOT a)", "(ROOT b)", "one", "two"]

# Task -> labelled rows, unlabelled rows, and what the first labelled row says.
FILES = {
    "cola": ([["gj04", "0", "*", "Him ran."], ["gj04", "1", "", "He ran."]],
             [["index", "sentence"], ["0", "He ran."]], (("Him ran.",), "0")),
    "sst2": ([["sentence", "label"], ["fine ", "1"]], [["index", "sentence"], ["0", "dull"]],
             (("fine ",), "1")),
    "mrpc": ([["\ufeffQuality", "#1 ID", "#2 ID", "#1 String", "#2 String"],
              ["1", "70", "71", 'He said "no', "No ."]],
             [["index", "#1 ID", "#2 ID", "#1 String", "#2 String"], ["0", "8", "9", "a", "b"]],
             (('He said "no', "No ."), "1")),
    "stsb": ([["index", "genre", "filename", "year", "old_index", "source1", "source2",
               "sentence1", "sentence2", "score"],
              ["0", "news", "MSR", "2012", "0001", "none", "none", "one", "two", "3.800"]],
             [["index", "genre", "filename", "year", "old_index", "source1", "source2",
               "sentence1", "sentence2"], ["0", "n", "M", "2012", "1", "none", "none", "a", "b"]],
             (("one", "two"), 3.8)),
    "qqp": ([["id", "qid1", "qid2", "question1", "question2", "is_duplicate"],
             ["133273", "21", "22", "one?", "two?", "0"]],
            [["id", "question1", "question2"], ["0", "a?", "b?"]], (("one?", "two?"), "0")),
    "mnli": ([[*MNLI, "label1", "gold_label"], [*PARSED, "neutral", "neutral"]],
             [MNLI, PARSED], (("one", "two"), "neutral")),
    "qnli": ([["index", "question", "sentence", "label"], ["0", "who?", "he", "entailment"]],
             [["index", "question", "sentence"], ["0", "a?", "b"]], (("who?", "he"), "entailment")),
    "rte": ([["index", "sentence1", "sentence2", "label"], ["0", "a", "b", "not_entailment"]],
            [["index", "sentence1", "sentence2"], ["0", "a", "b"]], (("a", "b"), "not_entailment")),
    "wnli": ([["index", "sentence1", "sentence2", "label"], ["0", "a", "b", "1"]],
             [["index", "sentence1", "sentence2"], ["0", "a", "b"]], (("a", "b"), "1")),
}


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def test_every_task_reads_its_own_layout(tmp_path):
    for name, task in glue.TASKS.items():
        check_layout(tmp_path, task, *FILES[name])


def check_layout(tmp_path, task, labelled, unlabelled, first_row):
    texts, label = first_row
    splits = ["train", *task.dev]
    for split in splits:
        write(tmp_path / task.directory / f"{split}.tsv", labelled)
    for split, _ in task.tests:
        write(tmp_path / task.directory / f"{split}.tsv", unlabelled)
    for split in splits:
        first = glue.read_split(task, tmp_path, split)[0]
        assert (first.texts, first.label) == (texts, label)
    for split, _ in task.tests:
        (first,) = glue.read_split(task, tmp_path, split)
        assert (first.key, len(first.texts), first.label) == ("0", len(texts), None)


def test_the_benchmark_is_nine_tasks_and_eleven_files_to_submit():
    assert [name for task in glue.TASKS.values() for _, name in task.tests] == [
        "CoLA.tsv", "SST-2.tsv", "MRPC.tsv", "STS-B.tsv", "QQP.tsv", "MNLI-m.tsv", "MNLI-mm.tsv",
        "AX.tsv", "QNLI.tsv", "RTE.tsv", "WNLI.tsv"]
    assert [name for name, task in glue.TASKS.items() if task.kind is Kind.REGRESSION] == ["stsb"]


def test_the_diagnostic_set_may_lie_beside_the_tasks(tmp_path):
    for place in ("one/diagnostic.tsv", "two/diagnostic/diagnostic.tsv"):
        write(tmp_path / place, [["index", "sentence1", "sentence2"], ["7", "a", "b"]])
        data_dir = tmp_path / place.split("/")[0]
        assert glue.read_split(glue.TASKS["mnli"], data_dir, "diagnostic")[0].key == "7"


def test_predictions_are_written_as_the_server_reads_them():
    assert glue.submission(glue.TASKS["rte"], "test", ["0", "1"], glue.ENTAILMENT) == (
        "RTE.tsv", "index\tprediction\n0\tentailment\n1\tnot_entailment\n")
    assert glue.submission(glue.TASKS["cola"], "test", ["0", "1"], [
        "acceptable", "unacceptable"]) == ("CoLA.tsv", "index\tprediction\n0\t1\n1\t0\n")
    assert glue.submission(glue.TASKS["wnli"], "test", ["0"], ["entailment"])[1] == (
        "index\tprediction\n0\t1\n")
    assert glue.submission(glue.TASKS["stsb"], "test", ["0", "1"], [5.2, 1.23456]) == (
        "STS-B.tsv", "index\tprediction\n0\t5.000\n1\t1.235\n")


def test_bad_rows_and_missing_files_are_named(tmp_path):
    for name, row, message in (
            ("sst2", ["fine", "2"], r"dev\.tsv:2: 'label' must be one of 0, 1\. Received: '2'"),
            ("stsb", [*"0nfy1ssab", "5.1"], "a number from 0 to 5"),
            ("stsb", [*"0nfy1ssab", "nan"], "Received: 'nan'"),
            ("qqp", ["133273", "21", "22", "one?"], r"dev\.tsv:2: 4 columns, but 6 are expected")):
        task = glue.TASKS[name]
        write(tmp_path / task.directory / "dev.tsv", [FILES[name][0][0], row])
        with pytest.raises(UserError, match=message):
            glue.read_split(task, tmp_path, "dev")
    with pytest.raises(UserError, match=r"no .*CoLA/train\.tsv; --data_dir must hold GLUE's"):
        glue.read_split(glue.TASKS["cola"], tmp_path, "train")


def test_only_classes_that_are_numbered_have_other_words():
    assert glue.label_words("mrpc", ("0", "1")) == ("not_equivalent", "equivalent")
    assert glue.label_words("rte", glue.ENTAILMENT) == glue.ENTAILMENT
    assert glue.label_words("mrpc", ("no", "yes")) == ("no", "yes")
    assert glue.label_words("classification", ("0", "1")) == ("0", "1")
