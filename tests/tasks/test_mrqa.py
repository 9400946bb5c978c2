"""MRQA's lines: the places of answers, what counts as right, and what is refused where."""

import gzip
import json

import pytest

from electra_tf.platform.errors import UserError
from electra_tf.tasks import mrqa, registry
from electra_tf.tasks.examples import Answer
from electra_tf.tasks.files import Files
from electra_tf.tasks.mrqa import read_mrqa
from electra_tf.tasks.task import TaskSpec

CONTEXT = "[TLE] Ünal 🏆 [PAR] Ada  Ünal won in 2016 ."
HEADER = {"header": {"dataset": "SearchQA", "split": "train"}}


def asked(qid="q1", *detected, question="Who won?", answers=("Ada Unal", "ada ünal")):
    """A question; detected answers are a text with its spans, "Ada Ünal" if none are given."""
    detected = detected or (("ada ünal", [19, 27]),)
    return {"qid": qid, "id": "another", "question": question, "question_tokens": [["Who", 0]],
            "answers": list(answers), "detected_answers": [
                {"text": text, "char_spans": spans, "token_spans": [[0, 0]]}
                for text, *spans in detected]}


def line(*questions, context=CONTEXT):
    return {"id": "", "context": context, "context_tokens": [["[TLE]", 0]], "qas": list(questions)}


def content(*lines, header=HEADER):
    return "".join(json.dumps(one) + "\n" for one in (header, *lines)).encode()


def write(path, *lines, header=HEADER):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content(*lines, header=header)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.jsonl.gz"


def test_the_end_of_an_answer_lies_inside_of_it(tmp_path):
    assert CONTEXT[19:28] == "Ada  Ünal"  # MRQA's [19, 27].
    for name in ("a.jsonl", "a.jsonl.gz"):
        (one,) = read_mrqa(write(tmp_path / name, line(asked()))).examples
        assert (one.key, one.question, one.context) == ("q1", "Who won?", CONTEXT)
        assert one.answers == (Answer(text="Ada  Ünal", start=19),)
        assert (one.gold, one.is_impossible) == (("Ada Unal", "ada ünal"), False)


def test_all_questions_are_read_and_the_first_place_of_the_first_answer_is_learned(path):
    several = asked("b", ("Ünal", [24, 27], [6, 9]), ("2016", [36, 39]))
    write(path, line(asked("a"), several), line(), line(asked("c", ("x", [0, 0])), context="x"))
    found = read_mrqa(path)
    assert [(one.key, one.answers) for one in found.examples] == [
        ("a", (Answer(text="Ada  Ünal", start=19),)), ("b", (Answer(text="Ünal", start=24),)),
        ("c", (Answer(text="x", start=0),))]
    assert found.misplaced == ()


def test_misplaced_answers_are_left_out(path):
    wrong = ("Ünal", [23, 26], [24, 27])
    write(path, line(), line(asked("a", wrong), asked("b", ("Ünal", [24, 29]))))
    found = read_mrqa(path)
    assert found.misplaced == ("a", "b")
    assert [one.answers for one in found.examples] == [(Answer(text="Ünal", start=24),), ()]
    assert found.examples[1].gold == ("Ada Unal", "ada ünal")  # It can be scored.


def test_questions_to_predict_need_no_answers(path):
    write(path, line({"qid": "a", "question": "Who?"}))
    (one,) = read_mrqa(path, labelled=False).examples
    assert (one.answers, one.gold, one.is_impossible) == ((), (), False)


def test_what_cannot_be_so_is_named_with_its_line(path):
    for lines, message in (
            ([[]], ":2: must be an object"), ([{"qas": []}], ":2: 'context' is missing"),
            ([line()], "holds no questions"),
            ([line(), line({"question": "x"})], r":3: qas\[0\]: 'qid' is missing"),
            ([line(asked() | {"qid": 7})], r":2: qas\[0\]: 'qid' must be a string"),
            ([line({"qid": "a", "question": "x"})], r":2: qas\[0\]: no answers, or none detected"),
            ([line(asked() | {"answers": []})], r":2: qas\[0\]: no answers"),
            ([line(asked("a", ("Ünal",)))], r":2: qas\[0\]: no answers"),
            ([line(asked("a"), asked("b") | {"is_impossible": True})], r"qas\[1\]: is_impossible"),
            ([line(asked("a")), line(asked("b"), asked("a"))], r":3: qas\[1\]: .* the id 'a'"),
            ([line(asked("a", ("x", [40, 43])))], r"detected_answers\[0\]: \[40, 43\] isn't"),
            ([line(asked("a", ("x", [-1, 3])))], r"\[-1, 3\] isn't a first and a last"),
            ([line(asked("a", ("x", [5, 4])))], r"\[5, 4\] isn't"),
            ([line(asked("a", ("x", [5])))], r":2: qas\[0\]\.detected_answers\[0\]\.char_spans"),
            ([line(asked("a", ("x", [5, 6.5])))], "must be a whole number"),
            ([line(context="a\ud800")], "surrogates not allowed")):
        with pytest.raises(UserError, match=message) as error:
            read_mrqa(write(path, *lines))
        assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)
    for header, message in (
            (line(asked()), r":1: 'header' is missing; the first line of MRQA's files is"),
            ({"header": {"dataset": 3}}, r":1: header: 'dataset' must be a string")):
        with pytest.raises(UserError, match=message):
            read_mrqa(write(path, line(asked()), header=header))


GOOD = content(line(asked("a")), line(asked("b")))


