"""Clients of the load test: quick ones that check what they get, slow ones that mean no good.

Plain asyncio and HTTP as bytes: 256 clients must not cost more than the server that they ask.
"""

import asyncio
import collections
import contextlib
import dataclasses
import json
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence

TOLERANCE = 1e-4
"""Between a text's probabilities alone and in company, in float32."""
Answer = tuple[str, Sequence[float]]
"""A label and the probabilities of all."""
Slow = Callable[["Target"], Coroutine[None, None, None]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """What is asked."""

    host: str
    port: int
    path: str
    """Of the model: /v1/models/NAME."""

    def request(self, texts: Sequence[str]) -> bytes:
        """Returns a predict request as bytes."""
        body = json.dumps({"instances": list(texts)}).encode()
        return (f"POST {self.path}:predict HTTP/1.1\r\nHost: {self.host}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode() + body


@dataclasses.dataclass(kw_only=True)
class Tally:
    """What clients saw."""

    seconds: list[float] = dataclasses.field(default_factory=list)
    statuses: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    wrong: int = 0


async def ask(target: Target, texts: Sequence[str]) -> tuple[int, list[Answer]]:
    """Returns the status and the answers of one request on a connection of its own."""
    reader, writer = await asyncio.open_connection(target.host, target.port)
    try:
        writer.write(target.request(texts))
        return await _read(reader)
    finally:
        writer.close()


async def quick(target: Target, expected: Mapping[str, Answer], turn: int, end: float,
                tally: Tally) -> None:
    """Asks one text after the other until the end; connects again when it is turned away."""
    texts = sorted(expected)
    while time.perf_counter() < end:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(target.host, target.port)
            with contextlib.closing(writer):
                while time.perf_counter() < end:
                    turn += 1
                    text = texts[turn % len(texts)]
                    begin = time.perf_counter()
                    writer.write(target.request([text]))
                    status, answers = await _read(reader)
                    tally.statuses[status] += 1
                    if status == 200:
                        tally.seconds.append(time.perf_counter() - begin)
                        tally.wrong += not (len(answers) == 1 and _same(
                            answers[0], expected[text]))
                    else:
                        await asyncio.sleep(0.1)
                continue
        tally.statuses["lost"] += 1
        await asyncio.sleep(0.1)


async def _silent(target: Target) -> None:
    reader, writer = await asyncio.open_connection(target.host, target.port)
    with contextlib.closing(writer):
        await reader.read()


def _trickling(content: Callable[[Target], bytes]) -> Slow:
    async def slow(target: Target) -> None:
        reader, writer = await asyncio.open_connection(target.host, target.port)
        with contextlib.closing(writer):
            for byte in content(target):
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.2)
    return slow


async def _never_reading(target: Target) -> None:
    reader, writer = await asyncio.open_connection(target.host, target.port, limit=1024)
    with contextlib.closing(writer):
        writer.write(target.request(["never read"] * 1000))
        await asyncio.sleep(60)


async def _leaving(target: Target) -> None:
    _, writer = await asyncio.open_connection(target.host, target.port)
    with contextlib.closing(writer):
        writer.write(target.request(["left behind"] * 1000))
        await asyncio.sleep(0.5)


SLOW: tuple[Slow, ...] = (
    _silent, _never_reading, _leaving,
    _trickling(lambda target: b"GET / HTTP/1.1\r\nX: " + b"x" * 10_000),
    _trickling(lambda target: target.request(["slow"] * 1000)[:200] + b"x" * 10_000))
"""Silence; no reading; leaving; headers and bodies byte by byte."""


async def again_and_again(slow: Slow, target: Target) -> None:
    """Is a slow client until it is cancelled."""
    while True:
        with contextlib.suppress(ConnectionError):
            await slow(target)
        await asyncio.sleep(0.1)


async def _read(reader: asyncio.StreamReader) -> tuple[int, list[Answer]]:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines if line)
    body = json.loads(await reader.readexactly(int(headers["content-length"])))
    if headers.get("connection") == "close":
        reader.feed_eof()
    return int(first.split()[1]), [
        (row["label"], row["probabilities"]) for row in body.get("predictions", ())]


def _same(found: Answer, expected: Answer) -> bool:
    return found[0] == expected[0] and all(
        abs(mine - yours) <= TOLERANCE for mine, yours in zip(found[1], expected[1], strict=True))
