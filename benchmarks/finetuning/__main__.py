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
from benchmarks.harness.turns import Case, Role, System
from benchmarks.pretraining.cases import workload_of

TURNS = {"training": {"what": "train"}, "inference": {"what": "infer"}}
SYSTEMS = (
    *(System(name=f"ours-{precision}", title="electra_tf", module="benchmarks.finetuning.ours",
             role=Role.OURS, settings={"precision": precision})
      for precision in ("bfloat16", "float32")),
    *(System(name=name, title="Hugging Face", module="benchmarks.finetuning.hugging_face",
             settings={"precision": name.partition("-")[2]}, in_peers_environment=True)
      for name in ("hf-bfloat16", "hf-float32")),
)


def main() -> None:
    """Encodes sentences, measures all systems, and prints and writes the table."""
    values = flags.FLAGS
    bench = command.Bench(SYSTEMS)
    ids, labels = encode(pathlib.Path(values.data_dir), values.vocab_file, values.examples)
    measured = bench.measure(Case(
        name="sst2", turns=TURNS, warm_up=[*TURNS.values()] * 2,  # The first ones compile.
        rounds=values.rounds, fields={
            "ids": ids, "labels": labels, "batch": values.batch,
            "workload": dataclasses.asdict(workload_of("small-128"))}))
    columns = [column for turn in TURNS for column in tables.compared(
        measured, f"{turn}, examples/s", lambda one, turn=turn: [
            len(ids) / seconds for seconds in one.values(turn)])]
    lengths = [len(row) for row in ids]
    bench.save(
        "finetuning", f"ELECTRA-Small on {len(ids):,} sentences of SST-2, batch {values.batch}",
        measured, [f"{statistics.mean(lengths):.1f} tokens on average, {max(lengths)} at most.", "",
                   *tables.table([one.label for one in measured], columns)],
        {"batch": values.batch, "examples": len(ids)})


def encode(data_dir: pathlib.Path, vocab_file: str, count: int) -> tuple[
        list[list[int]], list[int]]:
    """Returns the token ids of the first sentences, and their classes."""
    from electra_tf.config.finetuning import TaskConfig
    from electra_tf.tasks import glue
    from electra_tf.tasks.registry import KINDS
    from electra_tf.text.rows import RowEncoder
    from electra_tf.text.tokenization import TextSettings
    from electra_tf.text.vocabulary import Vocabulary

    task, text = glue.TASKS["sst2"], TextSettings(vocabulary=Vocabulary.load(vocab_file))
    rows = KINDS[task.spec.kind].encode(
        task.spec, glue.read_split(task, data_dir, "train")[:count],
        RowEncoder(text, 128), TaskConfig()).rows
    return [row.ids.tolist() for row in rows], [int(row.targets["label"]) for row in rows]


if __name__ == "__main__":
    flags.DEFINE_string("data_dir", None, "GLUE's directory, with SST-2/train.tsv.", required=True)
    flags.DEFINE_string("vocab_file", None, "BERT's uncased vocabulary.", required=True)
    flags.DEFINE_integer("examples", 1600, "Sentences of a turn.", lower_bound=1)
    flags.DEFINE_integer("batch", 32, "Examples of a batch.", lower_bound=1)
    command.define_flags(SYSTEMS, rounds=5)
    command.run(main, __doc__, ["data_dir", "vocab_file", "examples", "batch"])
