"""Questions of SQuAD's and MRQA's files: the places of answers, and what is refused where."""

import gzip
import json

import pytest

from electra_tf.tasks import question_files, registry
from electra_tf.tasks.files import Files
from electra_tf.tasks.question_files import read_questions
from tests.support.refusals import refused

GAME = "Denver beat Carolina 24–10 in 2016."
GOOD = {"id": "q1", "question": "Who won?", "answers": [
    {"text": "Denver", "answer_start": 0}, {"text": "Denver beat", "answer_start": 0}]}
NONE = {"id": "q2", "question": "Who lost in 1999?", "is_impossible": True, "answers": [],
        "plausible_answers": [{"text": "Carolina", "answer_start": 12}]}


def asked_of(*questions):
    return {"version": "v2.0", "data": [
        {"title": "A game", "paragraphs": [{"context": GAME, "qas": list(questions)}]}]}


def squad(tmp_path, content, **options):
    path = tmp_path / "dev.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_questions(path, **options)


def test_questions_of_squad_come_with_all_their_answers(tmp_path):
    good, none = squad(tmp_path, asked_of(GOOD, NONE))
    assert (good.key, good.question, good.context) == ("q1", "Who won?", GAME)
    assert (good.span, good.gold) == ((0, 6), ("Denver", "Denver beat"))
    assert (none.span, none.gold, none.is_impossible) == (None, (), True)
    (example,) = squad(tmp_path, asked_of({"id": "a", "question": "Who?"}), labelled=False)
    assert (example.span, example.gold, example.is_impossible) == (None, (), False)


@pytest.mark.parametrize(("starts", "span"), [
    ([29], None), ([-4], None), ([1000], None), ([29, 30], (30, 34)), (["30"], (30, 34)),
    ([30.0], (30, 34)), (["30.0"], (30, 34))])
def test_an_answer_of_squad_is_scored_and_learned_unless_it_is_misplaced(tmp_path, starts, span):
    (example,) = squad(tmp_path, asked_of({"id": "q", "question": "When?", "answers": [
        {"text": "2016", "answer_start": start} for start in starts]}))
    assert (example.span, set(example.gold)) == (span, {"2016"})


@pytest.mark.parametrize(("content", "message"), [
    ("{", "not JSON"), ({"data": []}, "no questions"),
    ("{}", r"dev\.json: 'data' is missing; .* or rows with question"),
    ({"data": [{"paragraphs": [{"qas": []}]}]}, r"data\[0\]\.paragraphs\[0\]: 'context'"),
    ([1], r"data\[0\]: "),
    (asked_of(GOOD | {"answers": {"text": ["a", "b"], "answer_start": [0]}}), r"answers\[1\]: "),
    (asked_of(GOOD | {"is_impossible": True}), r"qas\[0\]: is_impossible is true"),
    (asked_of({"id": "a", "question": "b"}), r"qas\[0\]: no answers"),
    (asked_of(GOOD, GOOD), r"qas\[1\]: .*'q1'"),
    *((asked_of(GOOD | {"answers": [{"text": "2016", "answer_start": wrong}]}),
       "'answer_start' must be a whole number") for wrong in (30.5, True, " 30"))])
def test_another_format_than_squads_is_named_with_the_place(tmp_path, content, message):
    with refused(message):
        squad(tmp_path, content)


@pytest.mark.parametrize(("start", "span", "is_noted"), [
    (8, (6, 9), True), (6, (6, 9), False), (7, None, False), (9, None, False), (80, None, False),
    (-1, None, False)])
def test_offsets_of_javascript_count_units_of_utf_16(tmp_path, start, span, is_noted):
    context, notes = "Go 🏆🚀 Ada won", []
    assert context.encode("utf-16-le").index("Ada".encode("utf-16-le")) == 2 * 8
    (example,) = squad(tmp_path, {"data": [{"paragraphs": [{"context": context, "qas": [
        GOOD | {"answers": [{"text": "Ada", "answer_start": start}]}]}]}]}, notes=notes)
    assert (example.span, example.gold, bool(notes)) == (span, ("Ada",), is_noted)


@pytest.mark.parametrize(("question", "is_noted"), [
    ({"answers": [{"text": "", "answer_start": 0}], "is_impossible": True}, False),
    ({"answers": [{"text": "", "answer_start": -1}]}, True), ({"answers": []}, True),
    ({"answers": [], "is_impossible": False}, True), ({"is_impossible": True}, False),
    ({"answers": {"text": [], "answer_start": []}}, True)])
def test_questions_with_empty_answers_have_none(tmp_path, question, is_noted):
    notes = []
    (example,) = squad(tmp_path, asked_of({"id": "a", "question": "Who?"} | question), notes=notes)
    assert (example.is_impossible, example.span, example.gold) == (True, None, ())
    assert bool(notes) is is_noted


ROWS = [{"context": GAME, "question": asked, "answers": {"text": [text], "answer_start": [start]}}
        for asked, text, start in (("Who won?", "Denver", 0), ("When?", "2016", 30))]
PARAGRAPHS = [{"context": GAME, "qas": [{"question": row["question"], "answers": [
    {"text": row["answers"]["text"][0], "answer_start": row["answers"]["answer_start"][0]}]}]}
    for row in ROWS]


@pytest.mark.parametrize("rows", [ROWS, PARAGRAPHS])
@pytest.mark.parametrize(("name", "form"), [
    ("a.json", json.dumps), ("a.json", lambda rows: json.dumps(rows, indent=1)),
    ("a.json", lambda rows: json.dumps({"data": rows})),
    *((name, lambda rows: "\r\n\n".join(map(json.dumps, rows)))
      for name in ("a.json", "a.jsonl", "a.jsonl.gz"))])
