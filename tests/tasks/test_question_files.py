"""Questions of SQuAD's and MRQA's files: the places of answers, and what is refused where."""

import gzip
import json

import pytest

from electra_tf.platform.errors import UserError
from electra_tf.tasks import question_files, registry
from electra_tf.tasks.examples import Answer
from electra_tf.tasks.files import Files
from electra_tf.tasks.question_files import read_questions

GAME = "Denver beat Carolina 24–10 in 2016."
GOOD = {"id": "q1", "question": "Who won?", "answers": [
    {"text": "Denver", "answer_start": 0}, {"text": "Denver beat", "answer_start": 0}]}
NONE = {"id": "q2", "question": "Who lost in 1999?", "is_impossible": True, "answers": [],
        "plausible_answers": [{"text": "Carolina", "answer_start": 12}]}
MISPLACED = {"id": "q3", "question": "When?", "answers": [{"text": "2016", "answer_start": 29}]}


def squad(tmp_path, *questions, content=None, **options):
    path = tmp_path / "dev.json"
    content = content or {"version": "v2.0", "data": [
        {"title": "A game", "paragraphs": [{"context": GAME, "qas": list(questions)}]}]}
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_questions(path, **options)


def test_questions_of_squad_come_with_all_their_answers(tmp_path):
    good, none = squad(tmp_path, GOOD, NONE).examples
    assert good.answers == (Answer(text="Denver", start=0), Answer(text="Denver beat", start=0))
    assert (good.key, good.question, good.context) == ("q1", "Who won?", GAME)
    assert (none.answers, none.is_impossible) == ((), True)
    (one,) = squad(tmp_path, {"id": "a", "question": "Who?"}, labelled=False).examples
    assert (one.answers, one.is_impossible) == ((), False)


def test_misplaced_answers_of_squad_are_counted_and_left_out(tmp_path):
    half = MISPLACED | {"id": "q4", "answers": [
        *MISPLACED["answers"], {"text": "2016", "answer_start": GAME.index("2016")}]}
    result = squad(tmp_path, GOOD, MISPLACED, half)
    assert result.misplaced == ("q3", "q4")
    assert [example.key for example in result.examples] == ["q1", "q4"]
    assert result.examples[1].answers == (Answer(text="2016", start=30),)
    for start in (-4, 1000):
        wrong = MISPLACED | {"answers": [{"text": "2016", "answer_start": start}]}
        assert squad(tmp_path, GOOD, wrong).misplaced == ("q3",)


def asked_of(*questions):
    return {"data": [{"paragraphs": [{"context": GAME, "qas": list(questions)}]}]}


@pytest.mark.parametrize(("content", "message"), [
    ("{", "not JSON"), ("{}", r"dev\.json: 'data' is missing"),
    ({"data": []}, "holds no questions"),
    ({"data": [{"paragraphs": [{"qas": []}]}]},
     r"data\[0\]\.paragraphs\[0\]: 'context' is missing"),
    (asked_of({"question": "y"}), r"qas\[0\]: 'id' is missing"),
    (asked_of(GOOD | {"answers": [{"text": "x"}]}),
     r"qas\[0\]\.answers\[0\]: 'answer_start' is missing"),
    (asked_of(GOOD | {"is_impossible": "no"}), r"qas\[0\]: 'is_impossible' must be true or false"),
    (asked_of(GOOD | {"is_impossible": True}), r"qas\[0\]: is_impossible is true, and yet"),
    (asked_of({"id": "a", "question": "b"}), r"qas\[0\]: no answers"),
    (asked_of(GOOD, GOOD), r"qas\[1\]: a second question has the id 'q1'")])
def test_another_format_than_squads_is_named_with_the_place(tmp_path, content, message):
    with pytest.raises(UserError, match=message):
        squad(tmp_path, content=content)


CONTEXT = "[TLE] Ünal 🏆 [PAR] Ada  Ünal won in 2016 ."
HEADER = {"header": {"dataset": "SearchQA", "split": "train"}}


