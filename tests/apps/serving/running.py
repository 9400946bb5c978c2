"""A server in a thread, and requests to it over real HTTP."""

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

from electra_tf.apps.serving import (
    http_server,
    local_server,
    model_versions,
    rest_api,
    saved_models,
)
from electra_tf.apps.serving.catalog import Catalog
from electra_tf.apps.serving.model_versions import ModelSource
from electra_tf.apps.serving.strict_http import ConnectionLimits


class Client:
    """Requests to one server."""

    def __init__(self, address: str, name: str):
        self.address = address
        self.path = f"/v1/models/{name}"

    def send(self, method: str, path: str, body: bytes | str | None = None) -> tuple[int, str]:
        """The status and the text of an answer."""
        status, _, content = self.ask(method, path, body)
        return status, content.decode("utf-8")

    def ask(self, method: str, path: str, body: bytes | str | None = None,
            headers: dict[str, str] | None = None) -> tuple[int, Message, bytes]:
        """The status, the headers and the body of an answer."""
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

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


def client(
    model_dir: Path, settings: rest_api.Settings | None = None,
    connections: ConnectionLimits | None = None,
) -> contextlib.AbstractContextManager[Client]:
    """A client of a server of the newest version in a directory; the server runs meanwhile."""
    version = saved_models.newest_version(model_dir)
    return client_of(saved_models.load(version, model_dir.name), settings, connections)


def client_of(
    model: saved_models.ServedModel, settings: rest_api.Settings | None = None,
    connections: ConnectionLimits | None = None,
) -> contextlib.AbstractContextManager[Client]:
    """A client of a server of this model."""
    versions = model_versions.ModelVersions(
        ModelSource(name=model.name, directory=Path("nowhere")), load=None, report=print)
    versions.known[model.version] = model_versions.Version(
        number=model.version, state=model_versions.State.AVAILABLE, model=model)
    return client_of_all([versions], local_server.Settings(
        answers=settings or rest_api.Settings(), connections=connections or ConnectionLimits(),
        poll_seconds=0))


@contextlib.contextmanager
def client_of_all(
    models: list[model_versions.ModelVersions], settings: local_server.Settings
) -> Iterator[Client]:
    """A client of the first of these models, which are loaded."""
    with http_server.listen("127.0.0.1", 0) as listening:
        started = threading.Event()
        server = local_server.server(Catalog(models), settings, lambda _: started.set())
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            assert started.wait(20)
            yield Client(http_server.address(listening), models[0].source.name)
        finally:
            server.should_exit = True
            thread.join()
