"""HTTP as bytes, for what no client library would send."""

import contextlib
import json
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def connected(client) -> Iterator[socket.socket]:
    """A connection to the server of a client."""
    host, port = client.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        yield connection


def exchange(client, content: bytes) -> tuple[int, dict[bytes, bytes], dict]:
    """The status, the headers and the JSON of what comes back until the server closes."""
    with connected(client) as connection:
        connection.sendall(content)
        return read(connection)


def read(connection: socket.socket) -> tuple[int, dict[bytes, bytes], dict]:
    """Likewise, of a connection."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    headers = dict(line.lower().split(b": ", 1) for line in lines)
    return int(first.split()[1]), headers, json.loads(body)


def request(path: str, body: bytes = b"", *headers: str) -> bytes:
    """A POST, whose server closes the connection afterwards."""
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Connection: close",
             f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode("ascii") + body
