"""Texts that users hand over: tables, sentences, questions, vocabularies, settings, corpora."""

import bz2
import csv
import functools
import gzip
import io
import json
import lzma
import re

import hypothesis
import pytest
import yaml
from hypothesis import strategies as st

from data_prep import documents
from data_prep.sources.registry import open_source
from electra_tf.config.overrides import flatten, override, parse_assignments, read_yaml
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.tasks import files, tables
from electra_tf.tasks.column_files import read_columns
from electra_tf.tasks.question_files import read_questions
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import mutations
from tests.support.attempts import REFUSED, attempt, cases
from tests.support.mutations import HOSTILE_TEXT, bytes_changed, json_changed

CONTEXT = "Denver beat Carolina 24–10 in 2016."
QUESTIONS = [
    {"id": "a", "question": "Who won?", "answers": [{"text": "Denver", "answer_start": 0}],
     "is_impossible": False},
    {"id": "b", "question": "Who lost?", "answers": [], "is_impossible": True}]
SQUAD = {"version": "v2.0", "data": [
    {"title": "A game", "paragraphs": [{"context": CONTEXT, "qas": QUESTIONS}]}]}
MRQA = [
    {"header": {"dataset": "SearchQA", "split": "train"}},
    {"context": CONTEXT, "context_tokens": [["Denver", 0]], "qas": [
        {"qid": "a", "question": "Who won?", "answers": ["Denver", "the Broncos"],
         "detected_answers": [{"text": "denver", "char_spans": [[0, 5]], "token_spans": [[0, 0]]}]},
        {"qid": "b", "question": "When?", "answers": ["2016"], "detected_answers": [
            {"text": "2016", "char_spans": [[29, 32], [30, 33]], "token_spans": [[6, 6]]}]}]},
    {"context": "", "qas": []}]
CSV = 'text,label\r\n"two\r\nlines, a comma",yes\r\nand "" one,no\r\n'
CONLL = "EU NNP B-ORG\nrejects VBZ O\n\nPeter NNP B-PER\n. . O\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("texts")


def lines_of(content):
    text = content.removeprefix(b"\xef\xbb\xbf").decode()
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def require_cells(result, content):
    text = "".join(f"{line}\n" for line in lines_of(content))
    header, *rows = filter(None, csv.reader(io.StringIO(text, newline="")))
    if len(header) > 1:  # Without a comma, semicolons or tabs separate the columns.
        assert [list(row.values.values()) for row in result] == rows


def require_object(result, content):
    if len(result) == 1:
        written = json.loads(content.decode("utf-8-sig"))
        assert (result[0].texts, result[0].label) == ((written["text"],), str(written["label"]))


def require_words(result, content):
    lines = [re.split("[ \t]+", line.strip(" \t")) for line in lines_of(content)]
    first = [cells[0] for cells in lines if cells[0] not in ("", "-DOCSTART-")]
    if not set("#\t") & set(content.decode()):  # Comments, and tabs around words with spaces.
        assert [word for sentence in result for word in sentence.words] == first
    assert all(len(example.tags or example.words) == len(example.words) for example in result)


def require_questions(labelled, result, content):
    expected = [(paragraph["context"], question)
            for article in json.loads(content.decode("utf-8-sig"))["data"]
            for paragraph in article["paragraphs"] for question in paragraph["qas"]]
    for number, (example, (context, question)) in enumerate(
            zip(result, expected, strict=True), start=1):
        assert (example.key, example.question, example.context) == (
            question.get("id") or str(number), question["question"], context)
        answers = [answer["text"] for answer in question.get("answers") or () if answer["text"]]
        assert example.is_impossible == (labelled and not answers)
        if example.span:
            assert context[slice(*example.span)] in example.gold
        assert bool(example.gold) == (labelled and not example.is_impossible)


def require_spans(labelled, result, content):
    _, *contexts = map(json.loads, lines_of(
        gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content))
    expected = [(paragraph["context"], question)
                for paragraph in contexts for question in paragraph["qas"]]
    for example, (context, question) in zip(result, expected, strict=True):
        assert (example.key, example.question, example.context) == (
            question["qid"], question["question"], context)
        assert example.gold == (tuple(question["answers"]) if labelled else ())
        assert example.span is None or 0 <= example.span[0] <= example.span[1]


def require_tokens(result, content):
    assert list(result.tokens) == [line.strip(" \t\r") for line in lines_of(content)]
    assert set(SPECIAL_TOKENS) <= set(result.tokens)


def require_corpus(unpack, result, content):
    assert [line for line in result if line] == [
        line for raw in unpack(content).decode().split("\n")
        if (line := raw.removeprefix("\ufeff").strip())]


def read_corpus(path):
    source = open_source(str(path))
    return list(documents.lines_of(source.documents(), source.parse))


