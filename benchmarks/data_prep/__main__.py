r"""Compares the speed from text to records with Hugging Face's tokenizers, on one core.

    python -m benchmarks.data_prep --input=text.txt --vocab_file=vocab.txt

Prints MB/s and tokens/s. With 4 MB of text it takes some minutes; stop other programs first.
benchmarks/README.md describes the measurement.
"""

import os
from collections.abc import Sequence

from absl import flags

from benchmarks import driver
from benchmarks.driver import BASELINE, OURS, System

SYSTEMS = tuple(
    System(name=name, module="benchmarks.data_prep.systems", role=role, settings={"name": name},
           pytorch=role == BASELINE)
    for name, role in (("full", OURS), ("reference", OURS), ("hf-tokenizers", BASELINE)))


def main() -> None:
    """Measures all systems and prints the table."""
    values = flags.FLAGS
    systems = driver.measure("text", driver.select(SYSTEMS), {
        "text": os.path.abspath(values.input), "vocab_file": os.path.abspath(values.vocab_file),
        "max_seq_length": values.max_seq_length}, rounds=values.rounds, threads=1)
    size = os.path.getsize(values.input)
    driver.print_page(f"{size / 1e6:.1f} MB of text, examples of {values.max_seq_length}",
                      table(systems, size), systems)


def table(systems: Sequence[System], text_bytes: int) -> list[str]:
    """Returns the results as Markdown."""
    return driver.table(systems, [
        *driver.compare(systems, "MB/s", lambda system: [
            text_bytes / 1e6 / seconds for seconds in system.values("seconds")], ".2f"),
        *driver.compare(systems, "million tokens/s", lambda system: [
            tokens / 1e6 / seconds for tokens, seconds in zip(
                system.values("tokens"), system.values("seconds"), strict=True)], ".2f"),
        driver.column(systems, "peak GB", lambda system: system.values("peak_gb"), ".2f")])


if __name__ == "__main__":
    flags.DEFINE_string("input", None, "Text file with blank lines between documents.",
                        required=True)
    flags.DEFINE_string("vocab_file", None, "Vocabulary file of uncased BERT.", required=True)
    flags.DEFINE_integer("max_seq_length", 128, "Tokens per example.", lower_bound=5)
    driver.run(main, __doc__, ["input", "vocab_file", "max_seq_length"], SYSTEMS, rounds=5)
