r"""Loads the local server with many clients at once, slow ones among them.

    python -m benchmarks.serving.load --model_dir=served/sst2

--model_dir is a classifier's, with one text as its input. The server runs as a process of its own
and is stopped at the end; everything goes over the loopback interface, and the clients take a part
of the same cores. Prints a table; about a minute. Fails if an answer is wrong.
"""

import asyncio
import contextlib
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from absl import flags

from benchmarks.serving.load_clients import SLOW, Answer, Tally, Target, again_and_again, ask, quick
from electra_tf.platform import command_line
from electra_tf.platform.errors import UserError

PHASES = ((1, 0), (8, 0), (256, 0), (256, 200))
"""Quick and slow clients."""
TEXTS = tuple(
    " ".join(["a film", "not", "to see twice", "by people who", "cannot sing"][:1 + number % 5])
    + f" {number}" for number in range(64))
ABANDONED = 30
ABANDONED_ROWS = 1024


def main() -> None:
    """Runs all phases.

    Raises:
        UserError: no server, or a wrong answer.
    """
    values = flags.FLAGS
    if not values.model_dir:
        raise UserError("--model_dir is needed: the versions of a classifier of single texts.")
    with _server(values.model_dir) as (target, process):
        wrong = asyncio.run(_phases(target, process.pid, values.seconds))
    if wrong:
        raise UserError(f"{wrong} answers differ from those that the same texts get alone.")


@contextlib.contextmanager
def _server(model_dir: str) -> Iterator[tuple[Target, subprocess.Popen]]:
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "electra_tf.apps.serving.serve", "--port=0",
         f"--model_dir={model_dir}"],
        stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        found = re.match(r"(\S+), version \d+: http://([\d.]+):(\d+) ", line)
        if not found:
            raise UserError("the server doesn't start; its reason is above.")
        print(f"ready after {time.perf_counter() - begin:.1f} s", flush=True)
        yield Target(host=found[2], port=int(found[3]), path=f"/v1/models/{found[1]}"), process
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=30)
        process.kill()


async def _phases(target: Target, pid: int, seconds: float) -> int:
    begin = time.perf_counter()
    expected = {}
    for text in TEXTS:
        _, (expected[text],) = await ask(target, [text])
        if len(expected) == 1:
            print(f"first answer: {1000 * (time.perf_counter() - begin):.1f} ms", flush=True)
    print("\n| clients | slow ones | answers/s | p50 | p99 | 503 | other errors | wrong "
          "| peak memory |\n|---|---|---|---|---|---|---|---|---|", flush=True)
    wrong = 0
    for clients, slow in PHASES:
        tally = await phase(target, expected, clients, slow, seconds)
        wrong += tally.wrong
        print(_row(tally, clients, slow, seconds, _peak_mb(pid)), flush=True)
    print(f"\none text behind {ABANDONED} abandoned requests of {ABANDONED_ROWS} rows: "
          f"{await _behind_abandoned(target):.2f} s", flush=True)
    return wrong


async def phase(target: Target, expected: Mapping[str, Answer], clients: int, slow: int,
                seconds: float) -> Tally:
    """Returns what so many clients saw in so many seconds."""
    tally = Tally()
    hindering = [asyncio.create_task(again_and_again(SLOW[number % len(SLOW)], target))
                 for number in range(slow)]
    await asyncio.sleep(1 if slow else 0)
    end = time.perf_counter() + seconds
    async with asyncio.timeout(seconds + 60):
        await asyncio.gather(*(quick(target, expected, number, end, tally)
                               for number in range(clients)))
    for task in hindering:
        task.cancel()
    await asyncio.gather(*hindering, return_exceptions=True)
    return tally


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


def _row(tally: Tally, clients: int, slow: int, seconds: float, peak: float) -> str:
    taken: Sequence[float] = sorted(tally.seconds) or [float("nan")]
    p50, p99 = (f"{1000 * taken[int(share * (len(taken) - 1))]:.1f} ms" for share in (0.5, 0.99))
    others = sum(tally.statuses.values()) - tally.statuses[200] - tally.statuses[503]
    return (f"| {clients} | {slow} | {tally.statuses[200] / seconds:.0f} | {p50} | {p99} | "
            f"{tally.statuses[503]} | {others} | {tally.wrong} | {peak:,.0f} MB |")


def _peak_mb(pid: int) -> float:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1000


def _define() -> None:
    flags.DEFINE_string("model_dir", None, "Directory of a SavedModel's versions.")
    flags.DEFINE_float("seconds", 8, "Of each phase.", lower_bound=0.5)


if __name__ == "__main__":
    _define()
    command_line.run(main, summary=__doc__, groups={"What": ("model_dir",), "How": ("seconds",)})
