"""Tiny networks behind the Python interface."""

import pytest

import electra_tf
from electra_tf.export.conversion import write_run
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests import tiny_networks

WORDS = ("the", "chef", "ate", "cook", "##ed", "meal", "piano", ".", "text", "first", "second")


@pytest.fixture(scope="session")
def networks():
    return tiny_networks.pretrained(Vocabulary((*SPECIAL_TOKENS, *WORDS)))


@pytest.fixture(scope="session")
def directory(networks, tmp_path_factory):
    path = tmp_path_factory.mktemp("api") / "run"
    write_run(networks, path)
    return path


@pytest.fixture(scope="session")
def electra(directory):
    return electra_tf.load(str(directory))
