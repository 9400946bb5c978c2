r"""Measures answers to texts beside Hugging Face's: latency of one text, throughput of batches.

    python -m benchmarks.serving --data_dir=glue --vocab_file=vocab.txt

ELECTRA-Small with two classes, new weights, as `run_finetuning.py --mode=export` writes it. Prints
a table per case and writes serving.md and serving.json. About fifteen minutes on two cores; stop
other programs first. benchmarks/README.md says what is measured and how.
"""

import functools
import json
import pathlib
import sys
import tempfile
from collections.abc import Mapping, Sequence

from absl import flags

from benchmarks.harness import host
from benchmarks.harness.systems import define_flags
from benchmarks.serving import report, systems
from benchmarks.serving.turns import BATCHES, Turns
from benchmarks.serving.workload import MAX_LENGTH, write_texts
from electra_tf.platform import atomic_file, command_line
from electra_tf.platform.errors import UserError

SENTENCES = "sst2"


def main() -> None:
    """Writes the model, runs all systems in turns, prints and writes the tables.

    Raises:
        UserError: no data, an unknown case, system or size, no directory for the results; systems
            that don't answer the same.
    """
    values = flags.FLAGS
    for name in ("data_dir", "vocab_file"):
        if not values[name].value:
            raise UserError(f"--{name} is needed: {values[name].help}")
    _check(values.cases, values.texts)
    peers_python, output = pathlib.Path(values.peers_python), pathlib.Path(values.output_dir)
    compared = systems.chosen(values.systems, with_peers_environment=peers_python.exists())
    if not peers_python.exists():
        print(f"There is no {peers_python}: Hugging Face is left out; `make peers` builds it.")
    atomic_file.make_directory(output)
    machine = host.describe()
    with tempfile.TemporaryDirectory() as scratch:
        directory, texts = pathlib.Path(scratch), pathlib.Path(scratch) / "texts.json"
        tokens = _prepare(directory, texts, {system.precision for system in compared
                                             if system.ours})
        cores = host.available_cores()
        measured = Turns(
            tokens=tokens, rounds=values.rounds,
            launch=lambda system: systems.launch(system, peers_python),
            workload_of=lambda system: system.workload(directory, texts, cores),
            say=functools.partial(print, file=sys.stderr, flush=True)).measure(compared)
    page = report.page(measured, tokens, machine=machine, model_size=values.model_size,
                       rounds=values.rounds)
    print(f"\n{page}")
    atomic_file.write_atomically(output / "serving.md", page.encode())
    atomic_file.write_atomically(output / "serving.json", (json.dumps({
        "machine": machine, "tokens": tokens, "systems": report.to_json(measured)},
        indent=1) + "\n").encode())


def _check(cases: Sequence[str], texts: int) -> None:
    for case in cases:
        if case != SENTENCES and not (case.isdigit() and 3 <= int(case) <= MAX_LENGTH):
            raise UserError(f"--cases takes numbers of tokens from 3 to {MAX_LENGTH}, and "
                            f"{SENTENCES}. Received: {case!r}")
    if not cases:
        raise UserError(f"--cases names none; it takes numbers of tokens and {SENTENCES}.")
    if texts % max(BATCHES):
        raise UserError(f"--texts must be a multiple of {max(BATCHES)}, so that all batches are "
                        f"full. Received: {texts}")


def _prepare(directory: pathlib.Path, path: pathlib.Path,
             precisions: set[str]) -> Mapping[str, Sequence[int]]:
    """Writes models and texts; returns how many tokens every text has, by case."""
    from benchmarks.serving import models, texts  # TensorFlow takes seconds to import.
    from electra_tf.text.tokenization import TextSettings
    from electra_tf.text.tokenizer import Tokenizer
    from electra_tf.text.vocabulary import Vocabulary

    values = flags.FLAGS
    sentences = texts.sentences(pathlib.Path(values.data_dir))
    vocabulary = Vocabulary.load(values.vocab_file)
    tokenizer = Tokenizer(TextSettings(vocabulary=vocabulary))
    asked = {case: texts.first(sentences, values.texts) if case == SENTENCES else
             texts.cut(sentences, tokenizer, tokens=int(case), count=values.texts)
             for case in values.cases}
    models.write(directory, vocabulary, size=values.model_size, precisions=sorted(precisions))
    write_texts(path, asked)
    return {case: texts.lengths(given, tokenizer) for case, given in asked.items()}


def _define() -> None:
    flags.DEFINE_string("data_dir", None, "GLUE's directory, with SST-2/dev.tsv.")
    flags.DEFINE_string("vocab_file", None, "BERT's uncased vocabulary.")
    flags.DEFINE_string("model_size", "small", "tiny, small, base or large.")
    flags.DEFINE_list("cases", ["16", "64", "128", SENTENCES],
                      f"Tokens of a text; {SENTENCES} for sentences as they come.")
    flags.DEFINE_list(
        "systems", [], "Names of systems, or beginnings of names (ours, hf); all if empty.")
    flags.DEFINE_integer("texts", 256, "Texts of a turn, a multiple of 32.", lower_bound=1)
    define_flags(rounds=5)


if __name__ == "__main__":
    _define()
    command_line.run(main, summary=__doc__, groups={
        "What": ("data_dir", "vocab_file", "model_size", "cases", "systems", "peers_python"),
        "How": ("texts", "rounds"), "Results": ("output_dir",)})
