"""A server in a thread, and requests to it over HTTP."""

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from electra_tf.apps.serving import rest_api
from electra_tf.apps.serving.models import ServedModel, find, load
from electra_tf.apps.serving.settings import ServerConfig
from electra_tf.core import http_server


class Client:
    """Requests to one server."""

    def __init__(self, address: str, name: str):
        self.address = address
        self.path = f"/v1/models/{name}"

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=60)

    def send(self, method: str, path: str, body: bytes | str | None = None,
             headers: dict[str, str] | None = None) -> tuple[int, str]:
        """The status and the text of an answer."""
        with contextlib.closing(self.connection()) as connection:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8")

    def get(self, suffix: str) -> tuple[int, dict]:
        status, text = self.send("GET", self.path + suffix)
        return status, json.loads(text)

    def predict(self, content: dict | str | bytes, suffix: str = ":predict") -> tuple[int, dict]:
        body = json.dumps(content) if isinstance(content, dict) else content
        status, text = self.send("POST", self.path + suffix, body)
        return status, json.loads(text)

    def rows(self, signature: str, instances: list) -> list:
        """The predictions of a request that must succeed."""
        status, content = self.predict({"signature_name": signature, "instances": instances})
        assert status == 200, content
        return content["predictions"]

    def error(self, content: dict | str | bytes, status: int = 400) -> str:
        """The message of a request that must be refused."""
        received, answer = self.predict(content)
        assert (received, answer.keys()) == (status, {"error"}), answer
        return answer["error"]

    def exchange(self, content: bytes, *, half_close: bool = False) -> bytes:
        """What the server sends back for these bytes until it closes the connection."""
        host, port = self.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(content)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))


@contextlib.contextmanager
def client(*model_dirs: Path, **settings) -> Iterator[Client]:
    """A client of the first of these models, whose server runs meanwhile."""
    models = {name: load(path) for name, path in find(",".join(map(str, model_dirs))).items()}
    with client_of(models, **settings) as opened:
        yield opened


@contextlib.contextmanager
def client_of(models: dict[str, ServedModel], **settings) -> Iterator[Client]:
    """Likewise, of models that are loaded."""
    server = rest_api.server(models, ServerConfig(**settings))
    with http_server.listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Client(f"http://127.0.0.1:{port}", next(iter(models)))
        finally:
            server.should_exit = True
            thread.join()


def until(condition: Callable[[], object]) -> None:
    """Waits for what must come soon."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
