"""Texts that users hand over: tables, sentences, questions, vocabularies, settings, corpora."""

import csv
import gzip
import io
import json

import hypothesis
import pytest
import yaml
from hypothesis import strategies as st

from data_prep import documents
from data_prep.sources import registry as sources
from electra_tf.config.overrides import flatten, override, parse_assignments, read_yaml
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.tasks import files, tables
from electra_tf.tasks.files import read_conll
from electra_tf.tasks.question_files import read_questions
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.fuzz.attempts import REFUSED, attempt, cases
from tests.fuzz.mutations import HOSTILE_TEXT, bytes_changed, json_changed

SPEC = TaskSpec(name="classification", kind="classification", metrics=("accuracy",))
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


def lines_of(content: bytes) -> list[str]:
    text = content.removeprefix(b"\xef\xbb\xbf").decode()
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


@hypothesis.given(data=st.data())
@cases()
def test_comma_separated_rows_come_back_whole(home, data):
    path = home / "a.csv"
    path.write_bytes(data.draw(bytes_changed(CSV.encode())))
    found = attempt(".csv", lambda: list(tables.read_rows(path)))
    if found is not REFUSED:
        text = "".join(f"{line}\n" for line in lines_of(path.read_bytes()))
        _, *rows = csv.reader(io.StringIO(text, newline=""))
        assert [list(row.values.values()) for row in found] == rows


@hypothesis.given(data=st.data())
@cases()
def test_lines_of_json_come_back_whole(home, data):
    path = home / "a.jsonl"
    tree = {"text": "good", "label": "yes", "id": 7}
    line = b"".join(data.draw(json_changed(tree)).split(b"\n"))
    path.write_bytes(json.dumps(tree).encode() + b"\n" + line + b"\n")
    found = attempt(".jsonl", lambda: files.read_texts(path, SPEC))
    if found is not REFUSED and len(found) == 2:
        written = json.loads(line.decode("utf-8-sig"))
        label = written["label"]
        assert found[1].texts == (written["text"],)
        assert found[1].label == (label if isinstance(label, str) else str(label))


@pytest.mark.parametrize("labelled", [True, False])
@hypothesis.given(data=st.data())
@cases(0.5)
def test_words_of_tagged_sentences_come_back_whole(home, labelled, data):
    path = home / "a.txt"
    path.write_bytes(data.draw(bytes_changed(CONLL.encode())))
    found = attempt("CoNLL's columns", lambda: read_conll(path, tagged=labelled))
    if found is not REFUSED:
        first = [line.split()[0] for line in lines_of(path.read_bytes())
                 if line.split() and line.split()[0] != "-DOCSTART-"]
        assert [word for sentence in found for word in sentence.words] == first
        assert all(len(one.tags or one.words) == len(one.words) for one in found)


@pytest.mark.parametrize("labelled", [True, False])
@hypothesis.given(data=st.data())
@cases(0.75)
def test_questions_come_back_as_they_stand(home, labelled, data):
    path = home / "squad.json"
    path.write_bytes(data.draw(json_changed(SQUAD)))
    found = attempt("SQuAD's format", lambda: read_questions(path, labelled=labelled))
    if found is not REFUSED:
        said = [(paragraph["context"], one)
                for article in json.loads(path.read_text(encoding="utf-8-sig"))["data"]
                for paragraph in article["paragraphs"] for one in paragraph["qas"]]
        assert len(found.examples) + len(found.misplaced) == len(said)
        kept = [pair for pair in said if pair[1]["id"] not in found.misplaced]
        for example, (context, question) in zip(found.examples, kept, strict=True):
            assert (example.key, example.question, example.context) == (
                question["id"], question["question"], context)
            assert example.is_impossible == (labelled and bool(question.get("is_impossible")))
            for answer in example.answers:
                assert context[answer.start:answer.start + len(answer.text)] == answer.text
            assert bool(example.answers) == (labelled and not example.is_impossible)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("labelled", [True, False])
@hypothesis.given(data=st.data())
@cases(0.5)
def test_questions_of_mrqa_come_back_as_they_stand(home, packed, labelled, data):
    path = home / ("mrqa.jsonl.gz" if packed else "mrqa.jsonl")
    lines = [json.dumps(one).encode() for one in MRQA]
    how = data.draw(st.sampled_from(["json", "json", "bytes", "packed"]))
    if how == "json":
        place = data.draw(st.integers(0, len(lines) - 1))
        lines[place] = b"".join(data.draw(json_changed(MRQA[place])).split(b"\n"))
    content = b"\n".join(lines)
    content = data.draw(bytes_changed(content)) if how == "bytes" else content
    content = gzip.compress(content) if packed else content
    content = data.draw(bytes_changed(content)) if how == "packed" else content
    path.write_bytes(content)
    found = attempt("MRQA's format", lambda: read_questions(path, labelled=labelled))
    if found is REFUSED:
        return
    _, *contexts = [json.loads(line.removeprefix("\ufeff")) for line in lines_of(
        gzip.decompress(content) if packed else content)]
    said = [(one["context"], question) for one in contexts for question in one["qas"]]
    for example, (context, question) in zip(found.examples, said, strict=True):
        assert (example.key, example.question, example.context) == (
            question["qid"], question["question"], context)
        assert example.gold == (tuple(question["answers"]) if labelled else ())
        assert len(example.answers) <= labelled
        for answer in example.answers:
            assert [answer.text.lower().split(), answer.start] in [
                [detected["text"].lower().split(), first]
                for detected in question["detected_answers"]
                for first, _ in detected["char_spans"]]
            assert context.startswith(answer.text, answer.start)


@hypothesis.given(data=st.data())
@cases()
def test_a_vocabulary_comes_back_line_by_line(home, data):
    path = home / "vocab.txt"
    tokens = (*SPECIAL_TOKENS, "the", "##ing", "中", "a")
    path.write_bytes(data.draw(bytes_changed("".join(f"{one}\n" for one in tokens).encode())))
    found = attempt("vocab.txt", lambda: Vocabulary.load(path))
    if found is not REFUSED:
        assert list(found.tokens) == [line.strip(" \t\r") for line in lines_of(path.read_bytes())]
        assert set(SPECIAL_TOKENS) <= set(found.tokens)


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

    found = attempt("--set", read)
    if found is not REFUSED:
        require_set(*found)


@pytest.mark.parametrize("suffix", [".txt", ".gz", ".bz2", ".xz"])
@hypothesis.given(data=st.data())
@cases(0.3)
def test_a_corpus_is_read_to_its_end_or_refused(home, suffix, data):
    import bz2
    import lzma

    text = "One document.\nIts second line.\n\nAnother 中文.\n".encode() * 3
    pack = {".txt": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix]
    unpack = {".txt": bytes, ".gz": gzip.decompress, ".bz2": bz2.decompress,
              ".xz": lzma.decompress}[suffix]
    path = home / f"corpus{suffix}"
    path.write_bytes(data.draw(bytes_changed(pack(text))))

    def read():
        source = sources.open_source(str(path))
        return list(documents.lines_of(source.documents(), source.parse))

    found = attempt("--input", read)
    if found is not REFUSED:
        whole = unpack(path.read_bytes()).decode()
        assert [line for line in found if line] == [
            line for raw in whole.split("\n") if (line := raw.removeprefix("\ufeff").strip())]
