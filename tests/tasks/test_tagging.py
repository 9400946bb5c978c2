"""CoNLL's column files, of 2000 and of 2003."""

import pytest

from electra_tf.platform.errors import UserError
from electra_tf.tasks.tagging import read_conll

CHUNKS = "He PRP B-NP\nreckons VBZ B-VP\n\n\nYes UH O"
ENTITIES = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
German JJ I-NP I-MISC

Peter NNP I-NP I-PER
Blackburn NNP I-NP I-PER
"""


def read(tmp_path, text, **options):
    path = tmp_path / "train.txt"
    path.write_text(text)
    return read_conll(path, **options)


def test_sentences_end_at_empty_lines_and_at_the_end_of_the_file(tmp_path):
    first, second = read(tmp_path, CHUNKS)
    assert (first.words, first.tags, first.key) == (("He", "reckons"), ("B-NP", "B-VP"), "1")
    assert (second.words, second.tags, second.key) == (("Yes",), ("O",), "5")


def test_document_starts_are_no_sentences_and_iob1_becomes_iob2(tmp_path):
    first, second = read(tmp_path, ENTITIES)
    assert first.tags == ("B-ORG", "O", "B-MISC")
    assert second.tags == ("B-PER", "I-PER")


def test_a_file_to_predict_needs_no_tags(tmp_path):
    (sentence,) = read(tmp_path, "He\nruns\n", tagged=False)
    assert (sentence.words, sentence.tags) == (("He", "runs"), None)


@pytest.mark.parametrize(("text", "message"), [
    ("He PRP B-NP\nruns B-VP\n", r"train\.txt:2: 2 columns, but 3 are expected\. Received: 'runs"),
    ("He\n", r"train\.txt:1: 1 columns, but at least 2"),
    ("\n\n", "holds no sentences"),
    ("", "holds no sentences"),
])
def test_damage_is_named(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        read(tmp_path, text)
