r"""Compares data preparation with Model Garden's builder and Hugging Face's tokenizers.

    python -m benchmarks.data_prep --input='corpus/*.txt' --vocab_file=vocab.txt

Prints MB/s and tokens/s of one core, and writes data_prep.md and data_prep.json. It takes some
minutes; stop other programs first. benchmarks/README.md describes the measurement.
"""

import pathlib
import tempfile
from collections.abc import Sequence

from absl import flags

from benchmarks.harness import command, tables
from benchmarks.harness.turns import BenchmarkCase, Measurement, Role, system
from data_prep.sources.registry import open_source

SYSTEMS = (
    system("full", "data_prep.ours", packing="full"),
    system("reference", "data_prep.ours", packing="reference"),
    system("hf-tokenizers", "data_prep.hugging_face",
           variables={"TOKENIZERS_PARALLELISM": "false"}),
    system("model-garden", "data_prep.model_garden"),
)


def main() -> None:
    """Cuts the text, measures all systems, and prints and writes the table."""
    values = flags.FLAGS
    bench = command.Bench(SYSTEMS)
    with tempfile.TemporaryDirectory() as scratch:
        text = pathlib.Path(scratch) / "text.txt"
        write_beginning(values.input, int(values.megabytes * 1e6), text)
        turn = {"text": str(text)}
        measured = bench.measure(BenchmarkCase(
            name="text", turns={"text": turn}, warm_up=[turn], rounds=values.rounds, fields={
                "vocab_file": str(pathlib.Path(values.vocab_file).absolute()),
                "max_seq_length": values.max_seq_length}), threads=1)
        size = text.stat().st_size
    bench.save("data_prep", f"{size / 1e6:.1f} MB of text, examples of {values.max_seq_length}",
               measured, table(measured, size), {"text_bytes": size})


def table(measured: Sequence[Measurement], text_bytes: int) -> list[str]:
    """Returns the results as Markdown."""
    # Only ours counts the text's tokens and writes records.
    tokens = next((count / 1e6 for result in measured if result.system.role is Role.OURS
                   for count in result.values("text", "text_tokens")), None)
    written = [tables.median([reply["bytes"] / 1e6 for reply in result.turns.get("text", ())
                              if "bytes" in reply]) for result in measured]
    return tables.table(measured, [
        *tables.compared(measured, "MB/s", lambda result: [
            text_bytes / 1e6 / seconds for seconds in result.values("text")], ".2f"),
        ["million tokens/s", *(tables.ratio(tokens, tables.median(result.values("text")))
                               for result in measured)],
        ["bytes per token", *(tables.ratio(size, tokens) for size in written)],
        ["peak GB", *(f"{result.peak_bytes / 1e9:.2f}" for result in measured)]])


def write_beginning(pattern: str, size: int, path: pathlib.Path) -> None:
    """Writes the first documents of a text that have at least `size` bytes together."""
    with path.open("wb") as file:
        for document in open_source(pattern).documents():
            if document.begins and file.tell() >= size:
                break
            file.write(document.content + b"\n\n" * document.ends)


if __name__ == "__main__":
    flags.DEFINE_string("input", None, "Patterns of text files, as for data_prep.build_vocab.",
                        required=True)
    flags.DEFINE_string("vocab_file", None, "Vocabulary file of uncased BERT.", required=True)
    flags.DEFINE_float("megabytes", 4, "Megabytes of text per turn.", lower_bound=0.01)
    flags.DEFINE_integer("max_seq_length", 128, "Tokens per example.", lower_bound=5)
    command.run(main, __doc__, ["input", "vocab_file", "megabytes", "max_seq_length"], SYSTEMS,
                rounds=5)
