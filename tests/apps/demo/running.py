"""The page's server in a thread."""

import contextlib
import threading
from collections.abc import Iterator

from electra_tf.apps.demo import application
from electra_tf.apps.demo.replaced_tokens import ReplacedTokenDetection
from electra_tf.apps.serving import http_server
from tests.apps.serving.running import Client


@contextlib.contextmanager
def client(detection: ReplacedTokenDetection,
           settings: application.Settings | None = None) -> Iterator[Client]:
    """A client of a server that runs meanwhile."""
    with http_server.listen("127.0.0.1", 0) as listening:
        started = threading.Event()
        server = application.server(detection, settings or application.Settings(), started.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            assert started.wait(20)
            yield Client(http_server.address(listening), "none")
        finally:
            server.should_exit = True
            thread.join()
