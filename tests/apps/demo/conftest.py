"""The tiny networks, which are built once, and servers of them."""

import contextlib
import socket
import threading

import pytest

from electra_tf.apps.demo import server as demo_server
from electra_tf.apps.demo.replaced_tokens import DemoRequest, ReplacedTokenDetection
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import tiny_networks

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, *(f"word{index}" for index in range(30)),
                         "##s", "##ing", ".", "<", ">"))


@pytest.fixture(scope="session")
def networks():
    return tiny_networks.pretrained(VOCABULARY)


@pytest.fixture(scope="session")
def detection(networks):
    return ReplacedTokenDetection(networks)


@pytest.fixture(scope="session")
def serving():
    """serving(detection, **limits): a context with the address of a running server."""
    @contextlib.contextmanager
    def running(detection, **limits):
        server = demo_server.server(detection, example=DemoRequest(
            sentence="word1 word2", mask_rate=0.25, temperature=1.0, seed=1), **limits)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
            thread.start()
            try:
                yield f"http://127.0.0.1:{listening.getsockname()[1]}"
            finally:
                server.should_exit = True
                thread.join()
    return running


@pytest.fixture(scope="session")
def address(serving, detection):
    with serving(detection) as url:
        yield url
