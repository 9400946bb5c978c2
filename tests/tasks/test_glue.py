"""GLUE's nine files as the benchmark publishes them, two or three rows each."""

import pytest

from electra_tf.tasks import glue
from tests.support import text_files
from tests.support.refusals import refused

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
    text_files.write(path, "".join("\t".join(row) + "\n" for row in rows))


@pytest.mark.parametrize("name", glue.TASKS)
def test_every_task_reads_its_own_layout(tmp_path, name):
    task, (labelled, unlabelled, (texts, label)) = glue.TASKS[name], FILES[name]
    for splits, rows in ((("train", *task.dev), labelled), (task.tests, unlabelled)):
        for split in splits:
            write(tmp_path / task.directory / f"{split}.tsv", rows)
            (first, *_) = glue.read_split(task, tmp_path, split)
            if rows is labelled:
                assert (first.texts, first.label) == (texts, label)
            else:
                assert (first.key, len(first.texts), first.label) == ("0", len(texts), None)


@pytest.mark.parametrize("file", ["diagnostic.tsv", "diagnostic/diagnostic.tsv"])
def test_the_diagnostic_set_may_lie_beside_the_tasks(tmp_path, file):
    write(tmp_path / file, [["index", "sentence1", "sentence2"], ["7", "a", "b"]])
    assert glue.read_split(glue.TASKS["mnli"], tmp_path, "diagnostic")[0].key == "7"


@pytest.mark.parametrize(("name", "split", "predictions", "file", "written"), [
    ("rte", "test", glue.ENTAILMENT, "RTE.tsv", ["entailment", "not_entailment"]),
    ("cola", "test", ["acceptable", "unacceptable"], "CoLA.tsv", ["1", "0"]),
    ("wnli", "test", ["entailment"], "WNLI.tsv", ["1"]),
    ("stsb", "test", [5.2, 1.23456], "STS-B.tsv", ["5.000", "1.235"]),
    ("mnli", "test_matched", ["neutral"], "MNLI-m.tsv", ["neutral"]),
    ("mnli", "test_mismatched", ["neutral"], "MNLI-mm.tsv", ["neutral"]),
    ("mnli", "diagnostic", ["neutral"], "AX.tsv", ["neutral"])])
def test_predictions_are_written_as_the_server_reads_them(name, split, predictions, file, written):
    records = [{"key": str(key), "prediction": value} for key, value in enumerate(predictions)]
    assert glue.submission(glue.TASKS[name], split, records) == (
        file, "index\tprediction\n" + "".join(map("{}\t{}\n".format, range(9), written)))


@pytest.mark.parametrize(("name", "row", "message"), [
    ("sst2", ["fine", "2"], r"dev\.tsv: 2: .*'2'.*: 0, 1\."),
    ("stsb", [*"0nfy1ssab", "nan"], "'score' .*'nan'")])
def test_bad_rows_are_named(tmp_path, name, row, message):
    task = glue.TASKS[name]
    write(tmp_path / task.directory / "dev.tsv", [FILES[name][0][0], row])
    with refused(message):
        glue.read_split(task, tmp_path, "dev")
    with refused(r"train\.tsv does not exist; --data_dir"):
        glue.read_split(task, tmp_path, "train")
    assert glue.read_split(task, tmp_path, "test") == []


def test_a_few_broken_lines_of_a_published_file_are_skipped_and_counted(tmp_path):
    task, notes = glue.TASKS["qqp"], []
    header, row = FILES["qqp"][0]
    path = tmp_path / "QQP" / "train.tsv"
    write(path, [header, *[row] * 7, row[:4], ['"', "Is it?", "0"], *[row] * 5])
    assert len(glue.read_split(task, tmp_path, "train", notes)) == 12
    assert "2 of 15 lines skipped" in notes[0] and "line 9" in notes[0]
    for rows, broken in ((20, 5), (2000, 21)):
        write(path, [header, *[row] * (rows - 1 - broken), *[row[:4]] * broken])
        with refused(f"{broken} of {rows:,} lines"):
            glue.read_split(task, tmp_path, "train")
