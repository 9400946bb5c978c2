"""Hugging Face's tokenizers give the ids of the tokenizers library, in ten scripts."""

import json
import os
import subprocess

import pytest
import tensorflow as tf

from electra_tf.formats import hugging_face_tokenizer
from electra_tf.text.tokenizer import Tokenizer
from tests.parity import tokenizer_directories
from tests.parity.tokenizer_directories import FORMS, GOLDEN, TEXTS
from tests.support import peers

IDS = json.loads(GOLDEN.read_text())
MAX_UNKNOWN = 0.3  # Golden ids with more [UNK] could hide differences.


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tokenizers")
    tokenizer_directories.write(directory)
    return directory


@pytest.mark.parametrize("form", FORMS)
def test_ids_are_those_of_the_library(root, form):
    text = hugging_face_tokenizer.read_text(root / form)
    ids = Tokenizer(text).tokenize(tf.constant(TEXTS)).to_list()
    assert ids == IDS[form]
    assert sum(row.count(text.vocabulary.unk_id) for row in ids) < MAX_UNKNOWN * sum(map(len, ids))


@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_is_read_as_the_same_text(root, tmp_path, form):
    text = hugging_face_tokenizer.read_text(root / form)
    hugging_face_tokenizer.write_text(text, tmp_path, 512)
    assert hugging_face_tokenizer.read_text(tmp_path) == text


@peers.needed
def test_the_golden_ids_are_those_of_this_library(tmp_path):
    program = ("import json, pathlib, sys; from tests.parity import tokenizer_directories as t; "
               "pathlib.Path(sys.argv[2]).write_text(json.dumps(t.library_ids("
               "pathlib.Path(sys.argv[1]))))")
    (tmp_path / "root").mkdir()
    done = subprocess.run(
        [str(peers.PYTHON.absolute()), "-c", program, str(tmp_path / "root"),
         str(tmp_path / "ids.json")], cwd=peers.ROOT, env=os.environ | {"HF_HUB_OFFLINE": "1"},
        capture_output=True, text=True, check=False, timeout=peers.TIME_LIMIT)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads((tmp_path / "ids.json").read_text()) == IDS
