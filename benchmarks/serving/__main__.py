r"""Measures answers to texts beside Hugging Face's: latency of one text, throughput of batches.

    python -m benchmarks.serving --data_dir=glue --vocab_file=vocab.txt

ELECTRA-Small with two classes, new weights, as `run_finetuning.py --mode=export` writes it. Prints
a table per case and writes serving.md and serving.json. About fifteen minutes on two cores; stop
other programs first. benchmarks/README.md describes the method.
"""

import json
import math
import pathlib
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags

from benchmarks.harness import command, tables
from benchmarks.harness.turns import Case, Measurement, Role, System
from benchmarks.serving.answers import BATCHES, MAX_LENGTH
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import usable_cores

SENTENCES = "sst2"
TOLERANCE = 1e-3
"""Largest difference of a probability in float32."""


def _ours(name: str, precision: str, *, frozen: bool = False,
          threads_per_op: bool = False) -> System:
    """Returns a system of ours; with frozen weights, oneDNN keeps packed copies of them."""
    return System(
        name=name, title="electra_tf", module="benchmarks.serving.ours", role=Role.OURS,
        settings={"precision": precision, "threads_per_op": threads_per_op,
                  "note": ", frozen weights" if frozen else ""},
        variables={"TF_ONEDNN_ASSUME_FROZEN_WEIGHTS": str(int(frozen))})


SYSTEMS = (
    _ours("ours-bfloat16-frozen", "bfloat16", frozen=True),
    _ours("ours-bfloat16", "bfloat16"),
    _ours("ours-bfloat16-default", "bfloat16", threads_per_op=True),
    _ours("ours-float32-frozen", "float32", frozen=True),
    _ours("ours-float32", "float32"),
    *(System(name=name, title="Hugging Face", module="benchmarks.serving.hugging_face",
             settings={"precision": name.split("-")[1], "autocast": name.endswith("autocast")},
             in_peers_environment=True)
      for name in ("hf-bfloat16", "hf-bfloat16-autocast", "hf-float32")),
)


def main() -> None:
    """Writes the model, runs all systems in turns, prints and writes the tables.

    Raises:
        UserError: no data, an unknown case, system or size, no directory for the results; systems
            that don't answer the same.
    """
    values = flags.FLAGS
    command.require("data_dir", "vocab_file", "cases")
    _check(values.cases, values.texts)
    bench = command.Bench.of_flags(SYSTEMS)
    with tempfile.TemporaryDirectory() as scratch:
        tokens = _prepare(pathlib.Path(scratch), {
            system.settings["precision"] for system in bench.systems if system.role is Role.OURS})
        measured = measure(bench, pathlib.Path(scratch), tokens, values.rounds)
    bench.save(
        "serving", f"ELECTRA-{values.model_size.title()}, two classes, strings in and answers out",
        measured, page(measured, tokens), {"tokens": tokens})


def measure(bench: command.Bench, directory: pathlib.Path, tokens: Mapping[str, Sequence[int]],
            rounds: int) -> list[Measurement]:
    """Runs all systems over the cases that `_prepare` wrote.

    Raises:
        UserError: two systems don't read the same tokens, or don't answer the same.
    """
    requests = {f"{case}/{batch}": {"case": case, "batch": batch}
                for case in tokens for batch in BATCHES}
    checks = [{"case": case, "batch": 0} for case in tokens]
    return bench.measure(Case(
        name="serving", turns=requests, warm_up=[*checks, *requests.values()], rounds=rounds,
        fields={"directory": str(directory), "texts": str(directory / "texts.json"),
                "threads": usable_cores()},
        check=lambda measured: require_agreement(measured, tokens)))


def _check(cases: Sequence[str], texts: int) -> None:
    for case in cases:
        if case != SENTENCES and not (case.isdigit() and 3 <= int(case) <= MAX_LENGTH):
            raise UserError(f"--cases takes numbers of tokens from 3 to {MAX_LENGTH}, and "
                            f"{SENTENCES}. Received: {case!r}")
    if texts % max(BATCHES):
        raise UserError(f"--texts must be a multiple of {max(BATCHES)}: all batches are full. "
                        f"Received: {texts}")


