r"""Measures text to records beside Model Garden's builder and Hugging Face's tokenizers.

    python -m benchmarks.data_prep --input='corpus/*.txt' --vocab_file=vocab.txt

Prints MB/s and tokens/s of one core and of two, and writes data_prep.md and data_prep.json. Some
five minutes on two cores; stop other programs first. benchmarks/README.md says what is measured and
how.
"""

import concurrent.futures
import contextlib
import dataclasses
import json
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Sequence

from absl import flags

from benchmarks.data_prep.workload import Workload
from benchmarks.harness import host, systems
from benchmarks.harness.process import Worker
from benchmarks.harness.turns import failing, rotated
from data_prep.sources.registry import open_source
from electra_tf.platform import atomic_file, command_line, errors


@dataclasses.dataclass(frozen=True, kw_only=True)
class System:
    """One implementation."""

    name: str
    module: str
    packing: str = ""
    peers_environment: bool = False


MODEL_GARDEN = "model-garden"
SYSTEMS = (
    System(name="full", module="ours", packing="full"),
    System(name="reference", module="ours", packing="reference"),
    System(name="hf-tokenizers", module="hugging_face", peers_environment=True),
    System(name=MODEL_GARDEN, module="model_garden"),
)


@dataclasses.dataclass(kw_only=True)
class Measurement:
    """All turns of one system on so many cores."""

    system: str
    label: str = ""
    cores: int
    seconds: list[float] = dataclasses.field(default_factory=list)
    cpu_seconds: list[float] = dataclasses.field(default_factory=list)
    """Of all processes."""
    start_cpu_seconds: float = 0.0
    """Of one process, until it is ready."""
    peak_bytes: float = 0.0
    """Of the largest process."""
    text_tokens: int | None = None
    bytes: int | None = None
    failure: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Team:
    """A system's processes, of which a turn uses the first, one for each core."""

    workers: Sequence[Worker]

    def ask(self, requests: Sequence[dict]) -> list[dict]:
        """Asks all at once, one request each; raises `WorkerFailed` if one fails."""
        with concurrent.futures.ThreadPoolExecutor(len(requests)) as threads:
            return list(threads.map(Worker.ask, self.workers, requests))

    def close(self) -> None:
        """Ends them."""
        for worker in self.workers:
            worker.close()


def main() -> None:
    """Cuts a piece of text, runs all systems over it in turns, prints and writes the table.

    Raises:
        UserError: no text, or no directory for the results.
    """
    values = flags.FLAGS
    for name in ("input", "vocab_file"):
        if not values[name].value:
            raise errors.UserError(f"--{name} is needed: {values[name].help}")
    output = pathlib.Path(values.output_dir)
    atomic_file.make_directory(output)
    chosen = systems.chosen(SYSTEMS, values.systems)
    peers_python = pathlib.Path(values.peers_python)
    if not peers_python.exists():
        print(f"There is no {peers_python}: Hugging Face is left out; `make peers` builds it.")
        chosen = [system for system in chosen if not system.peers_environment]
    with tempfile.TemporaryDirectory() as scratch:
        texts = [_parts(values.input, int(values.megabytes * 1e6), cores, pathlib.Path(scratch))
                 for cores in range(1, values.cores + 1)]
        measured = _measure(chosen, texts, values.rounds, peers_python, {
            "vocab_file": str(pathlib.Path(values.vocab_file).absolute()),
            "max_seq_length": values.max_seq_length})
        size = texts[0][0].stat().st_size
    text = table(measured, text_bytes=size, max_seq_length=values.max_seq_length)
    print(f"\n{text}")
    atomic_file.write_atomically(output / "data_prep.md", text.encode())
    atomic_file.write_atomically(output / "data_prep.json", (json.dumps({
        "machine": host.describe(), "text_bytes": size,
        "systems": [dataclasses.asdict(one) for one in measured]}, indent=1) + "\n").encode())


def table(measured: Sequence[Measurement], *, text_bytes: int, max_seq_length: int) -> str:
    """Returns the results as a Markdown table, ratios to Model Garden on as many cores."""
    tokens = next((one.text_tokens for one in measured if one.text_tokens and one.bytes), None)
    counted = f", {tokens:,} tokens" if tokens else ""
    lines = [
        f"{text_bytes / 1e6:.1f} MB of text{counted}, examples of {max_seq_length}", "",
        "| system | cores | MB/s | million tokens/s | x Model Garden | CPU s per million tokens "
        "| x Model Garden | bytes per token | start, CPU s | peak GB |", "|---" * 10 + "|"]
    for one in measured:
        if not one.seconds:
            lines.append(f"| {one.label or one.system} | {one.cores} | failed: {one.failure} "
                         + "| " * 7 + "|")
            continue
        seconds, cpu = statistics.median(one.seconds), statistics.median(one.cpu_seconds)
        rates = sorted(text_bytes / 1e6 / taken for taken in one.seconds)
        garden = next((other for other in measured if other.seconds
                       and (other.system, other.cores) == (MODEL_GARDEN, one.cores)), None)
        lines.append("| " + " | ".join([
            one.label, str(one.cores),
            f"{text_bytes / 1e6 / seconds:.2f} ({rates[0]:.2f} to {rates[-1]:.2f})",
            f"{tokens / 1e6 / seconds:.2f}" if tokens else "",
            f"{statistics.median(garden.seconds) / seconds:.1f}" if garden else "",
            f"{cpu / tokens * 1e6:.2f}" if tokens else "",
            f"{statistics.median(garden.cpu_seconds) / cpu:.1f}" if garden else "",
            f"{one.bytes / tokens:.2f}" if tokens and one.bytes else "-",
            f"{one.start_cpu_seconds:.1f}", f"{one.peak_bytes / 1e9:.2f}"]) + " |")
    return "\n".join(lines) + "\n"