def test_rows_and_paragraphs_are_read_as_articles(tmp_path, rows, name, form):
    content = f"\ufeff{form(rows)}".encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    examples = read_questions(tmp_path / name)
    assert [(one.key, one.question, GAME[slice(*one.span)]) for one in examples] == [
        ("1", "Who won?", "Denver"), ("2", "When?", "2016")]  # Without ids they are numbered.


CONTEXT = "[TLE] Ünal 🏆 [PAR] Ada  Ünal won in 2016 ."
HEADER = {"header": {"dataset": "SearchQA", "split": "train"}}


def question(qid="q1", *detected, answers=("Ada Unal", "ada ünal")):
    """A question of MRQA; detected answers are a text with its spans, "Ada Ünal" by default."""
    detected = detected or (("ada ünal", [19, 27]),)
    return {"qid": qid, "id": "another", "question": "Who won?", "question_tokens": [["Who", 0]],
            "answers": list(answers), "detected_answers": [
                {"text": text, "char_spans": spans, "token_spans": [[0, 0]]}
                for text, *spans in detected]}


def line(*questions, context=CONTEXT):
    return {"id": "", "context": context, "context_tokens": [["[TLE]", 0]], "qas": list(questions)}


def write(path, *lines, header=HEADER):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(record) + "\n" for record in (header, *lines)).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_the_end_of_an_answer_of_mrqa_lies_inside_of_it(tmp_path, name):
    assert CONTEXT[19:28] == "Ada  Ünal"  # MRQA's [19, 27].
    path = write(tmp_path / name, line(question()))
    (example,) = read_questions(path)
    assert (example.key, example.question, example.context) == ("q1", "Who won?", CONTEXT)
    assert (example.span, example.gold) == ((19, 28), ("Ada Unal", "ada ünal"))
    assert not example.is_impossible
    (example,) = read_questions(path, labelled=False)
    assert (example.span, example.gold, example.is_impossible) == (None, (), False)


@pytest.mark.parametrize(("detected", "span"), [
    ([("Ünal", [24, 27], [6, 9]), ("2016", [36, 39])], (24, 28)),
    ([("Ünal", [23, 26], [24, 27])], (24, 28)), ([("x", [40, 43])], None),
    ([(".", [-1, 41])], None), ([("x", [5, 4])], None)])
def test_the_first_right_place_of_a_detected_answer_is_learned(tmp_path, detected, span):
    (example,) = read_questions(write(tmp_path / "a.jsonl", line(), line(question("a", *detected))))
    assert (example.span, example.gold) == (span, ("Ada Unal", "ada ünal"))


@pytest.mark.parametrize(("lines", "message"), [
    ([[]], ":2: must be an object"), ([{"qas": []}], ":2: 'context'"), ([line()], "no questions"),
    ([line(), line({"question": "x"})], r":3: qas\[0\]: 'qid'"),
    ([line(question() | {"answers": []})], r":2: qas\[0\]: no answers"),
    ([line(question("a")), line(question("b"), question("a"))], r":3: qas\[1\]: .*'a'"),
    ([line(context="a\ud800")], "half of a character follows .*a'")])
def test_what_cannot_be_so_in_mrqa_is_named_with_its_line(tmp_path, lines, message):
    with refused(rf"^{tmp_path}/a\.jsonl.*{message}"):
        read_questions(write(tmp_path / "a.jsonl", *lines))


def test_damaged_endless_and_other_files_are_refused(tmp_path, monkeypatch):
    with refused(":1: 'header' is missing"):
        read_questions(write(tmp_path / "a.jsonl", line(question()), header=line(question())))
    (tmp_path / "a.jsonl").write_text('{"text": "a"}')
    with refused("'context' is missing.* MRQA"):
        read_questions(tmp_path / "a.jsonl")
    path = write(tmp_path / "a.jsonl.gz", line(question("a")), line(question("b")))
    packed = path.read_bytes()
    path.write_bytes(packed[:-9])
    with refused("damaged: "):
        read_questions(path)
    path.write_bytes(packed)
    monkeypatch.setattr(question_files, "MAX_MRQA_BYTES", len(gzip.decompress(packed)) - 1)
    with refused(r":3: more than \d+ bytes"):
        read_questions(path)


@pytest.mark.parametrize(("name", "train", "dev"), [
    ("searchqa", "train/SearchQA.jsonl.gz", "dev/SearchQA.jsonl.gz"),
    ("triviaqa", "train/TriviaQA-web.jsonl.gz", "dev/TriviaQA.jsonl.gz"),
    ("newsqa", "newsqa/train.jsonl", "newsqa/dev.jsonl.gz"),
    ("naturalqs", "train/NaturalQuestionsShort.jsonl", "naturalqs/dev.jsonl")])
def test_sets_are_found_where_mrqa_or_google_has_them(tmp_path, name, train, dev):
    write(tmp_path / train, line(question("a")), line(question("b", ("x", [0, 0]))))
    write(tmp_path / dev, line(question("c", ("x", [0, 0]))))
    task = registry.load(name, tmp_path, Files())
    assert (task.spec.name, task.spec.kind, task.spec.metrics) == (
        name, "question_answering", ("f1", "exact_match"))
    assert [example.key for example in task.train] == ["a"]  # Of "b" there is nothing to learn.
    assert [example.key for example in task.dev["dev"]] == ["c"]
    note = task.notes[0]
    assert note.startswith("train: 1 questions such as 'b' have no answer")
    (tmp_path / train).unlink()  # Scoring needs no training file.
    assert registry.load_dev(task.spec, tmp_path, Files()).dev["dev"] == task.dev["dev"]
