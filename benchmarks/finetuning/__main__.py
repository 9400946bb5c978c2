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
from benchmarks.harness import command, tables
from benchmarks.harness.turns import Case, Measurement, Role, System
from electra_tf.platform.machine import usable_cores

TURNS = {"train": {"what": "train"}, "infer": {"what": "infer"}}
SYSTEMS = (
    *(System(name=f"ours-{precision}", title="electra_tf", module="benchmarks.finetuning.ours",
             role=Role.OURS, settings={"precision": precision})
      for precision in ("bfloat16", "float32")),
    *(System(name=name, title="Hugging Face", module="benchmarks.finetuning.hugging_face",
             settings={"precision": name.split("-")[1], "grouped": name.endswith("grouped")},
             in_peers_environment=True)
      for name in ("hf-bfloat16-grouped", "hf-bfloat16", "hf-float32-grouped")),
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
        measured = bench.measure(Case(
            name="sst2", turns=TURNS, warm_up=[*TURNS.values()] * 2,  # The first ones compile.
            rounds=values.rounds, fields={"rows": str(path), "batch": values.batch,
                                          "threads": usable_cores()}))
    bench.save(
        "finetuning",
        f"ELECTRA-Small on {len(lengths):,} sentences of SST-2, batch {values.batch}", measured,
        [f"{statistics.mean(lengths):.1f} tokens on average, {max(lengths)} at most.", "",
         *table(measured, len(lengths))], {"batch": values.batch, "examples": len(lengths)})


def table(measured: Sequence[Measurement], examples: int) -> list[str]:
    """Returns the results as Markdown, ratios to the fastest peer of each kind of turn."""
    return tables.compared(measured, [
        tables.Column(f"{heading}, examples/s", lambda one, what=what: [
            examples / seconds for seconds in one.values(what)])
        for what, heading in (("train", "training"), ("infer", "inference"))])


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
    command.run(main, summary=__doc__, what=["data_dir", "vocab_file", "examples", "batch"])