def test_damaged_files_are_one_line(tmp_path):
    packed = gzip.compress(GOOD, mtime=0)
    for name, data, message in (
            ("a.jsonl.gz", GOOD, "not gzip, or damaged: Not a gzipped file"),
            ("a.jsonl.gz", packed[:-9], "damaged: Compressed file ended before"),
            ("a.jsonl.gz", packed[:-8] + b"\0" * 8, "damaged: CRC check failed"),
            ("a.jsonl.gz", packed[:20] + b"\xff" * 40, "not gzip, or damaged"),
            ("a.jsonl", b"", ":1: not JSON"), ("a.jsonl", GOOD + b"\n", ":4: not JSON"),
            ("a.jsonl", GOOD + b"\xff{}\n", ":4: not JSON in UTF-8"),
            ("a.jsonl", packed, ":1: not JSON in UTF-8")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UserError, match=message) as error:
            read_mrqa(tmp_path / name)
        assert "\n" not in str(error.value)
    (tmp_path / "b.jsonl").mkdir()
    for name in ("none.jsonl.gz", "b.jsonl", "a\0.jsonl"):
        with pytest.raises(UserError, match="cannot read"):
            read_mrqa(tmp_path / name)


def test_files_that_grow_when_unpacked_are_refused_early(tmp_path, monkeypatch):
    bomb = tmp_path / "bomb.jsonl.gz"
    bomb.write_bytes(gzip.compress(content() + b" " * (2 << 20), mtime=0))
    assert bomb.stat().st_size < 1 << 12
    monkeypatch.setattr(mrqa, "LONGEST_LINE", 1 << 20)
    with pytest.raises(UserError, match=r"bomb.jsonl.gz:2: a line of more than 1 MiB"):
        read_mrqa(bomb)
    monkeypatch.setattr(mrqa, "MOST_BYTES", len(GOOD) - 1)
    with pytest.raises(UserError, match=r"a.jsonl.gz:3: more than \d KiB unpacked"):
        read_mrqa(write(tmp_path / "a.jsonl.gz", line(asked("a")), line(asked("b"))))


@pytest.mark.parametrize(("name", "dataset", "train", "dev"), [
    ("searchqa", "SearchQA", "train/SearchQA.jsonl.gz", "dev/SearchQA.jsonl.gz"),
    ("triviaqa", "TriviaQA-web", "train/TriviaQA-web.jsonl.gz", "dev/TriviaQA.jsonl.gz"),
    ("newsqa", "NewsQA", "newsqa/train.jsonl", "newsqa/dev.jsonl.gz"),
    ("naturalqs", "NaturalQuestions", "train/NaturalQuestionsShort.jsonl", "naturalqs/dev.jsonl")])
def test_sets_are_found_where_mrqa_or_google_has_them(tmp_path, name, dataset, train, dev):
    header = {"header": {"dataset": dataset}}
    write(tmp_path / train, line(asked("a")), line(asked("b", ("x", [0, 0]))), header=header)
    write(tmp_path / dev, line(asked("c", ("x", [0, 0]))), header=header)
    task = registry.load(name, tmp_path, Files())
    assert (task.spec.name, task.spec.kind, task.spec.metrics) == (
        name, "question_answering", ("f1", "exact_match"))
    assert [one.key for one in task.train] == ["a"]  # Of "b" there is nothing to learn.
    assert [one.key for one in task.dev["dev"]] == ["c"]
    assert [note.split(";")[0] for note in task.notes] == [
        f"{split}: 1 question has an answer that doesn't stand at its offset, '{key}' among them"
        for split, key in (("train", "b"), ("dev", "c"))]
    (tmp_path / train).unlink()  # Scoring needs no training file.
    assert registry.load_dev(task.spec, tmp_path, Files())["dev"] == task.dev["dev"]


def test_a_set_in_another_s_place_is_refused_unless_it_is_named(tmp_path):
    other = write(tmp_path / "dev" / "SearchQA.jsonl.gz", line(asked("a")),
                  header={"header": {"dataset": "NewsQA"}})
    write(tmp_path / "train" / "SearchQA.jsonl.gz", line(asked("b")))
    with pytest.raises(UserError, match=(
            r"dev/SearchQA.jsonl.gz:1: the header names the set 'NewsQA', but --task=searchqa "
            "reads SearchQA")):
        registry.load("searchqa", tmp_path, Files())
    task = registry.load("searchqa", tmp_path, Files(dev=other))  # Other domains are its point.
    assert [one.key for one in task.dev["dev"]] == ["a"]


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(UserError, match=r"no .*train/SearchQA.jsonl.gz; --data_dir must hold MRQA"):
        registry.load("searchqa", tmp_path, Files())
    with pytest.raises(UserError, match="--data_dir is needed for --task=newsqa"):
        registry.load("newsqa", None, Files())
    with pytest.raises(UserError, match="--data_source=tfds has"):
        registry.load("newsqa", None, Files(), from_tfds=True)


def test_own_questions_may_have_this_form(tmp_path):
    path = write(tmp_path / "own.jsonl", line(asked("a")), header={"header": {"dataset": "ours"}})
    task = registry.load("question_answering", None, Files(train=path, dev=path, test=path))
    assert task.train[0].answers and not task.test["test"][0].gold
    spec = TaskSpec(name="squad", kind="question_answering", metrics=("f1",))
    (one,) = registry.read_file(spec, path, labelled=True)
    assert one.gold == ("Ada Unal", "ada ünal")