def _parts(pattern: str, size: int, count: int, directory: pathlib.Path) -> list[pathlib.Path]:
    """Writes the first documents of a text to `count` files of about equal size."""
    parts: list[list[bytes]] = [[]]
    total = 0
    for document in open_source(pattern).documents():
        if document.begins and total >= size:
            break
        if document.begins and total >= size * len(parts) // count:
            parts.append([])
        parts[-1].append(document.content + b"\n\n" * document.ends)
        total += len(document.content)
    if len(parts) < count:
        raise errors.UserError(f"--input has too few documents for {count} parts; give more text.")
    paths = [directory / f"{count}-{index}.txt" for index in range(count)]
    for path, contents in zip(paths, parts, strict=True):
        path.write_bytes(b"".join(contents))
    return paths


def _measure(chosen: Sequence[System], texts: Sequence[Sequence[pathlib.Path]], rounds: int,
             peers_python: pathlib.Path, workload: dict) -> list[Measurement]:
    """Lets every system go over `texts[n - 1]`, n files, on n cores, in every round."""
    measured: list[Measurement] = []
    running: list[tuple[Measurement, Team, Sequence[pathlib.Path]]] = []
    with contextlib.ExitStack() as processes:
        for system in chosen:
            team = _launch(system, len(texts[-1]), peers_python)
            processes.callback(team.close)
            first = Measurement(system=system.name, cores=1)
            measured.append(first)
            with failing(first, team):
                hellos = team.ask([dataclasses.asdict(Workload(
                    packing=system.packing, **workload))] * len(team.workers))
                first.label = hellos[0]["label"]
                first.start_cpu_seconds = hellos[0]["start_cpu_seconds"]
                team.ask([{"text": str(path)} for path in texts[-1]])
                running.append((first, team, texts[0]))
                for cores, parts in enumerate(texts[1:], start=2):
                    more = dataclasses.replace(
                        first, cores=cores, seconds=[], cpu_seconds=[])
                    measured.append(more)
                    running.append((more, team, parts))
                print(f"ready: {first.label}", file=sys.stderr, flush=True)
        for number in range(rounds):
            for one, team, parts in rotated(running, number):
                if not one.failure:
                    with failing(one, team):
                        _note(one, team.ask([{"text": str(path)} for path in parts]))
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return measured


def _note(one: Measurement, replies: Sequence[dict]) -> None:
    one.seconds.append(max(reply["seconds"] for reply in replies))
    one.cpu_seconds.append(sum(reply["cpu_seconds"] for reply in replies))
    one.peak_bytes = max(one.peak_bytes, *(reply["peak_bytes"] for reply in replies))
    for name in ("text_tokens", "bytes"):
        if replies[0][name] is not None:
            setattr(one, name, sum(reply[name] for reply in replies))


def _launch(system: System, count: int, peers_python: pathlib.Path) -> Team:
    return Team(workers=[systems.launch(
        f"benchmarks.data_prep.{system.module}", timeout=1200, threads=1,
        peers_python=peers_python if system.peers_environment else None,
        variables={"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"})
        for _ in range(count)])


def _define() -> None:
    flags.DEFINE_string("input", None, "Patterns of text files, as data_prep has them.")
    flags.DEFINE_string("vocab_file", None, "BERT's uncased vocabulary.")
    flags.DEFINE_float("megabytes", 4, "Text of a turn; the first of --input.", lower_bound=0.01)
    flags.DEFINE_integer("max_seq_length", 128, "Tokens of an example.", lower_bound=5)
    flags.DEFINE_integer("cores", 2, "1 to this many processes work at once.", lower_bound=1)
    flags.DEFINE_list("systems", [], "Beginnings of names: "
                      f"{', '.join(system.name for system in SYSTEMS)}; all if empty.")
    systems.define_flags(rounds=5)


if __name__ == "__main__":
    _define()
    command_line.run(main, summary=__doc__, groups={"Flags": (
        "input", "vocab_file", "megabytes", "max_seq_length", "cores", "systems", "rounds",
        "output_dir", "peers_python")})
