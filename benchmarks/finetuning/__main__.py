r"""Measures fine-tuning and prediction on SST-2 beside Hugging Face's.

    python -m benchmarks.finetuning --data_dir=glue --vocab_file=vocab.txt

ELECTRA-Small, new weights, real sentences. Prints examples per second in training and in inference
and writes finetuning.md and finetuning.json. About ten minutes on two cores; stop other programs
first. benchmarks/README.md describes the measurement.
"""

import pathlib
import statistics
import tempfile
from collections.abc import Sequence

from absl import flags

from benchmarks.finetuning import rows
from benchmarks.harness import command, host, tables
from benchmarks.harness.turns import Measurement, Role, System
from electra_tf.platform import command_line

TURNS = {"train": {"what": "train"}, "infer": {"what": "infer"}}


def _peer(name: str, precision: str, grouped: bool) -> System:
    return System(name=name, title="Hugging Face", module="benchmarks.finetuning.hugging_face",
                  settings={"precision": precision, "grouped": grouped}, in_peers_environment=True)


SYSTEMS = (
    *(System(name=f"ours-{precision}", title="electra_tf", module="benchmarks.finetuning.ours",
             role=Role.OURS, settings={"precision": precision})
      for precision in ("bfloat16", "float32")),
    _peer("hf-bfloat16-grouped", "bfloat16", True),
    _peer("hf-bfloat16", "bfloat16", False),
    _peer("hf-float32-grouped", "float32", True),
)


def main() -> None:
    """Encodes sentences, runs all systems in turns, prints and writes the table.

    Raises:
        UserError: no data, or no directory for the results.
    """
    values = flags.FLAGS
    command.require("data_dir", "vocab_file")
    bench = command.Bench.of_flags(SYSTEMS)
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "rows.npz"
        lengths = _encode(values.data_dir, values.vocab_file, values.examples, path)
        measured = bench.measure(
            "sst2", {"rows": str(path), "batch": values.batch, "threads": host.available_cores()},
            TURNS, warm_up=[*TURNS.values()] * 2, rounds=values.rounds)  # The first ones compile.
    page = "\n".join([
        f"# ELECTRA-Small on {len(lengths):,} sentences of SST-2, batch {values.batch}", "",
        f"{statistics.mean(lengths):.1f} tokens on average, {max(lengths)} at most. "
        f"{tables.host_line(bench.machine)}; {tables.versions_line(measured)}.", "",
        *table(measured, len(lengths)), "", *tables.failures(measured), ""])
    print(f"\n{page}")
    bench.save("finetuning", page, {"batch": values.batch, "examples": len(lengths),
                                    "systems": command.plain(measured)})


def table(measured: Sequence[Measurement], examples: int) -> list[str]:
    """Returns the results as Markdown, ratios to the fastest peer of each kind of turn."""
    lines = [["system", "training, examples/s", "x fastest peer", "inference, examples/s",
              "x fastest peer"], *([one.label] for one in measured)]
    for what in TURNS:
        def rates(one: Measurement, what: str = what) -> list[float]:
            return [examples / seconds for seconds in one.values(what)]

        best = tables.fastest_peer(measured, rates)
        for line, one in zip(lines[1:], measured, strict=True):
            line += [tables.ranged(rates(one)), tables.ratio(tables.median(rates(one)), best)]
    return tables.table(lines)


def _encode(data_dir: str, vocab_file: str, count: int, path: pathlib.Path) -> list[int]:
    """Writes the first sentences' ids and classes; returns their lengths."""
    import numpy as np

    from electra_tf.config.finetuning import TaskConfig
    from electra_tf.tasks import glue
    from electra_tf.tasks.kinds.registry import KINDS
    from electra_tf.tasks.task import TaskSpec
    from electra_tf.text.rows import RowEncoder
    from electra_tf.text.tokenization import TextSettings
    from electra_tf.text.vocabulary import Vocabulary

    task, vocabulary = glue.TASKS["sst2"], Vocabulary.load(vocab_file)
    examples = glue.read_split(task, pathlib.Path(data_dir), "train")[:count]
    found = KINDS[task.kind].encode(
        TaskSpec.of_glue(task), examples, RowEncoder(TextSettings(vocabulary=vocabulary), 128),
        TaskConfig()).rows
    rows.write(str(path), [row.ids for row in found],
               np.array([int(row.targets["label"]) for row in found]))
    return [len(row.ids) for row in found]


if __name__ == "__main__":
    flags.DEFINE_string("data_dir", None, "GLUE's directory, with SST-2/train.tsv.")
    flags.DEFINE_string("vocab_file", None, "BERT's uncased vocabulary.")
    flags.DEFINE_integer("examples", 1600, "Sentences of a turn.", lower_bound=1)
    flags.DEFINE_integer("batch", 32, "Examples of a batch.", lower_bound=1)
    command.define_flags(rounds=5, systems=SYSTEMS)
    command_line.run(main, summary=__doc__, groups={
        "What": ["data_dir", "vocab_file", "systems", "examples", "batch", "peers_python"],
        "How": ["rounds", "timeout"], "Results": ["output_dir"]})