def asked(qid="q1", *detected, answers=("Ada Unal", "ada ünal")):
    """A question of MRQA; detected answers are a text with its spans, "Ada Ünal" by default."""
    detected = detected or (("ada ünal", [19, 27]),)
    return {"qid": qid, "id": "another", "question": "Who won?", "question_tokens": [["Who", 0]],
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


def test_the_end_of_an_answer_of_mrqa_lies_inside_of_it(tmp_path):
    assert CONTEXT[19:28] == "Ada  Ünal"  # MRQA's [19, 27].
    for name in ("a.jsonl", "a.jsonl.gz"):
        (one,) = read_questions(write(tmp_path / name, line(asked()))).examples
        assert (one.key, one.question, one.context) == ("q1", "Who won?", CONTEXT)
        assert one.answers == (Answer(text="Ada  Ünal", start=19),)
        assert (one.gold, one.is_impossible) == (("Ada Unal", "ada ünal"), False)


def test_the_first_right_place_of_the_first_answer_is_learned(path):
    several = asked("b", ("Ünal", [24, 27], [6, 9]), ("2016", [36, 39]))
    write(path, line(asked("a"), several), line(), line(asked("c", ("x", [0, 0])), context="x"))
    found = read_questions(path)
    assert [(one.key, one.answers) for one in found.examples] == [
        ("a", (Answer(text="Ada  Ünal", start=19),)), ("b", (Answer(text="Ünal", start=24),)),
        ("c", (Answer(text="x", start=0),))]
    assert found.misplaced == ()
    wrong = ("Ünal", [23, 26], [24, 27])
    write(path, line(), line(asked("a", wrong), asked("b", ("Ünal", [24, 29]))))
    found = read_questions(path)
    assert found.misplaced == ("a", "b")
    assert [one.answers for one in found.examples] == [(Answer(text="Ünal", start=24),), ()]
    assert found.examples[1].gold == ("Ada Unal", "ada ünal")  # It can be scored.
    (one,) = read_questions(write(path, line({"qid": "a", "question": "Who?"})),
                            labelled=False).examples
    assert (one.answers, one.gold, one.is_impossible) == ((), (), False)


def test_what_cannot_be_so_in_mrqa_is_named_with_its_line(path):
    for lines, message in (
            ([[]], ":2: must be an object"), ([{"qas": []}], ":2: 'context' is missing"),
            ([line()], "holds no questions"),
            ([line(), line({"question": "x"})], r":3: qas\[0\]: 'qid' is missing"),
            ([line(asked() | {"qid": 7})], r":2: qas\[0\]: 'qid' must be a string"),
            ([line({"qid": "a", "question": "x"})], r":2: qas\[0\]: no answers, or none detected"),
            ([line(asked() | {"answers": []})], r":2: qas\[0\]: no answers"),
            ([line(asked("a", ("Ünal",)))], r":2: qas\[0\]: no answers"),
            ([line(asked("a")), line(asked("b"), asked("a"))], r":3: qas\[1\]: .* the id 'a'"),
            ([line(asked("a", ("x", [40, 43])))], r"detected_answers\[0\]: \[40, 43\] isn't"),
            ([line(asked("a", ("x", [-1, 3])))], r"\[-1, 3\] isn't a first and a last"),
            ([line(asked("a", ("x", [5, 4])))], r"\[5, 4\] isn't"),
            ([line(asked("a", ("x", [5, 6.5])))], "must be a whole number"),
            ([line(context="a\ud800")], "surrogates not allowed")):
        with pytest.raises(UserError, match=message) as error:
            read_questions(write(path, *lines))
        assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)
    with pytest.raises(UserError, match=":1: 'header' is missing; the first line of MRQA's files"):
        read_questions(write(path, line(asked()), header=line(asked())))


LINES = content(line(asked("a")), line(asked("b")))


def test_damaged_files_are_one_line(tmp_path):
    packed = gzip.compress(LINES, mtime=0)
    for name, data, message in (
            ("a.jsonl.gz", LINES, "not gzip, or damaged: Not a gzipped file"),
            ("a.jsonl.gz", packed[:-9], "damaged: Compressed file ended before"),
            ("a.jsonl.gz", packed[:20] + b"\xff" * 40, "not gzip, or damaged"),
            ("a.jsonl", b"", ":1: not JSON"), ("a.jsonl", LINES + b"\n", ":4: not JSON"),
            ("a.jsonl", LINES + b"\xff{}\n", ":4: not JSON in UTF-8")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UserError, match=message) as error:
            read_questions(tmp_path / name)
        assert "\n" not in str(error.value)
    (tmp_path / "b.jsonl").mkdir()
    for name in ("none.jsonl.gz", "b.jsonl"):
        with pytest.raises(UserError, match="cannot read"):
            read_questions(tmp_path / name)


def test_files_that_grow_when_unpacked_are_refused_early(tmp_path, monkeypatch):
    bomb = tmp_path / "bomb.jsonl.gz"
    bomb.write_bytes(gzip.compress(content() + b" " * (2 << 20), mtime=0))
    monkeypatch.setattr(question_files, "LONGEST_LINE", 1 << 20)
    with pytest.raises(UserError, match=r"bomb.jsonl.gz:2: a line of more than [\d,]+ bytes"):
        read_questions(bomb)
    monkeypatch.setattr(question_files, "MOST_MRQA_BYTES", len(LINES) - 1)
    with pytest.raises(UserError, match=r"a.jsonl.gz:3: more than [\d,]+ bytes unpacked"):
        read_questions(write(tmp_path / "a.jsonl.gz", line(asked("a")), line(asked("b"))))


@pytest.mark.parametrize(("name", "train", "dev"), [
    ("searchqa", "train/SearchQA.jsonl.gz", "dev/SearchQA.jsonl.gz"),
    ("triviaqa", "train/TriviaQA-web.jsonl.gz", "dev/TriviaQA.jsonl.gz"),
    ("newsqa", "newsqa/train.jsonl", "newsqa/dev.jsonl.gz"),
    ("naturalqs", "train/NaturalQuestionsShort.jsonl", "naturalqs/dev.jsonl")])
def test_sets_are_found_where_mrqa_or_google_has_them(tmp_path, name, train, dev):
    write(tmp_path / train, line(asked("a")), line(asked("b", ("x", [0, 0]))))
    write(tmp_path / dev, line(asked("c", ("x", [0, 0]))))
    task = registry.load(name, tmp_path, Files())
    assert (task.spec.name, task.spec.kind, task.spec.metrics) == (
        name, "question_answering", ("f1", "exact_match"))
    assert [one.key for one in task.train] == ["a"]  # Of "b" there is nothing to learn.
    assert [one.key for one in task.dev["dev"]] == ["c"]
    for note, key in zip(task.notes, "bc", strict=True):
        assert note.endswith(f"left out, in 1 questions such as '{key}'")
    (tmp_path / train).unlink()  # Scoring needs no training file.
    assert registry.load_dev(task.spec, tmp_path, Files())["dev"] == task.dev["dev"]
