"""Lines that hold a benchmark's test text go, whichever format it is in."""

import gzip
import json

import pytest

from data_prep.cleaning import benchmarks
from electra_tf.core.errors import UserError
from tests.data_prep.cleaning.cleaned_documents import cleaned

TEN = "the quick brown fox jumps over the lazy old dog"
TWENTY = " ".join(f"word{number}" for number in range(20))
SHORT = "only seven words are in this one"


def squad(*questions):
    return json.dumps({"version": "1", "data": [{"paragraphs": [{
        "context": "a context of more than eight words that is no question at all",
        "qas": [{"id": str(number), "question": question, "answers": []}
                for number, question in enumerate(questions)]}]}]})


def mrqa(question):
    return "\n".join(map(json.dumps, [{"header": {"dataset": "NewsQA"}}, {
        "context": "some context", "qas": [{"qid": "1", "question": question, "answers": ["c"],
                                            "detected_answers": []}]}])) + "\n"


FILES = {
    "GLUE with a header": ("glue/RTE/test.tsv",
                           f"index\tsentence1\tsentence2\n0\t{TEN}\tothers\n"),
    "GLUE without a header": ("glue/CoLA/dev.tsv", f"gj04\t1\t\t{TEN}\n"),
    "SQuAD": ("squad/dev-v2.0.json", squad(TEN)),
    "MRQA": ("dev/NewsQA.jsonl", mrqa(TEN)),
    "MRQA, packed": ("dev/NewsQA.jsonl.gz", gzip.compress(mrqa(TEN).encode())),
    "BLiMP": ("blimp/one.jsonl", json.dumps({"sentence_good": TEN, "n": 1}) + "\n"),
    "lists of words": ("own.jsonl", json.dumps({"words": TEN.split(), "tags": ["O"] * 10}) + "\n"),
    "a table": ("own/dev.csv", f'text,label\n"{TEN}",1\n'),
    "CoNLL": ("ner/test.txt", "".join(f"{word} X O\n" for word in TEN.split())),
}


def put(directory, name, content):
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def test_test_texts_are_found_in_every_format(tmp_path):
    line = f"He wrote: The quick, brown FOX jumps over the lazy old dog! {TWENTY}"
    halves = [" ".join(TEN.split()[:5]), " ".join(TEN.split()[5:])]  # No text goes across lines.
    for kind, file in FILES.items():
        put(tmp_path / kind, *file)
        (tmp_path / f"of {kind}").mkdir()
        kept, tally = cleaned(tmp_path / f"of {kind}", [[line, *halves]],
                               decontaminate=str(tmp_path / kind))
        assert (kind, kept["train"]) == (kind, [halves])
        assert tally == {"contaminated_lines": 1, "dropped_text_bytes": len(line)}


@pytest.mark.parametrize(("line", "stays"), [
    (" ".join(TWENTY.split()[3:16]), False),  # 13 words.
    (" ".join(TWENTY.split()[3:15]), True),  # 12 words.
    (TEN, False), (TEN.removesuffix(" dog"), True), (SHORT, True),
])
def test_thirteen_words_contaminate_or_all_of_a_shorter_text(clean, tmp_path, line, stays):
    put(tmp_path / "tasks", "own.jsonl", "".join(
        json.dumps({"text": text}) + "\n" for text in (TEN, TWENTY, SHORT)))
    kept, _ = clean([[line]], decontaminate=str(tmp_path / "tasks"))
    assert kept["train"] == [[line] if stays else []]


def test_training_files_are_no_test_texts(tmp_path):
    put(tmp_path, "RTE/train.tsv", f"index\tsentence1\tsentence2\tlabel\n0\t{TEN}\ta\tentailment\n")
    put(tmp_path, "train/NewsQA.jsonl", mrqa(TEN))
    put(tmp_path, "README.md", TEN)
    with pytest.raises(UserError, match="holds no task files besides those for training"):
        benchmarks.read(tmp_path, 13)


@pytest.mark.parametrize(("name", "content", "message"), [
    ("own.jsonl", json.dumps({"text": SHORT}) + "\n", "no test text of at least 8 words"),
    ("dev.json", "{", r"dev\.json: not JSON"),
    ("RTE/dev.tsv", f"index\tsentence1\tsentence2\tlabel\n0\t{TEN}\n",
     r"dev\.tsv: 1 of 2 lines don't have 4 columns"),
])
def test_a_directory_without_readable_test_files_is_refused(tmp_path, name, content, message):
    put(tmp_path, name, content)
    with pytest.raises(UserError, match=message):
        benchmarks.read(tmp_path, 13)