SPEC = TaskSpec(name="classification", kind="classification", metrics=("accuracy",))
VOCABULARY = "".join(f"{token}\n" for token in (*SPECIAL_TOKENS, "the", "##ing", "中", "a"))
CORPUS = "One document.\nIts second line.\n\nAnother 中文.\n".encode() * 3
READERS = [  # File, changed contents, reader, what it must have read.
    ("a.csv", bytes_changed(CSV.encode()), lambda path: list(tables.read_rows(path)),
     require_cells),
    ("a.jsonl", mutations.json_line_changed({"text": "good", "label": "yes", "id": 7}),
     lambda path: list(files.read_texts(path, SPEC)), require_object),
    ("vocab.txt", bytes_changed(VOCABULARY.encode()), Vocabulary.load, require_tokens),
    *((f"corpus{suffix}", bytes_changed(pack(CORPUS)), read_corpus,
       functools.partial(require_corpus, unpack)) for suffix, pack, unpack in (
           (".txt", bytes, bytes), (".gz", gzip.compress, gzip.decompress),
           (".bz2", bz2.compress, bz2.decompress), (".xz", lzma.compress, lzma.decompress))),
    *(reader for labelled in (True, False) for reader in (
        ("conll.txt", bytes_changed(CONLL.encode()),
         functools.partial(read_columns, tagged=labelled), require_words),
        ("squad.json", json_changed(SQUAD), functools.partial(read_questions, labelled=labelled),
         functools.partial(require_questions, labelled)),
        *((f"mrqa.jsonl{suffix}", mutations.json_lines_changed(MRQA, pack),
           functools.partial(read_questions, labelled=labelled),
           functools.partial(require_spans, labelled))
          for suffix, pack in (("", bytes), (".gz", gzip.compress))))),
]


@pytest.mark.parametrize(("name", "contents", "read", "require"), READERS,
                         ids=[f"{number} {reader[0]}" for number, reader in enumerate(READERS)])
@hypothesis.given(data=st.data())
@cases(0.5)
def test_a_changed_file_is_refused_or_comes_back_whole(home, name, contents, read, require, data):
    path = home / name
    path.write_bytes(data.draw(contents))
    result = attempt(name, lambda: read(path))
    if result is not REFUSED:
        require(result, path.read_bytes())


YAML = """
masking: {rate: 0.25}
training:
  seed: 7
  num_train_steps: 1_000  # A comment.
runtime:
  xla: on
  tpu: 'a name'
"""


@hypothesis.given(data=st.data())
@cases(2)
def test_a_file_of_settings_means_what_stands_there(home, data):
    path = home / "run.yaml"
    hostile = data.draw(st.sampled_from([
        "&a", "*a", "!!python/object:os.system", "<<: *a", "- 1", "? x", "{a: {b: {c: 1}}}", "---",
        "...", "%YAML 1.2", "|", ">", "1:30", "0o17", "2026-01-01", ".inf", "!!binary aGk=", "=",
        *HOSTILE_TEXT]))
    content = data.draw(bytes_changed(YAML.encode()))
    if data.draw(st.booleans()):
        word = data.draw(st.sampled_from(
            ["0.25", "7", "1_000", "on", "'a name'", "seed", "masking"]))
        content = YAML.replace(word, hostile).encode(errors="surrogatepass")
    path.write_bytes(content)
    sections = attempt("--config", lambda: read_yaml(path))
    if sections is REFUSED:
        return
    plain = yaml.load(content.decode("utf-8-sig"), yaml.BaseLoader) or {}
    assert sections == {f"{section}.{field}": value for section, fields in plain.items()
                        for field, value in fields.items()}
    require_set(sections, attempt("settings of --config", lambda: override(
        PretrainingConfig(), sections)))


def require_set(changes, config) -> None:
    """Fails unless every setting has the value that its text says."""
    if config is REFUSED:
        return
    for name, value in flatten(config).items():
        if name not in changes:
            assert value == flatten(PretrainingConfig())[name]
        elif isinstance(value, bool):
            assert value == (changes[name].lower() in ("true", "1", "yes", "on"))
        else:
            text = changes[name]
            assert value == (text if isinstance(value, str) else float(text.strip()))


@hypothesis.given(data=st.data())
@cases(2)
def test_any_setting_takes_a_value_of_its_kind_or_refuses(data):
    names = [*flatten(PretrainingConfig()), "masking.rte", "x", "", ".", "model.", ".rate"]
    number = st.one_of(st.integers(), st.floats(), st.integers(10**20, 10**40)).map(str)
    values = st.one_of(st.sampled_from(HOSTILE_TEXT), st.text(max_size=20), number)
    changes = data.draw(st.dictionaries(st.sampled_from(names), values, min_size=1, max_size=3))
    assignments = [f"{name}={value}" for name, value in changes.items()]

    def read():
        parsed = parse_assignments(assignments)
        return parsed, override(PretrainingConfig(), parsed)

    result = attempt("--set", read)
    if result is not REFUSED:
        require_set(*result)
