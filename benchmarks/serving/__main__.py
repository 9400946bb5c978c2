r"""Compares exports of a classifier with Hugging Face: latency of one text, throughput of batches.

    python -m benchmarks.serving --exports=served/sst2/1,onnx/sst2 --hugging_face=sst2_hf \
        --texts=sentences.txt

All directories hold the same classifier: versions of SavedModels or ONNX directories, and what
convert_checkpoint writes for Hugging Face. Prints a table per file of texts in some minutes; stop
other programs first. benchmarks/README.md describes the measurement.
"""

import os
from collections.abc import Sequence

import numpy as np
from absl import flags

from benchmarks import driver
from benchmarks.driver import OURS, System

HUGGING_FACE = tuple(
    System(name=f"hf-{precision}", module="benchmarks.serving.systems", pytorch=True,
           settings={"precision": precision}) for precision in ("bfloat16", "float32", "int8"))


def main() -> None:
    """Measures all systems, and prints a table for every file."""
    values = flags.FLAGS
    directory = os.path.abspath(values.hugging_face)
    systems = driver.select([
        *(System(name=f"ours-{path}", module="benchmarks.serving.systems", role=OURS,
                 settings={"directory": os.path.abspath(path)}) for path in values.exports),
        *HUGGING_FACE])
    files = list(map(os.path.abspath, values.texts))
    systems = driver.measure("serving", systems, {
        "directory": directory, "files": files, "max_length": values.max_seq_length},
        rounds=values.rounds)
    driver.print_page("Serving: strings in and probabilities out", sum(
        (section(file, systems) for file in files), []), systems)


def section(file: str, systems: Sequence[System]) -> list[str]:
    """Returns a table as Markdown; the last column tells whether all answer the same."""
    def latency(percent: float) -> driver.Numbers:
        # The milliseconds within which `percent` % of the calls end.
        return lambda system: [1e3 * np.percentile(calls, percent, method="inverted_cdf")
                               for calls in system.values(f"{file}/1")]

    answers = [(system.values("probabilities") or [None])[0] for system in systems]
    first = next((answer for answer in answers if answer), None)
    differences = ["-" if answer is None else f"{np.abs(np.subtract(answer, first)).max():.1g}"
                   for answer in answers]
    return [f"## {os.path.basename(file)}", "", *driver.table(systems, [
        *driver.compare(systems, "1 text: p50, ms", latency(50), ",.2f", lower_is_better=True),
        *driver.compare(systems, "p99, ms", latency(99), ",.2f", lower_is_better=True),
        *driver.compare(systems, "s for all texts, 32 a call", lambda system: list(
            map(sum, system.values(f"{file}/32"))), ",.2f", lower_is_better=True),
        ("probabilities differ by", differences)]), ""]


if __name__ == "__main__":
    flags.DEFINE_list("exports", None, "Versions of SavedModels and ONNX directories.",
                      required=True)
    flags.DEFINE_string("hugging_face", None, "Directory in Hugging Face's format.", required=True)
    flags.DEFINE_list("texts", None, "Files with a text in each line.", required=True)
    flags.DEFINE_integer("max_seq_length", 128, "Tokens of a text that Hugging Face's tokenizer "
                         "keeps, as the exports do.", lower_bound=3)
    driver.run(main, __doc__, ["exports", "hugging_face", "texts", "max_seq_length"], HUGGING_FACE,
               rounds=5)
