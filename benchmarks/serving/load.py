r"""Loads the local server with many clients at once, slow ones among them.

    python -m benchmarks.serving.load --model_dir=served/sst2

--model_dir is a classifier's, with one text as its input. The server runs as a process of its own
and is stopped at the end; requests go over the loopback interface, and the clients share the
server's cores. Prints a table; about a minute. Fails if an answer is wrong.
"""

import asyncio
import collections
import contextlib
import dataclasses
import json
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from absl import flags

from benchmarks.harness import command, tables
from electra_tf.platform import command_line
from electra_tf.platform.errors import UserError

PHASES = ((1, 0), (8, 0), (256, 0), (256, 200))
"""Quick and slow clients."""
TEXTS = tuple(
    " ".join(["a film", "not", "to see twice", "by people who", "cannot sing"][:1 + number % 5])
    + f" {number}" for number in range(64))
ABANDONED, ABANDONED_ROWS = 30, 1024
"""Requests whose clients leave, and the texts of each."""
TOLERANCE = 1e-4
"""Between a text's probabilities alone and in a batch, in float32."""
Answer = tuple[str, Sequence[float]]
"""A label and the probabilities of all."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """The server and its model.

    Clients are plain asyncio and HTTP as bytes: 256 of them must not cost more than the server.
    """

    host: str
    port: int
    path: str
    """Path of the model in URLs: /v1/models/NAME."""

    def request(self, texts: Sequence[str]) -> bytes:
        """Returns a predict request as bytes."""
        body = json.dumps({"instances": list(texts)}).encode()
        return (f"POST {self.path}:predict HTTP/1.1\r\nHost: {self.host}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode() + body


@dataclasses.dataclass(kw_only=True)
class Tally:
    """The answers that quick clients got."""

    seconds: list[float] = dataclasses.field(default_factory=list)
    statuses: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    wrong: int = 0


async def ask(target: Target, texts: Sequence[str]) -> tuple[int, list[Answer]]:
    """Returns the status and the answers of one request on a connection of its own."""
    reader, writer = await asyncio.open_connection(target.host, target.port)
    with contextlib.closing(writer):
        writer.write(target.request(texts))
        return await _read(reader)


async def _read(reader: asyncio.StreamReader) -> tuple[int, list[Answer]]:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines if line)
    body = json.loads(await reader.readexactly(int(headers["content-length"])))
    if headers.get("connection") == "close":
        reader.feed_eof()
    return int(first.split()[1]), [
        (row["label"], row["probabilities"]) for row in body.get("predictions", ())]


async def _quick(target: Target, expected: Mapping[str, Answer], turn: int, end: float,
                 tally: Tally) -> None:
    """Asks one text after the other until the end; connects again when it is turned away."""
    texts = sorted(expected)
    while time.perf_counter() < end:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(target.host, target.port)
            with contextlib.closing(writer):
                while time.perf_counter() < end:
                    turn += 1
                    text, begin = texts[turn % len(texts)], time.perf_counter()
                    writer.write(target.request([text]))
                    status, answers = await _read(reader)
                    tally.statuses[status] += 1
                    if status == 200:
                        tally.seconds.append(time.perf_counter() - begin)
                        tally.wrong += not _same(answers, expected[text])
                    else:
                        await asyncio.sleep(0.1)
                continue
        tally.statuses["lost"] += 1
        await asyncio.sleep(0.1)


def _same(found: Sequence[Answer], expected: Answer) -> bool:
    return len(found) == 1 and found[0][0] == expected[0] and all(
        abs(mine - yours) <= TOLERANCE
        for mine, yours in zip(found[0][1], expected[1], strict=True))


async def _slow(target: Target, kind: int) -> None:
    """Hinders the server until it is cancelled.

    Args:
        target: the server.
        kind: silence, no reading, leaving, headers byte by byte, a body byte by byte.
    """
    at_once, wait, trickle = (
        (b"", 30.0, b""), (target.request(["never read"] * 1000), 60.0, b""),
        (target.request(["left behind"] * 1000), 0.5, b""),
        (b"", 0.0, b"GET / HTTP/1.1\r\nX: " + b"x" * 10_000),
        (target.request(["slow"] * 1000)[:200], 0.0, b"x" * 10_000))[kind % 5]
    while True:
        with contextlib.suppress(ConnectionError):
            _, writer = await asyncio.open_connection(target.host, target.port, limit=1024)
            with contextlib.closing(writer):
                writer.write(at_once)
                await asyncio.sleep(wait)
                for byte in trickle:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(0.2)
        await asyncio.sleep(0.1)


async def phase(target: Target, expected: Mapping[str, Answer], clients: int, slow: int,
                seconds: float) -> Tally:
    """Returns what so many clients got in so many seconds."""
    tally = Tally()
    hindering = [asyncio.create_task(_slow(target, number)) for number in range(slow)]
    await asyncio.sleep(1 if slow else 0)
    end = time.perf_counter() + seconds
    async with asyncio.timeout(seconds + 60):
        await asyncio.gather(*(_quick(target, expected, number, end, tally)
                               for number in range(clients)))
    for task in hindering:
        task.cancel()
    await asyncio.gather(*hindering, return_exceptions=True)
    return tally


def main() -> None:
    """Runs all phases.

    Raises:
        UserError: no server, or a wrong answer.
    """
    values = flags.FLAGS
    command.require("model_dir")
    with _server(values.model_dir) as (target, process):
        wrong = asyncio.run(_phases(target, process.pid, values.seconds))
    if wrong:
        raise UserError(f"{wrong} answers differ from those that the same texts get alone.")


@contextlib.contextmanager
def _server(model_dir: str) -> Iterator[tuple[Target, subprocess.Popen]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "electra_tf.apps.serving.serve", "--port=0",
         f"--model_dir={model_dir}"], stdout=subprocess.PIPE, text=True)
    try:
        found = re.match(r"(\S+), version \d+: http://([\d.]+):(\d+) ", process.stdout.readline())
        if not found:
            raise UserError("the server doesn't start; its reason is above.")
        yield Target(host=found[2], port=int(found[3]), path=f"/v1/models/{found[1]}"), process
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=30)
        process.kill()


async def _phases(target: Target, pid: int, seconds: float) -> int:
    expected = {text: (await ask(target, [text]))[1][0] for text in TEXTS}
    lines = [["clients", "slow ones", "answers/s", "p50, ms", "p99, ms", "503", "other errors",
              "wrong", "peak MB"]]
    for clients, slow in PHASES:
        tally = await phase(target, expected, clients, slow, seconds)
        taken = sorted(tally.seconds) or [float("nan")]
        answered, refused = tally.statuses[200], tally.statuses[503]
        lines.append([str(clients), str(slow), f"{answered / seconds:.0f}",
                      *(f"{1000 * taken[int(share * (len(taken) - 1))]:.1f}"
                        for share in (0.5, 0.99)), str(refused),
                      str(tally.statuses.total() - answered - refused), str(tally.wrong),
                      f"{_peak_mb(pid):,.0f}"])
    print("\n".join(tables.table(lines)), flush=True)
    print(f"\none text behind {ABANDONED} abandoned requests of {ABANDONED_ROWS} rows: "
          f"{await _behind_abandoned(target):.2f} s", flush=True)
    return sum(int(line[-2]) for line in lines[1:])


async def _behind_abandoned(target: Target) -> float:
    for _ in range(ABANDONED):
        _, writer = await asyncio.open_connection(target.host, target.port)
        writer.write(target.request([*TEXTS] * (ABANDONED_ROWS // len(TEXTS))))
        await writer.drain()
        writer.close()
    begin = time.perf_counter()
    async with asyncio.timeout(120):
        await ask(target, TEXTS[:1])
    return time.perf_counter() - begin


def _peak_mb(pid: int) -> float:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1000


if __name__ == "__main__":
    flags.DEFINE_string("model_dir", None, "Directory of a SavedModel's versions.")
    flags.DEFINE_float("seconds", 8, "Duration of each phase.", lower_bound=0.5)
    command_line.run(main, summary=__doc__, groups={"What": ["model_dir"], "How": ["seconds"]})
