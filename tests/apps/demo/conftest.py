"""The tiny networks are built once for all tests of the session."""

import pytest

from electra_tf.apps.demo.replaced_tokens import ReplacedTokenDetection
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests import tiny_networks
from tests.apps.demo import running

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, *(f"word{index}" for index in range(30)),
                         "##s", "##ing", ".", "<", ">"))


@pytest.fixture(scope="session")
def networks():
    return tiny_networks.pretrained(VOCABULARY)


@pytest.fixture(scope="session")
def detection(networks):
    return ReplacedTokenDetection(networks)


@pytest.fixture(scope="module")
def client(detection):
    with running.client(detection) as opened:
        yield opened
