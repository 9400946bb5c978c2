"""The tiny networks, which are built once for all tests of the demo."""

import pytest

from electra_tf.apps.demo.replaced_tokens import ReplacedTokenDetection
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import tiny_networks

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, *(f"word{index}" for index in range(30)),
                         "##s", "##ing", ".", "<", ">"))


@pytest.fixture(scope="session")
def checkpoint():
    return tiny_networks.pretrained(VOCABULARY)


@pytest.fixture(scope="session")
def detection(checkpoint):
    return ReplacedTokenDetection(checkpoint)
