r"""Compares fine-tuning and prediction on SST-2 with Hugging Face.

    python -m benchmarks.finetuning --data_dir=glue --vocab_file=vocab.txt

Prints examples/s of training and inference with a new ELECTRA-Small, and writes finetuning.md and
finetuning.json. The command takes ten minutes on two AVX-512 cores; stop other programs first.
benchmarks/README.md describes the measurement.
"""

import dataclasses
import pathlib
import statistics

from absl import flags

from benchmarks.harness import command, tables
from benchmarks.harness.turns import BenchmarkCase, system
from benchmarks.pretraining.cases import workload_of

TURNS = {"training": {"what": "train"}, "inference": {"what": "infer"}}
SYSTEMS = tuple(system(f"{name}-{precision}", f"finetuning.{library}", precision=precision)
                for name, library in (("ours", "ours"), ("hf", "hugging_face"))
                for precision in ("bfloat16", "float32"))


def main() -> None:
    """Encodes sentences, measures all systems, and prints and writes the table."""
    # Imported here: TensorFlow takes seconds, which --help does not need.
    from electra_tf.config.finetuning import TaskConfig
    from electra_tf.tasks import glue
    from electra_tf.tasks.registry import KINDS
    from electra_tf.text.rows import RowEncoder
    from electra_tf.text.tokenization import TextSettings
    from electra_tf.text.vocabulary import Vocabulary

    values = flags.FLAGS
    bench = command.Bench(SYSTEMS)
    task = glue.TASKS["sst2"]
    text = TextSettings(vocabulary=Vocabulary.load(values.vocab_file))
    examples = glue.read_split(task, pathlib.Path(values.data_dir), "train")[:values.examples]
    rows = KINDS[task.spec.kind].encode(
        task.spec, examples, RowEncoder(text, 128), TaskConfig()).rows
    measured = bench.measure(BenchmarkCase(
        name="sst2", turns=TURNS, warm_up=[*TURNS.values()] * 2,  # The first ones compile.
        rounds=values.rounds, fields={
            "ids": [row.ids.tolist() for row in rows], "batch": values.batch,
            "labels": [int(row.targets["label"]) for row in rows],
            "workload": dataclasses.asdict(workload_of("small-128"))}))
    columns = [column for turn in TURNS for column in tables.compared(
        measured, f"{turn}, examples/s", lambda result, turn=turn: [
            len(rows) / seconds for seconds in result.values(turn)])]
    lengths = [len(row.ids) for row in rows]
    bench.save(
        "finetuning", f"ELECTRA-Small on {len(rows):,} sentences of SST-2, batch {values.batch}",
        measured, [f"{statistics.mean(lengths):.1f} tokens on average, {max(lengths)} at most.", "",
                   *tables.table(measured, columns)],
        {"batch": values.batch, "examples": len(rows)})


if __name__ == "__main__":
    flags.DEFINE_string("data_dir", None, "Directory of GLUE, with SST-2/train.tsv.", required=True)
    flags.DEFINE_string("vocab_file", None, "Vocabulary file of uncased BERT.", required=True)
    flags.DEFINE_integer("examples", 1600, "Sentences per turn.", lower_bound=1)
    flags.DEFINE_integer("batch", 32, "Sentences per batch.", lower_bound=1)
    command.run(main, __doc__, ["data_dir", "vocab_file", "examples", "batch"], SYSTEMS, rounds=5)
