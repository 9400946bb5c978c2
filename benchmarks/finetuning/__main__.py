r"""Measures fine-tuning and prediction on SST-2 beside Hugging Face's.

    python -m benchmarks.finetuning --data_dir=glue --vocab_file=vocab.txt

ELECTRA-Small, new weights, real sentences. Prints examples per second in training and in inference
and writes finetuning.md and finetuning.json. About ten minutes on two cores; stop other programs
first. benchmarks/README.md says what is measured and how.
"""

import contextlib
import dataclasses
import json
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Sequence

from absl import flags

from benchmarks.finetuning.workload import Workload, write_rows
from benchmarks.harness import host, systems
from benchmarks.harness.process import Worker
from benchmarks.harness.turns import failing, rotated
from electra_tf.platform import atomic_file, command_line, errors

WHAT = ("train", "infer")


@dataclasses.dataclass(frozen=True, kw_only=True)
class System:
    """One setting of one implementation."""

    title: str
    module: str
    precision: str
    grouped: bool = False


SYSTEMS = (
    System(title="electra_tf", module="ours", precision="bfloat16"),
    System(title="electra_tf", module="ours", precision="float32"),
    System(title="Hugging Face", module="hugging_face", precision="bfloat16", grouped=True),
    System(title="Hugging Face", module="hugging_face", precision="bfloat16"),
    System(title="Hugging Face", module="hugging_face", precision="float32", grouped=True),
)


@dataclasses.dataclass(kw_only=True)
class Measurement:
    """Examples per second of every turn of one system."""

    label: str
    ours: bool
    rates: dict[str, list[float]] = dataclasses.field(
        default_factory=lambda: {what: [] for what in WHAT})
    failure: str = ""

    def median(self, what: str) -> float | None:
        """Returns the median over the turns; None if there was none."""
        return statistics.median(self.rates[what]) if self.rates[what] else None


def main() -> None:
    """Encodes sentences, runs all systems in turns, prints and writes the table.

    Raises:
        UserError: no data, or no directory for the results.
    """
    values = flags.FLAGS
    for name in ("data_dir", "vocab_file"):
        if not values[name].value:
            raise errors.UserError(f"--{name} is needed: {values[name].help}")
    output = pathlib.Path(values.output_dir)
    atomic_file.make_directory(output)
    with tempfile.TemporaryDirectory() as scratch:
        rows = pathlib.Path(scratch) / "rows.npz"
        lengths = _encode(values.data_dir, values.vocab_file, values.examples, rows)
        measured = _measure(rows, values.batch, values.rounds, pathlib.Path(values.peers_python))
    text = table(measured, batch=values.batch, lengths=lengths)
    print(f"\n{text}")
    atomic_file.write_atomically(output / "finetuning.md", text.encode())
    atomic_file.write_atomically(output / "finetuning.json", (json.dumps({
        "machine": host.describe(), "batch": values.batch,
        "systems": [dataclasses.asdict(one) for one in measured]}, indent=1) + "\n").encode())


def table(measured: Sequence[Measurement], *, batch: int, lengths: Sequence[int]) -> str:
    """Returns the results as a Markdown table, ratios to the fastest peer."""
    lines = [
        f"ELECTRA-Small on {len(lengths):,} sentences of SST-2, batch {batch}; "
        f"{statistics.mean(lengths):.1f} tokens on average, {max(lengths)} at most", "",
        "| system | training, examples/s | x fastest peer | inference, examples/s "
        "| x fastest peer |", "|---|---|---|---|---|"]
    best = {what: max((one.median(what) for one in measured if not one.ours and one.median(what)),
                      default=None) for what in WHAT}
    for one in measured:
        cells = [one.label]
        for what in WHAT:
            median = one.median(what)
            if median is None:
                cells += [f"failed: {one.failure}" if one.failure else "-", ""]
                continue
            cells += [f"{median:,.0f} ({min(one.rates[what]):,.0f} to {max(one.rates[what]):,.0f})",
                      f"{median / best[what]:.2f}" if best[what] else ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _encode(data_dir: str, vocab_file: str, count: int, path: pathlib.Path) -> list[int]:
    """Writes the first sentences' ids and classes; returns their lengths."""
    import numpy as np

    from electra_tf.config.finetuning import TaskConfig
    from electra_tf.tasks import glue, glue_files
    from electra_tf.tasks.kinds.registry import KINDS
    from electra_tf.tasks.task import TaskSpec
    from electra_tf.text.rows import RowEncoder
    from electra_tf.text.tokenization import TextSettings
    from electra_tf.text.vocabulary import Vocabulary

    task, vocabulary = glue.TASKS["sst2"], Vocabulary.load(vocab_file)
    examples = glue_files.read_split(task, pathlib.Path(data_dir), "train")[:count]
    rows = KINDS[task.kind].encode(
        TaskSpec.of_glue(task), examples, RowEncoder(TextSettings(vocabulary=vocabulary), 128),
        TaskConfig()).rows
    write_rows(str(path), [row.ids for row in rows],
               np.array([int(row.targets["label"]) for row in rows]))
    return [len(row.ids) for row in rows]


def _measure(rows: pathlib.Path, batch: int, rounds: int,
             peers_python: pathlib.Path) -> list[Measurement]:
    if not peers_python.exists():
        print(f"There is no {peers_python}: Hugging Face is left out; `make bench` builds it.")
    measured, running = [], []
    with contextlib.ExitStack() as processes:
        for system in SYSTEMS:
            ours = system.module == "ours"
            if not ours and not peers_python.exists():
                continue
            worker = _launch(system, peers_python)
            processes.callback(worker.close)
            one = Measurement(label=system.title, ours=ours)
            measured.append(one)
            with failing(one, worker):
                hello = worker.ask(dataclasses.asdict(Workload(
                    rows=str(rows), batch=batch, precision=system.precision,
                    grouped=system.grouped, threads=host.available_cores())))
                one.label = f"{system.title}, {hello['label']}"
                for what in WHAT * 2:  # The first turns compile.
                    worker.ask({"what": what})
                running.append((one, worker))
                print(f"ready: {one.label}", file=sys.stderr, flush=True)
        for number in range(rounds):
            for one, worker in rotated(running, number):
                if one.failure:
                    continue
                with failing(one, worker):
                    for what in WHAT:
                        reply = worker.ask({"what": what})
                        one.rates[what].append(reply["examples"] / reply["seconds"])
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return measured


def _launch(system: System, peers_python: pathlib.Path) -> Worker:
    return systems.launch(f"benchmarks.finetuning.{system.module}", timeout=1200,
                          peers_python=None if system.module == "ours" else peers_python)


def _define() -> None:
    flags.DEFINE_string("data_dir", None, "GLUE's directory, with SST-2/train.tsv.")
    flags.DEFINE_string("vocab_file", None, "BERT's uncased vocabulary.")
    flags.DEFINE_integer("examples", 1600, "Sentences of a turn.", lower_bound=1)
    flags.DEFINE_integer("batch", 32, "Examples of a batch.", lower_bound=1)
    systems.define_flags(rounds=5)


if __name__ == "__main__":
    _define()
    command_line.run(main, summary=__doc__, groups={"Flags": (
        "data_dir", "vocab_file", "examples", "batch", "rounds", "output_dir", "peers_python")})