def _prepare(directory: pathlib.Path, precisions: set[str]) -> Mapping[str, Sequence[int]]:
    """Writes models and texts; returns the number of tokens of every text, by case."""
    from benchmarks.serving import models  # TensorFlow takes seconds to import.
    from electra_tf.text.tokenization import TextSettings
    from electra_tf.text.tokenizer import Tokenizer
    from electra_tf.text.vocabulary import Vocabulary

    values = flags.FLAGS
    sentences = models.sentences(pathlib.Path(values.data_dir))
    vocabulary = Vocabulary.load(values.vocab_file)
    tokenizer = Tokenizer(TextSettings(vocabulary=vocabulary))
    asked = {case: models.first(sentences, values.texts) if case == SENTENCES else
             models.cut(sentences, tokenizer, tokens=int(case), count=values.texts)
             for case in values.cases}
    models.write(directory, vocabulary, size=values.model_size, precisions=sorted(precisions))
    (directory / "texts.json").write_text(json.dumps(asked), encoding="utf-8")
    return {case: models.lengths(given, tokenizer) for case, given in asked.items()}


def _answers(one: Measurement, field: str) -> dict[str, Any]:
    """Returns case -> a field of the answers to its texts."""
    return {reply["case"]: reply[field] for reply in one.warm_up if "case" in reply}


def _exact(measured: Sequence[Measurement]) -> list[Measurement]:
    return [one for one in measured
            if one.system.settings["precision"] == "float32" and not one.failure]


def difference(one: Measurement, other: Measurement) -> float:
    """Returns the largest difference between two systems' probabilities."""
    mine, theirs = _answers(one, "probabilities"), _answers(other, "probabilities")
    return max(abs(first - second) for case in mine
               for first, second in zip(mine[case], theirs[case], strict=True))


def require_agreement(measured: Sequence[Measurement], tokens: Mapping[str, Sequence[int]]) -> None:
    """Raises `UserError` if systems read other tokens, or those in float32 answer otherwise."""
    for one in measured:
        for case, found in ({} if one.failure else _answers(one, "tokens")).items():
            if found not in (None, list(tokens[case])):
                raise UserError(f"{one.label} reads other tokens in the texts of case {case} than "
                                "electra_tf does; the vocabulary isn't one of lower-case words.")
    exact = _exact(measured)
    for one in exact[1:]:
        if not difference(one, exact[0]) <= TOLERANCE:
            raise UserError(f"{one.label} and {exact[0].label} should answer the same, but "
                            f"probabilities differ by {difference(one, exact[0]):.2g}; no system "
                            "was measured.")


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the smallest value that a share of the values doesn't exceed."""
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def page(measured: Sequence[Measurement], tokens: Mapping[str, Sequence[int]]) -> list[str]:
    """Returns a table per case, and how far apart the answers are, as Markdown.

    Args:
        measured: the systems.
        tokens: case -> number of tokens of every text.
    """
    lines = []
    for case, lengths in tokens.items():
        title = f"{case} tokens" if case.isdigit() else (
            f"Sentences of SST-2, in the file's order: {statistics.mean(lengths):.1f} tokens on "
            f"average, {min(lengths)} to {max(lengths)}")
        lines += [f"## {len(lengths)} texts, {title}", "",
                  *_table(measured, case, len(lengths)), ""]
    for exact in _exact(measured)[:1]:
        shares = [share for case in _answers(exact, "probabilities").values() for share in case]
        lines += ["## Answers", "", f"Largest difference of a probability from {exact.label}, "
                  f"whose probabilities of the first class are {min(shares):.3f} to "
                  f"{max(shares):.3f}:", ""]
        lines += [f"- {one.label}: {difference(one, exact):.1e}" for one in measured
                  if one is not exact and not one.failure]
    return lines


def _table(measured: Sequence[Measurement], case: str, texts: int) -> list[str]:
    def latency(share: float) -> tables.Numbers:
        return lambda one: [1e3 * percentile(calls, share)
                            for calls in one.values(f"{case}/1", "calls")]

    return tables.compared(measured, [
        tables.Column("1 text: p50, ms", latency(0.5), ",.2f", less_is_better=True),
        tables.Column("p99, ms", latency(0.99), ",.2f", less_is_better=True),
        tables.Column("32 texts: examples/s", lambda one: [
            texts / sum(calls) for calls in one.values(f"{case}/32", "calls")])])


if __name__ == "__main__":
    flags.DEFINE_string("data_dir", None, "GLUE's directory, with SST-2/dev.tsv.")
    flags.DEFINE_string("vocab_file", None, "BERT's uncased vocabulary.")
    flags.DEFINE_string("model_size", "small", "tiny, small, base or large.")
    flags.DEFINE_list("cases", ["16", "64", "128", SENTENCES],
                      f"Tokens of a text; {SENTENCES} for sentences as they come.")
    flags.DEFINE_integer("texts", 256, "Texts of a turn, a multiple of 32.", lower_bound=1)
    command.define_flags(rounds=5, systems=SYSTEMS)
    command.run(main, summary=__doc__, what=["data_dir", "vocab_file", "model_size", "cases"],
                how=["texts"])
