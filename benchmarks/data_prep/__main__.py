r"""Measures text to records beside Model Garden's builder and Hugging Face's tokenizers.

    python -m benchmarks.data_prep --input='corpus/*.txt' --vocab_file=vocab.txt

Prints MB/s and tokens/s of one core and of two, and writes data_prep.md and data_prep.json. Some
five minutes on two cores; stop other programs first. benchmarks/README.md describes the method.
"""

import concurrent.futures
import dataclasses
import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags

from benchmarks.harness import command, tables
from benchmarks.harness.process import Worker
from benchmarks.harness.turns import Case, Measurement, Role, System
from data_prep.sources.registry import open_source
from electra_tf.platform.errors import UserError

MODEL_GARDEN = "model-garden"


def _system(name: str, title: str, module: str, **settings: str) -> System:
    return System(name=name, title=title, module=f"benchmarks.data_prep.{module}",
                  settings=settings, role=Role.OURS if module == "ours" else Role.PEER,
                  in_peers_environment=module == "hugging_face")


SYSTEMS = (
    _system("full", "electra_tf", "ours", packing="full"),
    _system("reference", "electra_tf", "ours", packing="reference"),
    _system("hf-tokenizers", "Hugging Face", "hugging_face"),
    _system(MODEL_GARDEN, "Model Garden", "model_garden"),
)


@dataclasses.dataclass(frozen=True)
class Team:
    """A system's processes, one for each core; a turn uses one for each of its texts."""

    workers: Sequence[Worker]

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Asks all at once: the longest time, the largest memory, the sums of what is counted."""
        requests = ([{"text": text} for text in request["texts"]] if "texts" in request
                    else [request] * len(self.workers))
        with concurrent.futures.ThreadPoolExecutor(len(requests)) as threads:
            replies = list(threads.map(Worker.ask, self.workers, requests))
        return replies[0] | {
            name: combine(reply[name] for reply in replies)
            for name, combine in {"seconds": max, "peak_bytes": max, "cpu_seconds": sum,
                                  "text_tokens": sum, "bytes": sum}.items() if name in replies[0]}

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
    command.require("input", "vocab_file")
    bench = command.Bench.of_flags(SYSTEMS)
    with tempfile.TemporaryDirectory() as scratch:
        texts = [parts(values.input, int(values.megabytes * 1e6), cores, pathlib.Path(scratch))
                 for cores in range(1, values.cores + 1)]
        turns = {str(len(paths)): {"texts": [str(path) for path in paths]} for paths in texts}
        case = Case(name="text", turns=turns, warm_up=[turns[str(values.cores)]],
                    rounds=values.rounds, fields={
                        "vocab_file": str(pathlib.Path(values.vocab_file).absolute()),
                        "max_seq_length": values.max_seq_length})
        measured = bench.measure(
            case, threads=1, team=lambda start: Team([start() for _ in range(values.cores)]))
        size = texts[0][0].stat().st_size
    bench.save("data_prep", f"{size / 1e6:.1f} MB of text, examples of {values.max_seq_length}",
               measured, table(measured, list(turns), size), {"text_bytes": size})


def table(measured: Sequence[Measurement], cores: Sequence[str], text_bytes: int) -> list[str]:
    """Returns the results as Markdown, ratios to Model Garden on as many cores."""
    # Only ours counts the text's tokens and writes records.
    tokens = next((count for one in measured if one.system.role is Role.OURS
                   for count in one.values("1", "text_tokens")), None)
    garden = next((one for one in measured if one.system.name == MODEL_GARDEN), None)
    lines = [["system", "cores", "MB/s", "million tokens/s", "x Model Garden",
              "CPU s per million tokens", "x Model Garden", "bytes per token", "start, CPU s",
              "peak GB"]]
    for one in measured:
        for count in cores:
            seconds = one.values(count)
            (wall, cpu), (their_wall, their_cpu) = (
                [tables.median(system.values(count, field)) if system else None
                 for field in ("seconds", "cpu_seconds")] for system in (one, garden))
            written = [reply.get("bytes") for reply in one.turns.get(count, [{}])][0]
            lines.append([
                one.label, count,
                tables.ranged([text_bytes / 1e6 / taken for taken in seconds], ".2f"),
                tables.ratio(tokens and tokens / 1e6, wall), tables.ratio(their_wall, wall, ".1f"),
                tables.ratio(cpu, tokens and tokens / 1e6), tables.ratio(their_cpu, cpu, ".1f"),
                tables.ratio(written, tokens), f"{one.start_cpu_seconds:.1f}",
                f"{one.peak_bytes / 1e9:.2f}"])
    return tables.table(lines)


def parts(pattern: str, size: int, count: int, directory: pathlib.Path) -> list[pathlib.Path]:
    """Writes the first documents of a text to `count` files of about equal size.

    Raises:
        UserError: the text has too few documents.
    """
    cut: list[list[bytes]] = [[]]
    total = 0
    for document in open_source(pattern).documents():
        if document.begins and total >= size:
            break
        if document.begins and total >= size * len(cut) // count:
            cut.append([])
        cut[-1].append(document.content + b"\n\n" * document.ends)
        total += len(document.content)
    if len(cut) < count:
        raise UserError(f"--input has too few documents for {count} parts; give more text.")
    paths = [directory / f"{count}-{index}.txt" for index in range(count)]
    for path, contents in zip(paths, cut, strict=True):
        path.write_bytes(b"".join(contents))
    return paths


if __name__ == "__main__":
    flags.DEFINE_string("input", None, "Patterns of text files, as data_prep has them.")
    flags.DEFINE_string("vocab_file", None, "BERT's uncased vocabulary.")
    flags.DEFINE_float("megabytes", 4, "Text of a turn; the first of --input.", lower_bound=0.01)
    flags.DEFINE_integer("max_seq_length", 128, "Tokens of an example.", lower_bound=5)
    flags.DEFINE_integer("cores", 2, "1 to this many processes work at once.", lower_bound=1)
    command.define_flags(rounds=5, systems=SYSTEMS)
    command.run(main, summary=__doc__, how=["cores"],
                what=["input", "vocab_file", "megabytes", "max_seq_length"])
